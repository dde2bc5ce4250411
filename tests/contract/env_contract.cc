// Timers, tasks, blocking work and teardown.
#include "tests/contract/env_fixture.h"

#include <boost/asio/post.hpp>

#include <set>
#include <vector>

#include "common/env/one_shot.h"
#include "common/env/sync.h"

namespace picket::contract {
namespace {

// Says when it is destroyed.
struct Witness {
  explicit Witness(bool* f) : flag(f) {}
  Witness(Witness&& o) noexcept : flag(std::exchange(o.flag, nullptr)) {}
  ~Witness() {
    if (flag != nullptr) *flag = true;
  }
  bool* flag;
};

Task<> SleepIsNeverShort(Env* env) {
  for (const Nanos d : {Nanos(0), Nanos(1), Nanos(999us), Nanos(5ms), Nanos(20ms)}) {
    const Mono begin = env->Now();
    co_await env->Sleep(d);
    EXPECT_GE(env->Now() - begin, d);
  }
}
TEST_P(EnvContract, SleepIsNeverShort) { RunTask(SleepIsNeverShort(&env())); }

Task<> TimersFireInOrder(Env* env) {
  std::vector<int> fired;
  const Mono base = env->Now() + 5ms;
  env->At(base + 10ms, [&] { fired.push_back(4); });
  env->At(base, [&] { fired.push_back(1); });
  env->At(base + 1ms, [&] { fired.push_back(3); });
  env->At(base, [&] { fired.push_back(2); });
  env->At(env->Now() - 1s, [&] { fired.push_back(0); });
  EXPECT_TRUE(fired.empty()) << "a timer fired inside At";
  co_await env->Sleep(40ms);
  EXPECT_EQ(fired, (std::vector<int>{0, 1, 2, 3, 4}));
}
TEST_P(EnvContract, TimersFireInOrderAndNeverInline) { RunTask(TimersFireInOrder(&env())); }

Task<> CancelDestroys(Env* env) {
  bool destroyed = false;
  bool fired = false;
  const TimerId id = env->At(env->Now() + 1ms, [w = Witness(&destroyed), &fired] { fired = true; });
  EXPECT_NE(id, 0u);
  env->Cancel(id);
  EXPECT_TRUE(destroyed);
  env->Cancel(id);
  env->Cancel(0);
  env->Cancel(~TimerId{0});
  // A later timer is not confused with a cancelled one, whatever its storage.
  bool other = false;
  env->At(env->Now() + 1ms, [&other] { other = true; });
  env->Cancel(id);
  co_await env->Sleep(10ms);
  EXPECT_FALSE(fired);
  EXPECT_TRUE(other);
}
TEST_P(EnvContract, CancelDestroysAtOnceAndIsIdempotent) { RunTask(CancelDestroys(&env())); }

Task<> CancelFromAnotherTimer(Env* env) {
  bool second = false;
  const Mono when = env->Now() + 2ms;
  TimerId victim = 0;
  env->At(when, [&] { env->Cancel(victim); });
  victim = env->At(when, [&] { second = true; });
  co_await env->Sleep(10ms);
  EXPECT_FALSE(second);
}
TEST_P(EnvContract, ADueTimerCanStillBeCancelled) { RunTask(CancelFromAnotherTimer(&env())); }

Task<> ManyTimers(Env* env) {
  constexpr int kCount = 2000;
  int fired = 0;
  std::vector<TimerId> ids;
  for (int i = 0; i < kCount; ++i) {
    ids.push_back(env->At(env->Now() + Nanos((i * 7919) % 10'000'000), [&fired] { ++fired; }));
  }
  for (int i = 0; i < kCount; i += 2) env->Cancel(ids[i]);
  co_await env->Sleep(30ms);
  EXPECT_EQ(fired, kCount / 2);
}
TEST_P(EnvContract, ManyTimersHalfOfThemCancelled) { RunTask(ManyTimers(&env())); }

Task<> Increment(int* n) {
  ++*n;
  co_return;
}
Task<> SpawnIsNotInline(Env* env) {
  int n = 0;
  env->Spawn(Increment(&n));
  bool posted = false;
  asio::post(env->executor(), [&posted] { posted = true; });
  EXPECT_EQ(n, 0);
  EXPECT_FALSE(posted);
  co_await env->Sleep(1ms);
  EXPECT_EQ(n, 1);
  EXPECT_TRUE(posted);
}
TEST_P(EnvContract, SpawnAndPostNeverRunInline) { RunTask(SpawnIsNotInline(&env())); }

Task<> Offloaded(Env* env) {
  int order = 0;
  int ran_at = -1;
  Fn work = [&] { ran_at = order++; };
  co_await env->Offload(std::move(work));
  EXPECT_EQ(ran_at, 0);
  EXPECT_EQ(order, 1);
}
TEST_P(EnvContract, OffloadRunsAndResumes) { RunTask(Offloaded(&env())); }

Task<Unit> OffloadAppend(Env* env, std::vector<int>* out, int i) {
  Fn work = [out, i] { out->push_back(i); };
  co_await env->Offload(std::move(work));
  co_return Unit();
}
Task<> OffloadedInOrder(Env* env) {
  std::vector<int> out;
  std::vector<Task<Unit>> tasks;
  for (int i = 0; i < 100; ++i) tasks.push_back(OffloadAppend(env, &out, i));
  co_await WhenAll(env, std::move(tasks));
  EXPECT_EQ(out.size(), 100u);
}
TEST_P(EnvContract, OffloadedWorkNeverOverlaps) { RunTask(OffloadedInOrder(&env())); }

Task<> Randomness(Env* env) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(env->Random());
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(env->RandomBytes(0), "");
  EXPECT_EQ(env->RandomBytes(33).size(), 33u);
  EXPECT_NE(env->RandomBytes(32), env->RandomBytes(32));
  EXPECT_GT(env->WallNanos(), 0);
  co_return;
}
TEST_P(EnvContract, RandomnessDiffers) { RunTask(Randomness(&env())); }

Task<> Buffers(Env* env) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{65536}, size_t{1} << 20, (size_t{1} << 20) + 1}) {
    Buffer a = env->Allocate(size);
    Buffer b = env->Allocate(size);
    EXPECT_EQ(a.size(), size);
    std::ranges::fill(a.span(), std::byte{1});
    std::ranges::fill(b.span(), std::byte{2});
    const Buffer tail = a.Slice(size / 2, size - size / 2);
    a = Buffer();
    for (const std::byte x : tail.span()) EXPECT_EQ(x, std::byte{1});
  }
  co_return;
}
TEST_P(EnvContract, BuffersDoNotOverlapAndOutliveTheirFirstHandle) { RunTask(Buffers(&env())); }

