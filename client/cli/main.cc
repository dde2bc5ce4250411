// picket, the command line client. `picket [GLOBAL OPTIONS] COMMAND [ARGUMENTS]`.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/context.h"
#include "client/cli/interrupt.h"

namespace picket::cli {
namespace {

// Takes the global options that stand before the verb. False: one lacks its value.
bool TakeGlobalOptions(std::vector<std::string>& args, GlobalOptions& options) {
  size_t at = 0;
  for (; at < args.size(); ++at) {
    const std::string& arg = args[at];
    std::string* value = arg.starts_with("--master") ? &options.master : &options.config;
    if (arg == "--json") {
      options.json = true;
    } else if (arg == "-v" || arg == "--verbose") {
      options.verbose = true;
    } else if (arg == "--master" || arg == "--config") {
      if (++at == args.size()) return false;
      *value = args[at];
    } else if (arg.starts_with("--master=") || arg.starts_with("--config=")) {
      *value = arg.substr(std::string_view("--master=").size());
    } else {
      break;
    }
  }
  args.erase(args.begin(), args.begin() + static_cast<ptrdiff_t>(at));
  return true;
}

int Run(std::vector<std::string> args) {
  GlobalOptions options;
  const Command& help = *FindCommand("help");
  if (!TakeGlobalOptions(args, options)) {
    Diagnostics().Line("picket: --master and --config need a value; see: picket help");
    return kExitUsage;
  }
  if (args.empty()) {
    Context context(help, options);
    help.run(context, {});
    return kExitUsage;
  }
  const std::string word = args.front();
  args.erase(args.begin());
  const Command* command = FindCommand(word);
  if (command == nullptr) {
    const std::string_view nearest = NearestCommand(word);
    Diagnostics().Line(nearest.empty()
                           ? fmt::format("picket: {}: no such command; see: picket help", word)
                           : fmt::format("picket: {}: no such command; did you mean: picket {}", word, nearest));
    return kExitUsage;
  }
  Context context(*command, options);
  return command->run(context, args);
}

}  // namespace
}  // namespace picket::cli

int main(int argc, char** argv) {
  picket::cli::InstallSignalHandlers();
  return picket::cli::Run(std::vector<std::string>(argv + 1, argv + argc));
}
