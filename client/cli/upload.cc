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
Result<> AwaitInput(const ByteSource& source, Writer& writer, bool sync, uint64_t* flushed_bytes) {
  if (source.wait_fd < 0) return {};
  const bool pending = writer.bytes_written() > *flushed_bytes;
  const Wait wait = WaitReadable(source.wait_fd, pending ? kSilence : kForever);
  if (wait != Wait::kTimeout) return {};
  if (auto flushed = sync ? writer.Sync() : writer.Flush(); !flushed) return flushed;
  *flushed_bytes = writer.bytes_written();
  WaitReadable(source.wait_fd, kForever);
  return {};
}

Result<> Pump(const ByteSource& source, Writer& writer, Progress& progress, bool sync = false) {
  std::vector<char> block(kBlockBytes);
  uint64_t flushed_bytes = writer.bytes_acknowledged();
  while (true) {
    if (auto ready = AwaitInput(source, writer, sync, &flushed_bytes); !ready) return ready;
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

// A writer's warnings, as they come.
class Warnings {
 public:
  Warnings(Context& context, const std::string& path, const Writer& writer)
      : context_(context), path_(path), writer_(writer) {}
  void Pass() {
    for (; passed_ < writer_.warnings().size(); ++passed_) context_.Warn(path_, writer_.warnings()[passed_]);
  }

 private:
  Context& context_;
  const std::string& path_;
  const Writer& writer_;
  size_t passed_ = 0;
};

void PrependNextStep(Error* error, std::string state) {
  error->next_step = error->next_step.empty() ? std::move(state) : fmt::format("{}; {}", state, error->next_step);
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

  Warnings warnings(context, path, writer);
  warnings.Pass();
  Result<> pumped = Pump(source, writer, progress);
  Result<client::FileStatus> closed;
  if (!pumped) {
    closed = std::unexpected(pumped.error());
  } else {
    closed = writer.Close();
  }
  warnings.Pass();
  if (!closed) {
    Error error = closed.error();
    PrependNextStep(&error, GiveUp(writer, error, options.overwrite));
    return std::unexpected(std::move(error));
  }
  return closed;
}

Result<client::FileStatus> Append(Context& context, client::Client& client, Progress& progress,
                                  const std::vector<ByteSource>& sources, const std::string& path,
                                  const client::AppendOptions& options, bool sync) {
  const Deferral deferral;
  if (Interrupted()) return std::unexpected(InterruptedError());
  auto opened = client.Append(path, options);
  if (!opened) return std::unexpected(opened.error());
  Writer& writer = **opened;
  Warnings warnings(context, path, writer);
  warnings.Pass();
  Result<> pumped;
  for (const ByteSource& source : sources) {
    if (pumped) pumped = Pump(source, writer, progress, sync);
  }
  // Also after a failure of the input: what was appended stays.
  auto closed = writer.Close();
  warnings.Pass();
  if (pumped && closed) return closed;
  Error error = pumped ? closed.error() : pumped.error();
  if (closed) {
    PrependNextStep(&error, fmt::format("{} bytes were appended and stay", writer.bytes_written()));
  } else if (error.kind != ErrorKind::kFenced) {
    PrependNextStep(&error, fmt::format("{} bytes were appended; the file stays open until its lease runs out, or: "
                                        "picket lease recover {}",
                                        writer.bytes_acknowledged(), path));
  }
  return std::unexpected(std::move(error));
}

}  // namespace picket::cli
