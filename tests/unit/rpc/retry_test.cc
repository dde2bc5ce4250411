#include "common/rpc/retry.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "tests/sim/node.h"

namespace picket {
namespace {

TEST(Retry, DelayDoublesUpToTheMaximum) {
  RetryPolicy p;
  p.initial = 100ms;
  p.max = 1s;
  const std::pair<int, Nanos> steps[] = {{1, 100ms}, {2, 200ms}, {3, 400ms}, {4, 800ms}, {5, 1s}, {6, 1s}, {1000, 1s}};
  for (const auto& [failures, step] : steps) {
    EXPECT_EQ(NextDelay(p, failures, 0), step / 2) << failures;
    const uint64_t half = static_cast<uint64_t>((step / 2).count());
    EXPECT_EQ(NextDelay(p, failures, half), step) << failures;
    for (const uint64_t random : {uint64_t{12345}, UINT64_MAX, uint64_t{1} << 63}) {
      EXPECT_GE(NextDelay(p, failures, random), step / 2);
      EXPECT_LE(NextDelay(p, failures, random), step);
    }
  }
}

TEST(Retry, PeersWishIsALowerBound) {
  RetryPolicy p;
  EXPECT_EQ(NextDelay(p, 1, 0, 5s), 5s);
  EXPECT_EQ(NextDelay(p, 1, 0, 1ms), NextDelay(p, 1, 0));
}

TEST(Retry, NoBackoffIsAllowed) {
  RetryPolicy p;
  p.initial = 0ms;
  p.max = 0ms;
  EXPECT_EQ(NextDelay(p, 3, 77), 0ns);
}

class RetryUntilTest : public testing::Test {
 protected:
  RetryUntilTest() { node.Start(); }

  // Plays a list of outcomes; the last one repeats.
  struct Script {
    std::vector<Error> failures;
    bool succeeds = true;
    std::vector<Mono> attempts;
    static Task<Result<int>> Attempt(Script* self, Env* env, int n) {
      self->attempts.push_back(env->Now());
      EXPECT_EQ(static_cast<size_t>(n), self->attempts.size());
      co_await env->Sleep(1ms);
      const size_t i = static_cast<size_t>(n) - 1;
      if (i < self->failures.size()) co_return Fail(self->failures[i]);
      if (!self->succeeds) co_return Fail(self->failures.back());
      co_return n;
    }
  };
  Result<int> Run(Script* script, RetryPolicy policy) {
    auto result = sim::RunTask(world, node, RetryUntil<int>(&node, policy, [script, env = &node](int n) {
                                 return Script::Attempt(script, env, n);
                               }));
    PICKET_CHECK(result.has_value());
    return *result;
  }

  sim::World world;
  sim::Node& node = world.AddNode("a");
};

TEST_F(RetryUntilTest, FirstSuccessEndsIt) {
  Script script;
  script.failures = {Error(Code::kUnavailable, "a"), Error(Code::kDeadlineExceeded, "b")};
  EXPECT_EQ(Run(&script, {}), 3);
  EXPECT_EQ(script.attempts.size(), 3u);
}

TEST_F(RetryUntilTest, FinalErrorEndsIt) {
  Script script;
  script.failures = {Error(Code::kUnavailable, "a"), Error(Code::kStaleGeneration, "fenced")};
  auto result = Run(&script, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kStaleGeneration);
  EXPECT_EQ(result.error().message, "fenced");
  EXPECT_EQ(script.attempts.size(), 2u);
}

TEST_F(RetryUntilTest, PolicySaysWhatIsRetryable) {
  Script script;
  script.failures = {Error(Code::kConflict, "a")};
  RetryPolicy policy;
  policy.retryable = [](Code c) { return c == Code::kConflict; };
  EXPECT_EQ(Run(&script, policy), 2);
}

TEST_F(RetryUntilTest, NoAttemptBeginsAfterTheTotal) {
  Script script;
  script.failures = {Error(Code::kUnavailable, "gone")};
  script.succeeds = false;
  RetryPolicy policy;
  policy.total = 10s;
  const Mono begin = node.Now();
  auto result = Run(&script, policy);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kUnavailable);
  EXPECT_NE(result.error().message.find("gave up after " + std::to_string(script.attempts.size()) + " attempts"),
            std::string::npos)
      << result.error().message;
  EXPECT_GT(script.attempts.size(), 5u);
  EXPECT_LE(script.attempts.back() - begin, 10s);
  EXPECT_LE(node.Now() - begin, 10s + 1s);
}

TEST_F(RetryUntilTest, WaitsAsLongAsThePeerAsks) {
  Script script;
  script.failures = {Error(Code::kSafeMode, "a")};
  script.failures[0].retry_after_ms = 3000;
  ASSERT_TRUE(Run(&script, {}));
  EXPECT_GE(script.attempts[1] - script.attempts[0], 3s);
}

TEST_F(RetryUntilTest, AttemptLivesAsLongAsTheTask) {
  auto alive = std::make_shared<int>(0);
  std::weak_ptr<int> watch = alive;
  struct Flaky {
    static Task<Result<int>> Attempt(std::shared_ptr<int> count) {
      if (++*count < 3) co_return Fail(Code::kUnavailable, "x");
      co_return *count;
    }
  };
  auto task = RetryUntil<int>(&node, {}, [alive = std::move(alive)](int) { return Flaky::Attempt(alive); });
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(*sim::RunTask(world, node, std::move(task)), 3);
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace picket
