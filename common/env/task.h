// Coroutine type, callbacks and clock types of the seam. Included by everything that suspends.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>

#include "common/base/error.h"

namespace picket {

namespace asio = boost::asio;

using Executor = asio::any_io_executor;
// Runs on the environment's one executor. Lazily started: nothing runs before co_await or Env::Spawn.
template <class T = void>
using Task = asio::awaitable<T, Executor>;

using Fn = std::move_only_function<void()>;

using Nanos = std::chrono::nanoseconds;
// A node's own monotonic clock: drifts against other nodes', restarts with the process. A type of
// its own, so that it never mixes with std::chrono's clocks.
struct MonoClockTag {};
using Mono = std::chrono::time_point<MonoClockTag, Nanos>;

using namespace std::chrono_literals;

}  // namespace picket
