// A thread of its own for the coroutines: an environment, a FileSystem on it, and the bridge from
// blocking callers. Shared by a Client and its readers and writers; the last one to go ends the thread.
#pragma once

#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "client/core/file_system.h"
#include "common/env/posix/posix_env.h"

namespace picket::client {

class LoopThread {
 public:
  explicit LoopThread(FileSystemOptions options);
  // Stops the loop, waits for the thread, takes apart what was suspended.
  // REQUIRES: no caller is inside Run; not called on the loop.
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;

  // Any thread but the loop's. Calls `make` on the loop, runs the task it returns, blocks until its result.
  template <class T, class Make>
  T Run(Make make) {
    auto done = std::make_shared<std::promise<T>>();
    auto result = done->get_future();
    env_.PostFromAnyThread([this, done = std::move(done), make = std::move(make)]() mutable {
      env_.Spawn(Deliver<T>(make(files_), std::move(done)));
    });
    return result.get();
  }
  // Any thread. Destroys `object` on the loop, some time.
  template <class T>
  void Dispose(std::unique_ptr<T> object) {
    env_.PostFromAnyThread([object = std::move(object)] {});
  }
  // Any thread.
  Buffer Allocate(size_t size) { return env_.Allocate(size); }
  const FileSystemOptions& options() const { return files_.options(); }

 private:
  template <class T>
  static Task<> Deliver(Task<T> task, std::shared_ptr<std::promise<T>> done) {
    T value = co_await std::move(task);
    done->set_value(std::move(value));
  }

  PosixEnv env_;
  FileSystem files_;
  std::thread thread_;
};

}  // namespace picket::client
