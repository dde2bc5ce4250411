#include <chrono>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/remote_path.h"
#include "client/cli/write_options.h"

namespace picket::cli {
namespace {

using client::Client;
using client::ErrorKind;
using client::Result;

int64_t NowNs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

Result<> MakeEmpty(Client& client, const std::string& path, const client::Conditions& conditions) {
  auto writer = client.Create(path, {.conditions = conditions});
  if (!writer) return std::unexpected(writer.error());
  if (auto closed = (*writer)->Close(); !closed) return std::unexpected(closed.error());
  return {};
}

Result<> Touch(Client& client, const std::string& path, bool create, const client::Conditions& conditions) {
  auto set = client.SetTimes(path, NowNs(), conditions);
  if (set) return {};
  if (set.error().kind != ErrorKind::kNotFound) return std::unexpected(set.error());
  if (!create) return {};
  auto made = MakeEmpty(client, path, conditions);
  // Somebody else was faster: then it is there, and new.
  if (!made && made.error().kind == ErrorKind::kAlreadyExists) return {};
  return made;
}

}  // namespace

int RunTouch(Context& context, const std::vector<std::string>& args) {
  bool no_create = false;
  client::Conditions conditions;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-c,--no-create", no_create, "Leave alone what does not exist");
  AddConditions(arguments, conditions);
  arguments.Positionals("paths", paths, 1, Arguments::kAnyNumber, "Files");
  if (auto code = arguments.Parse(args)) return *code;
  if (!FitConditions(context, conditions, paths.size())) return context.Finish();
  Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  for (const std::string& argument : paths) {
    const std::string path = ResolvePath(argument, client->user());
    if (auto touched = Touch(*client, path, !no_create, conditions); !touched) {
      context.Fail(path, touched.error());
    } else {
      context.Succeed();
    }
  }
  return context.Finish();
}

}  // namespace picket::cli
