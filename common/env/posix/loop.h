// The event loop of a PosixEnv: one thread at a time runs it; functions posted to it run there, in
// order, never inline. Once dead it destroys what it is given instead of running it, which is how
// a teardown takes suspended coroutines apart without ever resuming one.
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "common/env/env.h"
#include "common/env/posix/timer_heap.h"
#include "common/env/task.h"

namespace picket::posix {

class Loop {
 public:
  // Holds the loop's address only: copies must not be used once the loop is gone.
  class ExecutorType {
   public:
    explicit ExecutorType(Loop* loop) : loop_(loop) {}
    template <class F>
    void execute(F&& f) const { loop_->Post(std::forward<F>(f)); }
    asio::execution_context& query(asio::execution::context_t) const noexcept { return loop_->io_; }
    static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
      return asio::execution::blocking.never;
    }
    bool operator==(const ExecutorType&) const noexcept = default;

   private:
    Loop* loop_;
  };

  Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Executor executor() { return ExecutorType(this); }
  asio::io_context& io() { return io_; }
  bool dead() const { return dead_; }

  // Any thread. Runs `f` on the loop, or destroys it when the loop is dead.
  template <class F>
  void Post(F&& f) {
    asio::post(io_, [this, f = std::forward<F>(f)]() mutable {
      if (!dead_) std::move(f)();
    });
  }
  // Any thread. Run and RunOnce return soon, and at once from then on.
  void Stop() { io_.stop(); }

  void Run() { io_.run(); }
  // Runs what is ready, waiting at most so long for something to be. False once stopped.
  bool RunOnce(Nanos at_most);
  // From here on nothing runs. Destroys every timer and everything posted, and with each round what
  // `abandon` gives up. REQUIRES: Run has returned.
  void Kill(const std::function<void()>& abandon);

  static Mono Now() { return Mono(std::chrono::steady_clock::now().time_since_epoch()); }
  TimerId At(Mono when, Fn fn);
  void Cancel(TimerId id) noexcept { timers_.Cancel(id); }

 private:
  void Arm();
  void Fire();

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  asio::steady_timer timer_{io_};
  TimerHeap timers_;
  Mono armed_ = Mono::max();
  bool dead_ = false;
};

}  // namespace picket::posix
