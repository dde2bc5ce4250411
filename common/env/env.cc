#include "common/env/env.h"

#include <boost/asio/co_spawn.hpp>

#include "common/env/one_shot.h"

namespace picket {

void Env::Spawn(Task<> task) {
  asio::co_spawn(executor(), std::move(task), [this](std::exception_ptr e) {
    if (!e) return;
    try {
      std::rethrow_exception(e);
    } catch (const std::exception& x) {
      Fatal(std::string("exception left a task: ") + x.what());
    } catch (...) {
      Fatal("unknown exception left a task");
    }
  });
}

Task<> Env::Sleep(Nanos duration) {
  struct Timer {
    Env* env;
    TimerId id = 0;
    ~Timer() { env->Cancel(id); }
  };
  OneShot<> fired(*this);
  Timer timer{this};
  timer.id = At(Now() + duration, [&fired] { fired.Set(); });
  co_await fired.Wait();
}

void Env::AbandonAll() {
  while (waiters_ != nullptr) {
    WaiterHook* w = waiters_;
    Unlink(w);
    w->Abandon();
  }
}

size_t Env::WaiterCount() const {
  size_t n = 0;
  for (const WaiterHook* w = waiters_; w != nullptr; w = w->next_) ++n;
  return n;
}

void Env::Link(WaiterHook* w) {
  w->prev_ = nullptr;
  w->next_ = waiters_;
  if (waiters_ != nullptr) waiters_->prev_ = w;
  waiters_ = w;
}

void Env::Unlink(WaiterHook* w) {
  if (w->prev_ != nullptr) {
    w->prev_->next_ = w->next_;
  } else if (waiters_ == w) {
    waiters_ = w->next_;
  }
  if (w->next_ != nullptr) w->next_->prev_ = w->prev_;
  w->prev_ = w->next_ = nullptr;
}

}  // namespace picket
