// The production environment: one thread, Asio's reactor, the machine's files and network.
//
// A program's life:
//   PosixEnv env(options);
//   Role role(env);            // made after, destroyed before the environment
//   env.Spawn(role.Run());
//   env.Run();                 // until RequestStop, then the teardown of env.h
// Blocking work runs on threads below this seam; LevelDB has one of its own, so that its writes do not
// queue behind the files' fsyncs.
#pragma once

#include <memory>
#include <string>

#include "common/base/rng.h"
#include "common/env/env.h"
#include "common/env/posix/buffer_pool.h"
#include "common/env/posix/log_sink.h"
#include "common/env/posix/loop.h"
#include "common/env/posix/posix_fs.h"
#include "common/env/posix/tcp_net.h"
#include "common/env/posix/worker_pool.h"

namespace picket {

using posix::LogFormat;

struct PosixOptions {
  std::string name = "picket";  // in each log line: the role, and its id where there is one
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  size_t file_threads = 4;
  std::string congestion_control = "auto";   // see tcp_options.h
  size_t kept_buffer_bytes_max = 64 << 20;   // free packet memory kept for reuse
};

class PosixEnv final : public Env {
 public:
  explicit PosixEnv(PosixOptions options);
  ~PosixEnv() override;

  // Runs the loop in this thread until RequestStop, then tears down: waits for running disk work,
  // destroys what is suspended. Afterwards the environment is dead.
  void Run();
  // Instead of Run, for a caller with a loop of its own: runs what is ready, waiting at most so long
  // for something to be. False once stopped; the caller then calls TearDown.
  bool RunOnce(Nanos at_most) { return loop_.RunOnce(at_most); }
  // Idempotent. REQUIRES: the loop does not run.
  void TearDown();

  // Any thread, also before Run.
  void RequestStop() { loop_.Stop(); }
  // Any thread. Runs `fn` on the loop; destroys it unrun after the teardown.
  void PostFromAnyThread(Fn fn) { loop_.Post(std::move(fn)); }

  Executor executor() override { return loop_.executor(); }
  Mono Now() override { return posix::Loop::Now(); }
  int64_t WallNanos() override;
  uint64_t Random() override { return rng_.Next(); }
  std::string RandomBytes(size_t n) override;
  TimerId At(Mono when, Fn fn) override { return loop_.At(when, std::move(fn)); }
  void Cancel(TimerId id) noexcept override { loop_.Cancel(id); }
  Task<> Offload(Fn fn) override;
  Buffer Allocate(size_t size) override { return buffers_->Allocate(size); }
  Net& net() override { return net_; }
  Fs& fs() override { return fs_; }
  // Any thread.
  void Log(LogLevel level, std::string_view message) override { log_.Write(level, message); }
  bool LogEnabled(LogLevel level) override { return log_.Enabled(level); }
  // Any thread. Does not return.
  [[noreturn]] void Fatal(std::string what) override;

  // For what lives below the seam.
  asio::io_context& io() { return loop_.io(); }
  posix::Loop& loop() { return loop_; }

 private:
  posix::LogSink log_;
  const std::shared_ptr<posix::BufferPool> buffers_;
  posix::Loop loop_;
  posix::WorkerPool file_workers_;
  posix::WorkerPool database_worker_;
  posix::PosixFs fs_;
  posix::TcpNet net_;
  Rng rng_;
};

}  // namespace picket
