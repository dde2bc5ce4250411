#include "common/env/posix/worker_pool.h"

#include <pthread.h>
#include <signal.h>

namespace picket::posix {

void WorkerPool::Submit(Fn work) {
  bool grow = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(work));
    grow = queue_.size() > idle_ && threads_.size() < threads_max_;
  }
  ready_.notify_one();
  if (!grow) return;
  // Signals are the main thread's; a worker starts with all of them blocked.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  threads_.emplace_back([this] { Work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(threads_.back().native_handle(), name_.substr(0, 15).c_str());
}

void WorkerPool::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    ready_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    --idle_;
    if (stopping_) return;
    Fn work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

void WorkerPool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  const auto dropped = std::exchange(queue_, {});
}

}  // namespace picket::posix
