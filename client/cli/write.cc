#include <fmt/format.h>
#include <unistd.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/facts.h"
#include "client/cli/interrupt.h"
#include "client/cli/local_file.h"
#include "client/cli/progress.h"
#include "client/cli/remote_path.h"
#include "client/cli/text.h"
#include "client/cli/write_options.h"

namespace picket::cli {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

struct WriteFlags {
  std::string offset = "0";
  bool create = false;
  bool no_sync = false;
  client::Conditions conditions;
  HoldOptions hold;

  client::AppendOptions Options() const {
    client::AppendOptions options{.create = create, .sync_on_close = !no_sync, .conditions = conditions};
    hold.ApplyTo(options);
    return options;
  }
};

// Everything that `fd` gives, from `offset` of the file on. What was written before an error stays.
client::Result<client::FileStatus> WriteFrom(Context& context, client::Client& client, int fd, const std::string& path,
                                             uint64_t offset, const client::AppendOptions& options) {
  const Deferral deferral;
  auto opened = client.OpenForWrite(path, options);
  if (!opened) return std::unexpected(opened.error());
  client::RandomWriter& writer = **opened;
  for (const std::string& warning : writer.warnings()) context.Warn(path, warning);
  Progress progress(context.diagnostics);
  progress.SetName(std::string(BaseName(path)));
  std::vector<char> block(kBlockBytes);
  client::Result<> done;
  while (done) {
    if (fd == STDIN_FILENO) WaitReadable(fd, std::chrono::milliseconds(-1));
    if (Interrupted()) {
      client::Error error;
      error.code = "INTERRUPTED";
      error.message = "stopped by a signal";
      done = std::unexpected(std::move(error));
      break;
    }
    const auto n = ReadLocal(fd, block.data(), block.size());
    if (!n) done = std::unexpected(n.error());
    if (!n || *n == 0) break;
    done = writer.WriteAt(offset, block.data(), *n);
    offset += *n;
    progress.AddDone(*n);
  }
  auto closed = writer.Close();
  if (done && closed) return closed;
  client::Error error = done ? closed.error() : done.error();
  if (closed) {
    const std::string state = fmt::format("{} bytes were written and stay", writer.bytes_written());
    error.next_step = error.next_step.empty() ? state : state + "; " + error.next_step;
  }
  return std::unexpected(std::move(error));
}

}  // namespace

int RunWrite(Context& context, const std::vector<std::string>& args) {
  WriteFlags flags;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments
      .Text("-o,--offset", flags.offset, "BYTES",
            "Where in the file (such as 64M); beyond its end a hole is left that reads as zeros")
      .Flag("--create", flags.create, "Make the file if it is missing")
      .Flag("--no-sync", flags.no_sync, "Close when the bytes are on every replica, not yet on its disk");
  AddConditions(arguments, flags.conditions);
  flags.hold.AddTo(arguments);
  arguments.Positionals("paths", paths, 1, 2, "A local file, - or nothing for standard input, then the file to write");
  if (auto code = arguments.Parse(args)) return *code;
  const auto offset = ParseBytes(flags.offset);
  if (!offset) return context.UsageError(fmt::format("\"{}\" is not an offset such as 64M", flags.offset));

  LocalFd file;
  int fd = STDIN_FILENO;
  if (paths.size() == 2 && paths.front() != "-") {
    auto source = OpenForReading(paths.front());
    if (!source) {
      context.Fail(paths.front(), source.error());
      return context.Finish();
    }
    file = std::move(*source);
    fd = file.get();
  }
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const std::string path = ResolvePath(paths.back(), client->user());
  const auto written = WriteFrom(context, *client, fd, path, *offset, flags.Options());
  if (!written) {
    context.Fail(path, written.error());
    return context.Finish();
  }
  context.Succeed();
  if (context.options.json) context.out.PrintJson(FactsOf(*written));
  return context.Finish();
}

}  // namespace picket::cli
