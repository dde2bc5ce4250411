#include "common/env/posix/posix_env.h"

#include <sys/random.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "common/base/check.h"
#include "common/base/coding.h"

namespace picket {
namespace {

std::string SystemRandom(size_t size) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::getrandom(bytes.data() + done, size - done, 0);
    PICKET_CHECK(n > 0 || errno == EINTR);
    if (n > 0) done += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace

PosixEnv::PosixEnv(PosixOptions options)
    : log_(std::move(options.name), options.log_level, options.log_format),
      buffers_(posix::BufferPool::Make(options.kept_buffer_bytes_max)),
      file_workers_(*this, loop_, "picket-file", options.file_threads),
      database_worker_(*this, loop_, "picket-db", 1),
      fs_(file_workers_),
      net_(*this, loop_, std::move(options.congestion_control)),
      rng_(LoadFixed<uint64_t>(SystemRandom(sizeof(uint64_t)).data())) {}

PosixEnv::~PosixEnv() { TearDown(); }

void PosixEnv::Run() {
  loop_.Run();
  TearDown();
}

void PosixEnv::TearDown() {
  if (loop_.dead()) return;
  // First the threads: what they run may use the frames that are destroyed next.
  file_workers_.Stop();
  database_worker_.Stop();
  loop_.Kill([this] { AbandonAll(); });
}

int64_t PosixEnv::WallNanos() {
  return std::chrono::duration_cast<Nanos>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string PosixEnv::RandomBytes(size_t n) { return SystemRandom(n); }

Task<> PosixEnv::Offload(Fn fn) {
  auto work = [fn = std::move(fn)]() mutable {
    fn();
    return Unit();
  };
  co_await database_worker_.Run<Unit>(std::move(work));
}

void PosixEnv::Fatal(std::string what) {
  log_.Write(LogLevel::kError, "fatal: " + what);
  std::abort();
}

}  // namespace picket
