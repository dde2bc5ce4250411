#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/destination.h"
#include "client/cli/remote_path.h"
#include "client/cli/write_options.h"

namespace picket::cli {
namespace {

void Move(Context& context, client::Client& client, const std::string& argument, const Destination& destination,
          bool force, const client::Conditions& conditions) {
  const auto found = Expand(client, argument);
  if (!found) return context.Fail(argument, found.error());
  if (!FitConditions(context, conditions, found->size())) return;
  if (found->size() > 1 && !destination.is_directory) {
    return context.Fail(destination.path, kExitFailure, "several sources need a directory to go to");
  }
  for (const client::FileStatus& source : *found) {
    const std::string target = destination.For(BaseName(source.path));
    if (auto moved = client.Rename(source.path, target, force, conditions); !moved) {
      context.Fail(source.path, moved.error());
    } else {
      context.Succeed();
    }
  }
}

}  // namespace

int RunMv(Context& context, const std::vector<std::string>& args) {
  bool force = false;
  client::Conditions conditions;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-f,--force", force, "Replace an existing file");
  AddConditions(arguments, conditions);
  arguments.Positionals("paths", paths, 2, Arguments::kAnyNumber,
                        "Sources, then the destination; versions are the source's, absent is the destination");
  if (auto code = arguments.Parse(args)) return *code;
  if (!FitConditions(context, conditions, paths.size() - 1)) return context.Finish();
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const auto destination = RemoteDestination(*client, paths.back(), paths.size() - 1);
  if (!destination) {
    context.Fail(paths.back(), destination.error());
    return context.Finish();
  }
  paths.pop_back();
  for (const std::string& argument : paths) Move(context, *client, argument, *destination, force, conditions);
  return context.Finish();
}

}  // namespace picket::cli
