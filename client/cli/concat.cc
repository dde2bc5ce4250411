#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/facts.h"
#include "client/cli/remote_path.h"
#include "client/cli/write_options.h"

namespace picket::cli {

int RunConcat(Context& context, const std::vector<std::string>& args) {
  client::Conditions conditions;
  std::vector<std::string> paths;
  Arguments arguments(context);
  AddConditions(arguments, conditions);
  arguments.Positionals("paths", paths, 2, Arguments::kAnyNumber,
                        "The target, then the files whose chunks it gets. The target and all but the last source end "
                        "at a chunk boundary; chunk size and replication are the same");
  if (auto code = arguments.Parse(args)) return *code;
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  for (std::string& path : paths) path = ResolvePath(path, client->user());
  const std::string target = paths.front();
  paths.erase(paths.begin());
  const auto status = client->Concat(target, paths, conditions);
  if (!status) {
    context.Fail(target, status.error());
  } else {
    context.Succeed();
    if (context.options.json) context.out.PrintJson(FactsOf(*status));
  }
  return context.Finish();
}

}  // namespace picket::cli
