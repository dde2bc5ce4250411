#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/remote_path.h"

namespace picket::cli {

int RunTest(Context& context, const std::vector<std::string>& args) {
  bool exists = false;
  bool directory = false;
  bool file = false;
  bool empty = false;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-e", exists, "It exists")
      .Flag("-d", directory, "It is a directory")
      .Flag("-f", file, "It is a file")
      .Flag("-z", empty, "It is a file of zero bytes")
      .Positionals("path", paths, 1, 1, "A path");
  if (auto code = arguments.Parse(args)) return *code;
  if (exists + directory + file + empty != 1) return context.UsageError("one of -e, -d, -f, -z is needed");
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();

  const std::string path = ResolvePath(paths.front(), client->user());
  const auto status = client->Stat(path);
  if (!status) {
    const client::ErrorKind kind = status.error().kind;
    if (kind == client::ErrorKind::kNotFound || kind == client::ErrorKind::kNotDirectory) return kExitFailure;
    context.Fail(path, status.error());
    return context.Finish();
  }
  const bool is_file = status->type == client::FileType::kFile;
  const bool holds =
      exists || (directory && !is_file) || (file && is_file) || (empty && is_file && status->length == 0);
  return holds ? kExitOk : kExitFailure;
}

}  // namespace picket::cli
