// The simulator's own promises: time, clocks, pauses, deaths, determinism.
#include "tests/sim/world.h"

#include <gtest/gtest.h>

#include "common/env/sync.h"
#include "tests/sim/node.h"

namespace picket::sim {
namespace {

Task<> SleepAndPush(Env* env, Nanos t, std::vector<int>* out, int value) {
  co_await env->Sleep(t);
  out->push_back(value);
}

TEST(World, TimeIsVirtualAndOrdered) {
  World world;
  Node& node = world.AddNode("a");
  node.Start();
  std::vector<int> out;
  node.Spawn(SleepAndPush(&node, 30min, &out, 2));
  node.Spawn(SleepAndPush(&node, 1ms, &out, 1));
  world.RunFor(1h);
  EXPECT_EQ(out, (std::vector<int>{1, 2}));
  EXPECT_EQ(world.now(), Nanos(1h));
}

TEST(World, ATimerIsNeverEarlyOnTheNodesClock) {
  Config config;
  config.drift_ppb_max = 500'000;
  World world(config, 7);
  Node& node = world.AddNode("a");
  node.Start();
  for (int i = 1; i <= 50; ++i) {
    const Mono when = node.Now() + Nanos(1'000'003) * i;
    bool fired = false;
    node.At(when, [&] {
      fired = true;
      EXPECT_GE(node.Now(), when);
      EXPECT_LE(node.Now(), when + 1us);
    });
    if (i % 7 == 0) node.SetDrift(i % 2 == 0 ? 400'000 : -400'000);
    ASSERT_TRUE(world.RunUntil([&] { return fired; }, 1s));
  }
}

TEST(World, APausedNodeRunsNothingAndCatchesUp) {
  World world;
  Node& node = world.AddNode("a");
  node.Start();
  std::vector<int> out;
  node.Spawn(SleepAndPush(&node, 10ms, &out, 1));
  world.RunFor(5ms);
  node.Pause();
  world.RunFor(70s);
  EXPECT_TRUE(out.empty());
  node.Resume();
  world.RunFor(1ms);
  EXPECT_EQ(out, std::vector<int>{1});
}

struct Counted {
  explicit Counted(int* n) : n_(n) { ++*n_; }
  ~Counted() { --*n_; }
  int* n_;
};
Task<> HoldForEver(Env* env, int* alive) {
  Counted counted(alive);
  OneShot<> never(*env);
  co_await never.Wait();
  ADD_FAILURE() << "resumed";
}
Task<> HoldNested(Env* env, int* alive) {
  Counted counted(alive);
  co_await HoldForEver(env, alive);
}

TEST(Node, ACrashDestroysEveryFrameAndResumesNone) {
  World world;
  Node& node = world.AddNode("a");
  int alive = 0;
  struct Owner : Process {
    Owner(Env& env, int* n) : counted(n) {
      for (int i = 0; i < 10; ++i) env.Spawn(HoldNested(&env, n));
    }
    Counted counted;
  };
  for (auto death : {Node::Death::kProcess, Node::Death::kPower}) {
    node.Start([&](Env& env) { return std::make_unique<Owner>(env, &alive); });
    world.RunFor(1ms);
    EXPECT_EQ(alive, 21);
    node.Crash(death);
    EXPECT_EQ(alive, 0);
  }
  world.RunFor(1s);
}

Task<> CrashInside(Node* node, bool* after) {
  node->Crash(Node::Death::kPower);
  EXPECT_TRUE(node->dying());
  auto file = co_await node->fs().Open("x", OpenMode::kCreate);
  *after = true;
}

TEST(Node, ACrashFromInsideTakesEffectWhenTheTaskSuspends) {
  World world;
  Node& node = world.AddNode("a");
  node.Start();
  bool after = false;
  node.Spawn(CrashInside(&node, &after));
  world.RunFor(1s);
  EXPECT_FALSE(after);
  EXPECT_FALSE(node.alive());
  EXPECT_FALSE(node.disk().Exists("x"));
}

Task<> Throw() {
  throw std::runtime_error("boom");
  co_return;
}

TEST(Node, AnEscapedExceptionFailsTheRun) {
  World world;
  Node& node = world.AddNode("a");
  node.Start();
  node.Spawn(Throw());
  world.RunFor(1ms);
  ASSERT_TRUE(world.failed());
  EXPECT_EQ(world.violation()->invariant, "fatal");
}

Task<> Chatter(Env* env, Signal* signal, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    co_await env->Sleep(Nanos(static_cast<int64_t>(env->Random() % 1'000'000)));
    signal->NotifyAll();
    co_await signal->WaitFor(1ms);
  }
}

uint64_t ChatterHash(uint64_t seed) {
  World world({}, seed);
  std::vector<std::unique_ptr<Signal>> signals;
  for (int n = 0; n < 3; ++n) {
    Node& node = world.AddNode("n" + std::to_string(n));
    node.Start();
    signals.push_back(std::make_unique<Signal>(node));
    for (int i = 0; i < 5; ++i) node.Spawn(Chatter(&node, signals.back().get(), 50));
  }
  world.RunFor(1s);
  return world.hash();
}

TEST(World, TheSameSeedGivesTheSameHashAndAnotherAnother) {
  EXPECT_EQ(ChatterHash(1), ChatterHash(1));
  EXPECT_NE(ChatterHash(1), ChatterHash(2));
}

TEST(World, StreamsDependOnTheirNameOnly) {
  World world({}, 5);
  Rng a = world.Stream("faults");
  for (int i = 0; i < 100; ++i) world.scheduler_rng().Next();
  Rng b = world.Stream("faults");
  EXPECT_EQ(a.Next(), b.Next());
  EXPECT_NE(world.Stream("x").Next(), world.Stream("y").Next());
}

}  // namespace
}  // namespace picket::sim
