#include "client/blocking/loop_thread.h"

#include <csignal>

namespace picket::client {
namespace {

PosixOptions EnvironmentOptions() {
  PosixOptions options;
  options.name = "picket client";
  options.log_level = LogLevel::kError;  // what a caller should hear is in its results
  return options;
}

}  // namespace

LoopThread::LoopThread(FileSystemOptions options) : env_(EnvironmentOptions()), files_(env_, std::move(options)) {
  // Signals are for the application's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { env_.Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LoopThread::~LoopThread() {
  env_.RequestStop();
  thread_.join();
}

}  // namespace picket::client
