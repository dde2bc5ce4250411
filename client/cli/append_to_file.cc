#include <unistd.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/facts.h"
#include "client/cli/local_file.h"
#include "client/cli/remote_path.h"
#include "client/cli/upload.h"
#include "client/cli/write_options.h"

namespace picket::cli {
namespace {

struct AppendFlags {
  bool no_create = false;
  bool sync = false;
  bool no_sync = false;
  client::Conditions conditions;
  HoldOptions hold;

  client::AppendOptions Options() const {
    client::AppendOptions options{.create = !no_create, .sync_on_close = !no_sync, .conditions = conditions};
    hold.ApplyTo(options);
    return options;
  }
};

// Every local file is opened before the first byte moves. False: one could not be, which was reported.
bool OpenSources(Context& context, const std::vector<std::string>& names, std::vector<LocalFd>* files,
                 std::vector<ByteSource>* sources) {
  files->reserve(names.size());
  for (const std::string& name : names) {
    if (name == "-") {
      sources->push_back({.read = [](void* into, size_t size) { return ReadLocal(STDIN_FILENO, into, size); },
                          .wait_fd = STDIN_FILENO});
      continue;
    }
    auto fd = OpenForReading(name);
    if (!fd) {
      context.Fail(name, fd.error());
      return false;
    }
    files->push_back(std::move(*fd));
    sources->push_back(
        {.read = [fd = files->back().get()](void* into, size_t size) { return ReadLocal(fd, into, size); }});
  }
  return true;
}

}  // namespace

int RunAppendToFile(Context& context, const std::vector<std::string>& args) {
  AppendFlags flags;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("--no-create", flags.no_create, "A missing file is an error")
      .Flag("--sync", flags.sync, "Whenever the input is silent, make what has come durable, not only visible")
      .Flag("--no-sync", flags.no_sync, "Close when the bytes are on every replica, not yet on its disk");
  AddConditions(arguments, flags.conditions);
  flags.hold.AddTo(arguments);
  arguments.Positionals("paths", paths, 1, Arguments::kAnyNumber,
                        "Local files, - or nothing for standard input, then the file to append to");
  if (auto code = arguments.Parse(args)) return *code;

  std::vector<std::string> names(paths.begin(), paths.end() - 1);
  if (names.empty()) names.emplace_back("-");
  std::vector<LocalFd> files;
  std::vector<ByteSource> sources;
  if (!OpenSources(context, names, &files, &sources)) return context.Finish();
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const std::string path = ResolvePath(paths.back(), client->user());
  client::Result<client::FileStatus> appended;
  {
    Progress progress(context.diagnostics);
    progress.SetName(std::string(BaseName(path)));
    appended = Append(context, *client, progress, sources, path, flags.Options(), flags.sync);
  }
  if (!appended) {
    context.Fail(path, appended.error());
  } else {
    context.Succeed();
    if (context.options.json) context.out.PrintJson(FactsOf(*appended));
  }
  return context.Finish();
}

}  // namespace picket::cli
