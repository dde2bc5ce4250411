#include "client/cli/dev/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "client/cli/dev/ports.h"
#include "client/cli/dev/state.h"

namespace picket::cli::dev {
namespace {

namespace fs = std::filesystem;

class DevTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/picket-dev-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string dir_;
};

TEST_F(DevTest, OnlyTheVeryProcessCountsAsRunning) {
  const auto id = StartProcess("/bin/sleep", {"600"}, dir_ + "/log");
  ASSERT_TRUE(id);
  EXPECT_TRUE(IsRunning(*id));
  ASSERT_TRUE(WritePidFile(dir_ + "/pid", *id));
  EXPECT_TRUE(IsRunning(*ReadPidFile(dir_ + "/pid")));

  ProcessId reused = *id;  // the same number, another start
  ++reused.start_ticks;
  EXPECT_FALSE(IsRunning(reused));
  EXPECT_TRUE(StopProcesses({reused}, std::chrono::seconds(0)));
  EXPECT_TRUE(IsRunning(*id));  // and it was not signalled

  ProcessId of_another_boot = *id;
  of_another_boot.boot_id = "x";
  EXPECT_FALSE(IsRunning(of_another_boot));

  EXPECT_TRUE(StopProcesses({*id}, std::chrono::seconds(10)));
  EXPECT_FALSE(IsRunning(*id));  // our zombie now, which is no running process
  waitpid(id->pid, nullptr, 0);
}

TEST_F(DevTest, StubbornProcessesAreKilled) {
  const auto id =
      StartProcess("/bin/sh", {"-c", "trap '' TERM; echo ready; while :; do sleep 600; done"}, dir_ + "/log");
  ASSERT_TRUE(id);
  while (LastLine(dir_ + "/log") != "ready") usleep(1000);
  EXPECT_FALSE(StopProcesses({*id}, std::chrono::milliseconds(50)));
  EXPECT_FALSE(IsRunning(*id));
  waitpid(id->pid, nullptr, 0);
  kill(-id->pid, SIGKILL);  // its sleep, in the same session
}

TEST_F(DevTest, ProgramsThatCannotStart) {
  EXPECT_FALSE(StartProcess("/nonexistent/program", {}, dir_ + "/log"));
  EXPECT_EQ(*RunProcess("/bin/sh", {"-c", "echo why >&2; exit 3"}, dir_ + "/log"), 3);
  EXPECT_EQ(LastLine(dir_ + "/log"), "why");
  EXPECT_FALSE(ReadPidFile(dir_ + "/absent"));
}

TEST_F(DevTest, StateSurvivesAndForeignDirectoriesAreRefused) {
  const Layout layout(dir_ + "/cluster");
  EXPECT_EQ(LoadState(layout).error().code, kExitNotFound);
  fs::create_directory(layout.directory());
  EXPECT_EQ(LoadState(layout).error().code, kExitNotFound);

  State state;
  state.Grow(2);
  state.members[1].port = 12345;
  state.settings["master"]["lease"] = "5s";
  ASSERT_TRUE(SaveState(layout, state));
  const auto loaded = LoadState(layout);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->chunkservers(), 2u);
  EXPECT_EQ(loaded->members[1].address(), "127.0.0.1:12345");
  EXPECT_EQ(loaded->settings, state.settings);

  auto lock = StateLock::Take(layout);
  ASSERT_TRUE(lock);
  EXPECT_EQ(StateLock::Take(layout).error().code, kExitConflict);

  const Layout foreign(dir_);  // holds files, but no marker
  EXPECT_EQ(LoadState(foreign).error().code, kExitConflict);
}

TEST(Ports, AreFreeWhenChosen) {
  const auto port = ChoosePort({});
  ASSERT_TRUE(port);
  EXPECT_TRUE(IsPortFree(*port));
}

}  // namespace
}  // namespace picket::cli::dev