// Teardown destroys what waits, and nothing runs any more.
struct Observed {
  bool frame_destroyed = false;
  bool resumed = false;
  bool timer_destroyed = false;
  bool posted_ran = false;
};
Task<> WaitForever(Env* env, Observed* seen) {
  const Witness witness(&seen->frame_destroyed);
  OneShot<> never(*env);
  co_await never.Wait();
  seen->resumed = true;
}
Task<> Parent(Env* env, Observed* seen) {
  co_await WaitForever(env, seen);
  seen->resumed = true;
}
Task<> StartWaiting(Env* env, Observed* seen) {
  env->Spawn(Parent(env, seen));
  env->At(env->Now() + 1h, [w = Witness(&seen->timer_destroyed)] {});
  co_await env->Sleep(2ms);
}
TEST_P(EnvContract, TeardownDestroysWithoutResuming) {
  Observed seen;
  RunTask(StartWaiting(&env(), &seen));
  EXPECT_FALSE(seen.frame_destroyed);
  fixture_.reset();
  EXPECT_TRUE(seen.frame_destroyed);
  EXPECT_TRUE(seen.timer_destroyed);
  EXPECT_FALSE(seen.resumed);
}

// A frame whose destructor comes back to the environment that is being torn down.
struct Clinging {
  Env* env;
  Observed* seen;
  ~Clinging() {
    env->Cancel(env->At(env->Now(), [s = seen] { s->posted_ran = true; }));
    env->At(env->Now(), [s = seen] { s->posted_ran = true; });
    asio::post(env->executor(), [s = seen] { s->posted_ran = true; });
    env->Spawn(WaitForever(env, seen));
  }
};
Task<> Cling(Env* env, Observed* seen) {
  const Clinging clinging{env, seen};
  co_await env->Sleep(1h);
}
Task<> StartClinging(Env* env, Observed* seen) {
  env->Spawn(Cling(env, seen));
  co_await env->Sleep(2ms);
}
TEST_P(EnvContract, ADyingEnvironmentIgnoresWhatDestructorsAskOfIt) {
  Observed seen;
  RunTask(StartClinging(&env(), &seen));
  fixture_.reset();
  EXPECT_FALSE(seen.posted_ran);
  EXPECT_FALSE(seen.resumed);
}

// A task that is ready to go on when the end comes is destroyed too.
Task<> Resumable(OneShot<>* one, Observed* seen) {
  const Witness witness(&seen->frame_destroyed);
  co_await one->Wait();
  seen->resumed = true;
}
Task<> SetAndEnd(Env* env, OneShot<>* one, Observed* seen) {
  env->Spawn(Resumable(one, seen));
  co_await env->Sleep(1ms);
}
TEST_P(EnvContract, AReadyTaskIsDestroyedToo) {
  Observed seen;
  OneShot<> one(env());
  RunTask(SetAndEnd(&env(), &one, &seen));
  one.Set();
  fixture_.reset();
  EXPECT_TRUE(seen.frame_destroyed);
  EXPECT_FALSE(seen.resumed);
}

}  // namespace
}  // namespace picket::contract
