#include "client/cli/download.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "client/cli/interrupt.h"
#include "client/cli/local_file.h"

namespace picket::cli {
namespace {

using client::Error;
using client::ErrorKind;
using client::Reader;
using client::Result;

constexpr size_t kBlockBytes = 4 << 20;

Error MadeError(ErrorKind kind, std::string code, std::string message, std::string next_step) {
  Error error;
  error.kind = kind;
  error.code = std::move(code);
  error.message = std::move(message);
  error.next_step = std::move(next_step);
  return error;
}

Error InterruptedError() {
  return MadeError(ErrorKind::kInternal, "INTERRUPTED", "stopped by a signal", "nothing was left behind");
}

Result<uint64_t> ReadInOrder(Reader& reader, int fd, Progress& progress) {
  std::vector<char> block(kBlockBytes);
  uint64_t offset = 0;
  while (true) {
    if (Interrupted()) return std::unexpected(InterruptedError());
    const auto n = reader.Read(block.data(), block.size());
    if (!n) return std::unexpected(n.error());
    if (*n == 0) return offset;
    if (auto written = WriteLocalAt(fd, offset, {block.data(), *n}); !written) return std::unexpected(written.error());
    offset += *n;
    progress.AddDone(*n);
  }
}

// Ranges of one chunk each, taken by whoever is free.
class RangeReader {
 public:
  RangeReader(Reader& reader, int fd, Progress& progress, uint64_t length, uint64_t range_bytes)
      : reader_(reader), fd_(fd), progress_(progress), length_(length), range_bytes_(range_bytes) {}

  Result<uint64_t> Run(uint32_t streams) {
    {
      std::vector<std::jthread> workers;
      for (uint32_t i = 0; i < streams; ++i) workers.emplace_back([this] { Work(); });
    }
    if (error_) return std::unexpected(*error_);
    return copied_.load();
  }

 private:
  void Work() {
    std::vector<char> block(kBlockBytes);
    while (true) {
      const uint64_t from = next_.fetch_add(range_bytes_);
      if (from >= length_) return;
      const uint64_t to = std::min(length_, from + range_bytes_);
      if (auto done = CopyRange(from, to, block); !done) {
        std::lock_guard lock(mutex_);
        if (!error_) error_ = done.error();
        next_ = length_;
        return;
      }
    }
  }

  Result<> CopyRange(uint64_t from, uint64_t to, std::vector<char>& block) {
    while (from < to) {
      if (Interrupted()) return std::unexpected(InterruptedError());
      const auto n = reader_.ReadAt(from, block.data(), std::min<uint64_t>(block.size(), to - from));
      if (!n) return std::unexpected(n.error());
      if (*n == 0) return {};  // Download compares the lengths
      if (auto written = WriteLocalAt(fd_, from, {block.data(), *n}); !written) return written;
      from += *n;
      copied_ += *n;
      progress_.AddDone(*n);
    }
    return {};
  }

  Reader& reader_;
  const int fd_;
  Progress& progress_;
  const uint64_t length_;
  const uint64_t range_bytes_;
  std::atomic<uint64_t> next_ = 0;
  std::atomic<uint64_t> copied_ = 0;
  std::mutex mutex_;
  std::optional<Error> error_;
};

}  // namespace

Result<uint64_t> Download(client::Client& client, Progress& progress, const std::string& path,
                          const std::string& local_path, const DownloadOptions& options) {
  const Deferral deferral;
  if (Interrupted()) return std::unexpected(InterruptedError());
  auto reader = client.Open(path);
  if (!reader) return std::unexpected(reader.error());
  const client::FileStatus& status = (*reader)->status();

  auto file = PendingFile::Create(local_path);
  if (!file) return std::unexpected(file.error());
  const bool in_ranges = options.streams > 1 && !status.open && status.length > status.chunk_size;
  const auto copied =
      in_ranges ? RangeReader(**reader, file->fd(), progress, status.length, status.chunk_size).Run(options.streams)
                : ReadInOrder(**reader, file->fd(), progress);
  if (!copied) return std::unexpected(copied.error());
  if (!status.open && *copied != status.length) {
    return std::unexpected(MadeError(ErrorKind::kCorrupt, "SHORT",
                                     fmt::format("got {} of {} bytes", *copied, status.length),
                                     fmt::format("picket chunk show {}", path)));
  }
  if (options.preserve) {
    if (auto set = file->SetAttributes({.mode = status.mode, .mtime_ns = status.mtime_ns}); !set) {
      return std::unexpected(set.error());
    }
  }
  if (auto committed = file->Commit(options.replace); !committed) return std::unexpected(committed.error());
  return *copied;
}

}  // namespace picket::cli
