// What only the production environment has: threads that post, stopping, signals, log lines, the pool.
#include "common/env/posix/posix_env.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "common/env/one_shot.h"
#include "common/env/posix/signals.h"

namespace picket {
namespace {

PosixOptions Quiet() {
  PosixOptions options;
  options.name = "test";
  options.log_level = LogLevel::kError;
  return options;
}

TEST(PosixEnv, RunsUntilStoppedFromAnotherThread) {
  PosixEnv env(Quiet());
  int count = 0;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) env.PostFromAnyThread([&count] { ++count; });
    env.PostFromAnyThread([&env] { env.RequestStop(); });
  });
  env.Run();
  other.join();
  EXPECT_EQ(count, 1000);
}

TEST(PosixEnv, AStopBeforeRunIsKept) {
  PosixEnv env(Quiet());
  env.RequestStop();
  env.Run();
  EXPECT_FALSE(env.RunOnce(0ns));
}

TEST(PosixEnv, ADeadEnvironmentDestroysWhatItIsGiven) {
  PosixEnv env(Quiet());
  auto token = std::make_shared<int>();
  env.RequestStop();
  env.Run();
  bool ran = false;
  env.PostFromAnyThread([token, &ran] { ran = true; });
  EXPECT_EQ(env.At(env.Now(), [token, &ran] { ran = true; }), 0u);
  env.TearDown();
  EXPECT_FALSE(ran);
}

// Role objects die after the tasks that use them and before the environment.
struct Role {
  explicit Role(PosixEnv& e) : env(e), never(e) {}
  ~Role() { EXPECT_EQ(users, 0); }
  Task<> Use() {
    struct User {
      int* n;
      ~User() { --*n; }
    };
    ++users;
    const User user{&users};
    co_await never.Wait();
  }
  PosixEnv& env;
  OneShot<> never;
  int users = 0;
};
TEST(PosixEnv, TasksDieBeforeTheObjectsTheyUse) {
  PosixEnv env(Quiet());
  Role role(env);
  env.Spawn(role.Use());
  env.At(env.Now() + 2ms, [&] {
    EXPECT_EQ(role.users, 1);
    env.RequestStop();
  });
  env.Run();
  EXPECT_EQ(role.users, 0);
}

// A thread at work when the stop comes: its work ends first, then what it used goes.
Task<> SlowWork(Env* env, std::atomic<bool>* begun, std::atomic<bool>* ended) {
  int local = 0;
  Fn work = [&local, begun, ended] {
    *begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    local = 1;
    *ended = true;
  };
  co_await env->Offload(std::move(work));
  ADD_FAILURE() << "resumed after the stop";
}
TEST(PosixEnv, TeardownWaitsForRunningWork) {
  std::atomic<bool> begun = false;
  std::atomic<bool> ended = false;
  PosixEnv env(Quiet());
  env.Spawn(SlowWork(&env, &begun, &ended));
  while (!begun) env.RunOnce(1ms);
  env.TearDown();
  EXPECT_TRUE(ended);
}

TEST(PosixEnv, SignalsAskToStop) {
  PosixEnv env(Quiet());
  bool asked = false;
  SignalWatcher signals(env, [&] {
    asked = true;
    env.RequestStop();
  });
  env.At(env.Now(), [] {
    ::raise(SIGHUP);
    ::raise(SIGPIPE);
    ::raise(SIGTERM);
  });
  env.Run();
  EXPECT_TRUE(asked);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGHUP, SIG_DFL);
}

using PosixEnvDeathTest = testing::Test;
TEST(PosixEnvDeathTest, ASecondSignalEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        PosixEnv env(Quiet());
        SignalWatcher signals(env, [] { ::raise(SIGINT); });
        env.At(env.Now(), [] { ::raise(SIGINT); });
        env.Run();
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

Task<> Throws() {
  throw std::runtime_error("broken promise");
  co_return;
}
TEST(PosixEnvDeathTest, AnExceptionThatLeavesATaskIsOneLineAndAnAbort) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        PosixEnv env(Quiet());
        env.Spawn(Throws());
        env.Run();
      },
      testing::KilledBySignal(SIGABRT), "ERROR test: fatal: exception left a task: broken promise");
}

// ---- Log lines -------------------------------------------------------------------------------------

constexpr int64_t kTime = 1764579730007;  // 2025-12-01T09:02:10.007Z

TEST(LogLine, Text) {
  EXPECT_EQ(posix::FormatLogLine(LogFormat::kText, kTime, LogLevel::kInfo, "master", "started"),
            "2025-12-01T09:02:10.007Z INFO  master: started");
  EXPECT_EQ(posix::FormatLogLine(LogFormat::kText, 0, LogLevel::kError, "m", "a\nb\tc\x1b[31m\x7f \xc3\xa9"),
            "1970-01-01T00:00:00.000Z ERROR m: a\\nb\\tc\\x1b[31m\\x7f \xc3\xa9");
}

TEST(LogLine, Json) {
  const std::string line = posix::FormatLogLine(LogFormat::kJson, kTime, LogLevel::kWarning, "server \"1\"",
                                                "bad\nname \x01 \xff \\ {}");
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = nlohmann::json::parse(line);
  EXPECT_EQ(parsed["time"], "2025-12-01T09:02:10.007Z");
  EXPECT_EQ(parsed["level"], "warning");
  EXPECT_EQ(parsed["name"], "server \"1\"");
  EXPECT_EQ(parsed["message"], "bad\nname \x01 \xef\xbf\xbd \\ {}");
}

TEST(LogLine, GoesToStderrAboveTheLevel) {
  testing::internal::CaptureStderr();
  {
    PosixOptions options = Quiet();
    options.log_level = LogLevel::kWarning;
    PosixEnv env(options);
    EXPECT_FALSE(env.LogEnabled(LogLevel::kInfo));
    EXPECT_TRUE(env.LogEnabled(LogLevel::kWarning));
    env.Log(LogLevel::kInfo, "not this");
    env.Log(LogLevel::kWarning, "but {this} %s");
  }
  const std::string out = testing::internal::GetCapturedStderr();
  EXPECT_EQ(out.find("not this"), std::string::npos);
  EXPECT_TRUE(out.ends_with("Z WARN  test: but {this} %s\n")) << out;
}

// ---- Buffers ---------------------------------------------------------------------------------------

TEST(BufferPool, RecyclesUpToItsBound) {
  auto pool = posix::BufferPool::Make(3 << 20);
  const std::byte* first = nullptr;
  {
    const Buffer a = pool->Allocate(1 << 20);
    first = a.data();
  }
  EXPECT_EQ(pool->kept_bytes(), size_t{1} << 20);
  {
    const Buffer b = pool->Allocate((1 << 20) - 5);
    EXPECT_EQ(b.data(), first);
    EXPECT_EQ(b.size(), (size_t{1} << 20) - 5);
    EXPECT_EQ(pool->kept_bytes(), 0u);
  }
  {
    std::vector<Buffer> many;
    for (int i = 0; i < 10; ++i) many.push_back(pool->Allocate(1 << 20));
  }
  EXPECT_EQ(pool->kept_bytes(), size_t{3} << 20);
  Buffer survivor = pool->Allocate(100'000);
  pool.reset();
  std::ranges::fill(survivor.span(), std::byte{1});
}

}  // namespace
}  // namespace picket
