#include <algorithm>
#include <chrono>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/remote_path.h"

namespace picket::cli {
namespace {

constexpr uint64_t kTailBytes = 1024;
constexpr size_t kBlockBytes = 1 << 20;
// Nothing announces new bytes, so a follower asks for them.
constexpr auto kFollowPeriod = std::chrono::milliseconds(500);

// Writes everything that can be read from `offset` on, and moves it.
client::Result<> WriteRest(Context& context, client::Reader& reader, uint64_t* offset) {
  std::vector<char> block(kBlockBytes);
  while (true) {
    const auto n = reader.ReadAt(*offset, block.data(), block.size());
    if (!n) return std::unexpected(n.error());
    if (*n == 0) break;
    context.out.Write({block.data(), *n});
    *offset += *n;
  }
  context.out.Flush();
  return {};
}

client::Result<> Tail(Context& context, client::Reader& reader, bool follow) {
  const auto length = reader.Length();
  if (!length) return std::unexpected(length.error());
  uint64_t offset = *length - std::min(*length, kTailBytes);
  if (auto written = WriteRest(context, reader, &offset); !written || !follow) return written;
  const Deferral deferral;
  while (WaitFor(kFollowPeriod)) {
    if (auto written = WriteRest(context, reader, &offset); !written) return written;
  }
  return {};
}

}  // namespace

int RunTail(Context& context, const std::vector<std::string>& args) {
  bool follow = false;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-f,--follow", follow, "Go on with what is written to the file, until interrupted")
      .Positionals("path", paths, 1, 1, "A file");
  if (auto code = arguments.Parse(args)) return *code;
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const auto found = Expand(*client, paths.front());
  if (!found) {
    context.Fail(paths.front(), found.error());
    return context.Finish();
  }
  if (found->size() > 1) return context.UsageError("the pattern matches more than one file");
  const std::string& path = found->front().path;
  auto reader = client->Open(path);
  if (!reader) {
    context.Fail(path, reader.error());
  } else if (auto tailed = Tail(context, **reader, follow); !tailed) {
    context.Fail(path, tailed.error());
  }
  return context.Finish();
}

}  // namespace picket::cli
