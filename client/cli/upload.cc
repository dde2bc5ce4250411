#include "client/cli/upload.h"

#include <fmt/format.h>

#include <vector>

#include "client/cli/interrupt.h"

namespace picket::cli {
namespace {

using client::Error;
using client::ErrorKind;
using client::Result;
using client::Writer;

constexpr size_t kBlockBytes = 1 << 20;
constexpr auto kSilence = std::chrono::milliseconds(100);
constexpr auto kForever = std::chrono::milliseconds(-1);

Error InterruptedError() {
  Error error;
  error.code = "INTERRUPTED";
  error.message = "stopped by a signal";
  return error;
}

// Ready to read, or interrupted.
Result<> AwaitInput(const ByteSource& source, Writer& writer, uint64_t* flushed_bytes) {
  if (source.wait_fd < 0) return {};
  const bool pending = writer.bytes_written() > *flushed_bytes;
  const Wait wait = WaitReadable(source.wait_fd, pending ? kSilence : kForever);
  if (wait != Wait::kTimeout) return {};
  if (auto flushed = writer.Flush(); !flushed) return flushed;
  *flushed_bytes = writer.bytes_written();
  WaitReadable(source.wait_fd, kForever);
  return {};
}

Result<> Pump(const ByteSource& source, Writer& writer, Progress& progress) {
  std::vector<char> block(kBlockBytes);
  uint64_t flushed_bytes = 0;
  while (true) {
    if (auto ready = AwaitInput(source, writer, &flushed_bytes); !ready) return ready;
    if (Interrupted()) return std::unexpected(InterruptedError());
    const auto n = source.read(block.data(), block.size());
    if (!n) return std::unexpected(n.error());
    if (*n == 0) return {};
    if (auto written = writer.Write(block.data(), *n); !written) return written;
    progress.AddDone(*n);
  }
}

// What to say after a failed write: where the file stands now.
std::string GiveUp(Writer& writer, const Error& cause, bool overwrite) {
  if (cause.kind == ErrorKind::kFenced) return "somebody else has taken the file over; look at it before writing again";
  if (auto abandoned = writer.Abandon(); !abandoned) {
    return fmt::format("it stays open until its lease runs out: giving it up failed too ({})", abandoned.error().code);
  }
  return overwrite ? "the old content is unchanged" : "the unfinished file was removed";
}

}  // namespace

Result<client::FileStatus> Upload(Context& context, client::Client& client, Progress& progress,
                                  const ByteSource& source, const std::string& path,
                                  const client::CreateOptions& options) {
  const Deferral deferral;
  if (Interrupted()) return std::unexpected(InterruptedError());
  auto created = client.Create(path, options);
  if (!created) return std::unexpected(created.error());
  Writer& writer = **created;

  size_t warned = 0;
  auto pass_warnings = [&] {
    for (; warned < writer.warnings().size(); ++warned) context.Warn(path, writer.warnings()[warned]);
  };
  pass_warnings();
  Result<> pumped = Pump(source, writer, progress);
  Result<client::FileStatus> closed;
  if (!pumped) {
    closed = std::unexpected(pumped.error());
  } else {
    closed = writer.Close();
  }
  pass_warnings();
  if (!closed) {
    Error error = closed.error();
    const std::string state = GiveUp(writer, error, options.overwrite);
    error.next_step = error.next_step.empty() ? state : fmt::format("{}; {}", state, error.next_step);
    return std::unexpected(std::move(error));
  }
  return closed;
}

}  // namespace picket::cli
