// Repeating what failed for a passing reason: a policy that is a value, a pure delay, and a loop.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "common/base/error.h"
#include "common/env/env.h"

namespace picket {

struct RetryPolicy {
  Nanos initial = 50ms;  // before the second attempt; doubles from then on
  Nanos max = 2s;        // the longest delay that is not asked for by the peer
  Nanos total = 60s;     // no attempt begins after it
  bool (*retryable)(Code) = &IsRetryable;
};

// The delay after `failures` (>= 1) failed attempts: half of the doubled step is certain, the other
// half is drawn from `random`, so that many callers that failed together do not come back together.
// Never less than `asked`, the peer's Error::retry_after_ms.
inline Nanos NextDelay(const RetryPolicy& policy, int failures, uint64_t random, Nanos asked = 0ns) {
  const int doublings = std::clamp(failures - 1, 0, 30);
  const Nanos step = policy.initial > policy.max / (1 << doublings) ? policy.max : policy.initial * (1 << doublings);
  const auto half = static_cast<uint64_t>(step.count()) / 2;
  const Nanos jittered(static_cast<int64_t>(half + (half == 0 ? 0 : random % (half + 1))));
  return std::max(jittered, asked);
}

// Calls `attempt(1)`, `attempt(2)`, … until one succeeds, fails for good, or the next would begin after
// policy.total; then the last error is returned, with the number of attempts in its message.
// `attempt` lives as long as the task. It must be a plain function object that returns a task, not a
// capturing lambda that is itself a coroutine.
template <class T>
Task<Result<T>> RetryUntil(Env* env, RetryPolicy policy, std::function<Task<Result<T>>(int)> attempt) {
  const Mono end = env->Now() + policy.total;
  for (int n = 1;; ++n) {
    auto result = co_await attempt(n);
    if (result || !policy.retryable(result.error().code)) co_return result;
    const Nanos delay = NextDelay(policy, n, env->Random(), std::chrono::milliseconds(result.error().retry_after_ms));
    if (env->Now() + delay > end) {
      Error last = std::move(result).error();
      if (n > 1) last.message += " (gave up after " + std::to_string(n) + " attempts)";
      co_return Fail(std::move(last));
    }
    co_await env->Sleep(delay);
  }
}

}  // namespace picket
