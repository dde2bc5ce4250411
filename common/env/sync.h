// Waiting built on OneShot: a FIFO lock, a signal for conditions, a gate for orderly stops, and a
// deadline for one wait. All on one executor.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/env/env.h"
#include "common/env/one_shot.h"

namespace picket {

// Mutual exclusion across co_await, strictly in the order of Enqueue. A ticket can be drawn in a
// plain function (so that arrival order is kept) and awaited later in a task.
class FifoLock {
 public:
  explicit FifoLock(Env& env) : env_(env), state_(std::make_shared<State>()) {}

  // A place in the queue. Destroying it leaves the queue, or releases the lock when held.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& o) noexcept : state_(std::move(o.state_)), entry_(std::move(o.entry_)) {}
    Ticket& operator=(Ticket&& o) noexcept {
      if (this != &o) {
        Release();
        state_ = std::move(o.state_);
        entry_ = std::move(o.entry_);
      }
      return *this;
    }
    ~Ticket() { Release(); }
    // Returns when this ticket is first in the queue.
    Task<> Wait() {
      auto entry = entry_;
      if (!entry->granted) co_await entry->turn.Wait();
    }
    void Release() {
      if (!state_) return;
      auto state = std::move(state_);
      auto entry = std::move(entry_);
      auto& queue = state->queue;
      const bool first = !queue.empty() && queue.front() == entry;
      std::erase(queue, entry);
      if (first && !queue.empty()) {
        queue.front()->granted = true;
        queue.front()->turn.Set();
      }
    }
    bool held() const { return entry_ && entry_->granted; }

   private:
    friend class FifoLock;
    struct Entry {
      explicit Entry(Env& env) : turn(env) {}
      OneShot<> turn;
      bool granted = false;
    };
    struct State {
      std::deque<std::shared_ptr<Entry>> queue;
    };
    std::shared_ptr<State> state_;
    std::shared_ptr<Entry> entry_;
  };

  Ticket Enqueue() {
    Ticket t;
    t.state_ = state_;
    t.entry_ = std::make_shared<Ticket::Entry>(env_);
    t.entry_->granted = state_->queue.empty();
    state_->queue.push_back(t.entry_);
    return t;
  }
  Task<Ticket> Lock() {
    Ticket t = Enqueue();
    co_await t.Wait();
    co_return t;
  }
  size_t waiting() const { return state_->queue.size(); }  // holder included

 private:
  using State = Ticket::State;
  Env& env_;
  std::shared_ptr<State> state_;
};

// Wakes every waiter; state is re-checked by the waiter ("while (!condition) co_await signal.Wait()").
class Signal {
 public:
  explicit Signal(Env& env) : env_(env) {}
  Task<> Wait() {
    auto one = std::make_shared<OneShot<>>(env_);
    waiters_.push_back(one);
    co_await one->Wait();
  }
  // False if `timeout` passed first.
  Task<bool> WaitFor(Nanos timeout) {
    struct Timer {
      Env* env;
      TimerId id = 0;
      ~Timer() { env->Cancel(id); }
    };
    auto one = std::make_shared<OneShot<>>(env_);
    auto fired = std::make_shared<bool>(false);
    waiters_.push_back(one);
    Timer timer{&env_};
    timer.id = env_.At(env_.Now() + timeout, [one, fired] { *fired = one->Set(); });
    co_await one->Wait();
    if (*fired) std::erase(waiters_, one);
    co_return !*fired;
  }
  void NotifyAll() {
    auto woken = std::exchange(waiters_, {});
    for (auto& w : woken) w->Set();
  }

 private:
  Env& env_;
  std::deque<std::shared_ptr<OneShot<>>> waiters_;
};

// Counts work in flight; Close refuses new work and waits for the old.
class Gate {
 public:
  explicit Gate(Env& env) : idle_(env) {}
  // False once closing.
  bool TryEnter() {
    if (closed_) return false;
    ++inside_;
    return true;
  }
  void Leave() {
    PICKET_CHECK(inside_ > 0);
    if (--inside_ == 0) idle_.NotifyAll();
  }
  Task<> Close() {
    closed_ = true;
    while (inside_ > 0) co_await idle_.Wait();
  }
  bool closed() const { return closed_; }

 private:
  Signal idle_;
  size_t inside_ = 0;
  bool closed_ = false;
};

// Runs every task at once and returns when all are done, results in the order of the tasks.
template <class T>
Task<std::vector<T>> WhenAll(Env* env, std::vector<Task<T>> tasks) {
  struct State {
    explicit State(Env& e, size_t n) : done(e), left(n) { results.resize(n); }
    OneShot<> done;
    size_t left;
    std::vector<std::optional<T>> results;
  };
  struct Runner {
    static Task<> Run(std::shared_ptr<State> state, size_t i, Task<T> task) {
      T value = co_await std::move(task);
      state->results[i].emplace(std::move(value));
      if (--state->left == 0) state->done.Set();
    }
  };
  const size_t n = tasks.size();
  std::vector<T> out;
  if (n == 0) co_return out;
  auto state = std::make_shared<State>(*env, n);
  for (size_t i = 0; i < n; ++i) env->Spawn(Runner::Run(state, i, std::move(tasks[i])));
  co_await state->done.Wait();
  out.reserve(n);
  for (auto& r : state->results) out.push_back(std::move(*r));
  co_return out;
}

}  // namespace picket
