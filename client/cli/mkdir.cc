#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/remote_path.h"
#include "client/cli/write_options.h"

namespace picket::cli {
namespace {

constexpr uint32_t kMode = 0755;

}  // namespace

int RunMkdir(Context& context, const std::vector<std::string>& args) {
  bool parents = false;
  client::Conditions conditions;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-p,--parents", parents, "Make missing parents; an existing directory is fine");
  AddConditions(arguments, conditions);
  arguments.Positionals("paths", paths, 1, Arguments::kAnyNumber, "New directories");
  if (auto code = arguments.Parse(args)) return *code;
  if (!FitConditions(context, conditions, paths.size())) return context.Finish();
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  for (const std::string& argument : paths) {
    const std::string path = ResolvePath(argument, client->user());
    if (auto made = client->Mkdir(path, parents, kMode, conditions); !made) {
      context.Fail(path, made.error());
    } else {
      context.Succeed();
    }
  }
  return context.Finish();
}

}  // namespace picket::cli
