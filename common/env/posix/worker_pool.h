// Threads for what may block. Work comes from the loop and its result goes back there.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/env/env.h"
#include "common/env/one_shot.h"
#include "common/env/posix/loop.h"

namespace picket::posix {

class WorkerPool {
 public:
  // `name` is what the system's tools show for the threads, which start with the first work.
  WorkerPool(Env& env, Loop& loop, std::string name, size_t threads)
      : env_(env), loop_(loop), name_(std::move(name)), threads_max_(threads) {}
  ~WorkerPool() { Stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // First come, first started. Dropped unrun once the pool is stopped.
  void Submit(Fn work);

  // Runs `work` on a thread and resumes on the loop with its result. The caller may be destroyed
  // meanwhile, so `work` owns what it needs.
  template <class T>
  Task<T> Run(std::move_only_function<T()> work) {
    return RunOn<T>(this, std::move(work));
  }

  // Waits for the work that runs; destroys what has not begun. Idempotent.
  void Stop();

 private:
  template <class T>
  static Task<T> RunOn(WorkerPool* pool, std::move_only_function<T()> work) {
    auto done = std::make_shared<OneShot<T>>(pool->env_);
    // A OneShot belongs to the loop: the thread hands its reference back together with the value.
    pool->Submit([&loop = pool->loop_, done, work = std::move(work)]() mutable {
      T value = work();
      work = nullptr;
      loop.Post([done = std::move(done), value = std::move(value)]() mutable { done->Set(std::move(value)); });
    });
    co_return co_await done->Wait();
  }

  void Work();

  Env& env_;
  Loop& loop_;
  const std::string name_;
  const size_t threads_max_;
  std::vector<std::thread> threads_;  // loop thread only

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Fn> queue_;
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace picket::posix
