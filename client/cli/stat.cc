#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/facts.h"
#include "client/cli/remote_path.h"
#include "client/cli/text.h"

namespace picket::cli {
namespace {

using client::FileStatus;

constexpr const char* kTimeFormat = "%Y-%m-%d %H:%M:%S";

std::string Directive(char letter, const FileStatus& status) {
  const bool directory = status.type == client::FileType::kDirectory;
  switch (letter) {
    case 'a':
      return fmt::format("{:o}", status.mode);
    case 'A':
      return PermissionText(status.mode);
    case 'b':
      return fmt::format("{}", status.length);
    case 'F':
      return directory ? "directory" : "regular file";
    case 'g':
      return status.group;
    case 'i':
      return HexId(status.inode);
    case 'n':
      return std::string(BaseName(status.path));
    case 'N':
      return status.path;
    case 'o':
      return fmt::format("{}", status.chunk_size);
    case 'r':
      return fmt::format("{}", status.replication);
    case 'u':
      return status.owner;
    // There are no access times: %x says when the content last changed, too.
    case 'x':
    case 'y':
      return UtcTime(status.mtime_ns, kTimeFormat);
    case 'X':
    case 'Y':
      return fmt::format("{}", status.mtime_ns / 1'000'000);
    case '%':
      return "%";
    default:
      return std::string("%") + letter;
  }
}

// The format language of `hdfs dfs -stat`.
std::string Format(std::string_view format, const FileStatus& status) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] == '%' && i + 1 < format.size()) {
      out += Directive(format[++i], status);
    } else {
      out += format[i];
    }
  }
  return out;
}

}  // namespace

int RunStat(Context& context, const std::vector<std::string>& args) {
  std::string format = "%y";
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Positionals("paths", paths, 1, Arguments::kAnyNumber,
                        "A format if the first has a %, then paths. %a %A mode, %b bytes, %F type, %g group, %i inode, "
                        "%n name, %N path, %o chunk size, %r replication, %u owner, %y %Y modification time (UTC, ms)");
  if (auto code = arguments.Parse(args)) return *code;
  if (paths.front().find('%') != std::string::npos) {
    format = paths.front();
    paths.erase(paths.begin());
    if (paths.empty()) return context.UsageError("a path is missing");
  }
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  Json entries = Json::array();
  for (const std::string& argument : paths) {
    const auto found = Expand(*client, argument);
    if (!found) {
      context.Fail(argument, found.error());
      continue;
    }
    context.Succeed();
    for (const FileStatus& status : *found) {
      if (context.options.json) {
        entries.push_back(FactsOf(status));
      } else {
        context.out.Print("{}\n", context.out.Name(Format(format, status)));
      }
    }
  }
  if (context.options.json) context.out.PrintJson({{"entries", std::move(entries)}});
  return context.Finish();
}

}  // namespace picket::cli
