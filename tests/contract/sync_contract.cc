// OneShot, FifoLock, Signal, Gate and WhenAll on a real executor.
#include "tests/contract/env_fixture.h"

#include <vector>

#include "common/env/one_shot.h"
#include "common/env/sync.h"

namespace picket::contract {
namespace {

Task<> TakeValue(OneShot<int>* one, int* out) { *out = co_await one->Wait(); }

Task<> OneShotFirstWins(Env* env) {
  OneShot<int> early(*env);
  EXPECT_FALSE(early.done());
  EXPECT_TRUE(early.Set(1));
  EXPECT_FALSE(early.Set(2));
  EXPECT_TRUE(early.done());
  EXPECT_EQ(co_await early.Wait(), 1);

  OneShot<int> late(*env);
  int got = 0;
  env->Spawn(TakeValue(&late, &got));
  co_await env->Sleep(1ms);
  EXPECT_TRUE(late.Set(3));
  EXPECT_EQ(got, 0) << "the waiter ran inside Set";
  co_await env->Sleep(1ms);
  EXPECT_EQ(got, 3);
  EXPECT_FALSE(late.Set(4));
}
TEST_P(SyncContract, OneShotTakesTheFirstValueAndResumesLater) { RunTask(OneShotFirstWins(&env())); }

Task<> MoveOnly(Env* env) {
  OneShot<std::unique_ptr<int>> one(*env);
  one.Set(std::make_unique<int>(5));
  auto value = co_await one.Wait();
  EXPECT_EQ(*value, 5);
}
TEST_P(SyncContract, OneShotCarriesMoveOnlyValues) { RunTask(MoveOnly(&env())); }

Task<> HoldFor(Env* env, FifoLock::Ticket ticket, Nanos time, int id, std::vector<int>* order, int* inside) {
  co_await ticket.Wait();
  EXPECT_TRUE(ticket.held());
  EXPECT_EQ(++*inside, 1);
  order->push_back(id);
  co_await env->Sleep(time);
  --*inside;
}
Task<> LockIsFifo(Env* env) {
  FifoLock lock(*env);
  std::vector<int> order;
  int inside = 0;
  for (int i = 0; i < 5; ++i) {
    FifoLock::Ticket ticket = lock.Enqueue();
    env->Spawn(HoldFor(env, std::move(ticket), i % 2 == 0 ? 2ms : 0ms, i, &order, &inside));
  }
  EXPECT_EQ(lock.waiting(), 5u);
  const FifoLock::Ticket last = co_await lock.Lock();
  EXPECT_TRUE(last.held());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(inside, 0);
}
TEST_P(SyncContract, FifoLockGrantsInTheOrderOfArrival) { RunTask(LockIsFifo(&env())); }

Task<> LeavingTheQueue(Env* env) {
  FifoLock lock(*env);
  FifoLock::Ticket a = lock.Enqueue();
  FifoLock::Ticket b = lock.Enqueue();
  FifoLock::Ticket c = lock.Enqueue();
  EXPECT_TRUE(a.held());
  b.Release();
  EXPECT_FALSE(c.held());
  a.Release();
  a.Release();
  EXPECT_TRUE(c.held());
  c = FifoLock::Ticket();
  EXPECT_EQ(lock.waiting(), 0u);
  co_return;
}
TEST_P(SyncContract, FifoLockTicketsMayLeaveTheQueue) { RunTask(LeavingTheQueue(&env())); }

Task<> AwaitSignal(Signal* signal, const bool* condition, int* woken) {
  while (!*condition) co_await signal->Wait();
  ++*woken;
}
Task<> SignalWakesAll(Env* env) {
  Signal signal(*env);
  bool condition = false;
  int woken = 0;
  for (int i = 0; i < 3; ++i) env->Spawn(AwaitSignal(&signal, &condition, &woken));
  co_await env->Sleep(1ms);
  signal.NotifyAll();
  co_await env->Sleep(1ms);
  EXPECT_EQ(woken, 0);
  condition = true;
  signal.NotifyAll();
  co_await env->Sleep(1ms);
  EXPECT_EQ(woken, 3);
}
TEST_P(SyncContract, SignalWakesEveryWaiter) { RunTask(SignalWakesAll(&env())); }

Task<> SignalTimesOut(Env* env) {
  Signal signal(*env);
  const Mono begin = env->Now();
  EXPECT_FALSE(co_await signal.WaitFor(5ms));
  EXPECT_GE(env->Now() - begin, 5ms);
  env->At(env->Now() + 2ms, [&signal] { signal.NotifyAll(); });
  EXPECT_TRUE(co_await signal.WaitFor(10s));
  signal.NotifyAll();
}
TEST_P(SyncContract, SignalWaitForTellsTimeOutFromNotice) { RunTask(SignalTimesOut(&env())); }

Task<> WorkInside(Env* env, Gate* gate, bool* ended) {
  co_await env->Sleep(3ms);
  *ended = true;
  gate->Leave();
}
Task<> GateWaits(Env* env) {
  Gate gate(*env);
  bool ended = false;
  EXPECT_TRUE(gate.TryEnter());
  env->Spawn(WorkInside(env, &gate, &ended));
  EXPECT_FALSE(gate.closed());
  co_await gate.Close();
  EXPECT_TRUE(ended);
  EXPECT_TRUE(gate.closed());
  EXPECT_FALSE(gate.TryEnter());
  co_await gate.Close();
}
TEST_P(SyncContract, GateRefusesNewWorkAndWaitsForTheOld) { RunTask(GateWaits(&env())); }

Task<int> AfterMs(Env* env, int ms) {
  co_await env->Sleep(Nanos(1ms) * ms);
  co_return ms;
}
Task<> AllAtOnce(Env* env) {
  std::vector<Task<int>> none;
  EXPECT_TRUE((co_await WhenAll(env, std::move(none))).empty());
  std::vector<Task<int>> tasks;
  for (const int ms : {8, 1, 4, 0}) tasks.push_back(AfterMs(env, ms));
  const std::vector<int> results = co_await WhenAll(env, std::move(tasks));
  EXPECT_EQ(results, (std::vector<int>{8, 1, 4, 0}));
}
TEST_P(SyncContract, WhenAllKeepsTheOrderOfItsTasks) { RunTask(AllAtOnce(&env())); }

Task<Result<int>> Fails() { co_return Fail(Code::kNotFound, "nothing there"); }
Task<> AllWithFailures(Env* env) {
  std::vector<Task<Result<int>>> tasks;
  tasks.push_back(Fails());
  tasks.push_back(Fails());
  const auto results = co_await WhenAll(env, std::move(tasks));
  EXPECT_EQ(results.size(), 2u);
  for (const auto& r : results) EXPECT_EQ(r.error().code, Code::kNotFound);
}
TEST_P(SyncContract, WhenAllReturnsFailuresAsValues) { RunTask(AllWithFailures(&env())); }

}  // namespace
}  // namespace picket::contract
