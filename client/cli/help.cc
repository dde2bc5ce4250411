#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/table.h"

namespace picket::cli {
namespace {

constexpr std::string_view kFooter =
    "\n"
    "Global options, before or after the command:\n"
    "  --master HOST:PORT  the master (else PICKET_MASTER, the configuration file, or a cluster of `picket dev up`)\n"
    "  --config FILE       the client's configuration (else PICKET_CONFIG, ~/.config/picket/client.toml)\n"
    "  --json              facts as one JSON document\n"
    "  -v, --verbose       say more on standard error\n"
    "\n"
    "Commands may be spelled as in `hdfs dfs`, with a leading dash. Paths may have patterns: * ? [a-z] {a,b}.\n"
    "Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 permission, 5 fenced, 6 unavailable, 7 corrupt,\n"
    "            8 partial or degraded, 9 exists or conflict, 130 interrupted. More in picket(1).\n";

}  // namespace

int RunHelp(Context& context, const std::vector<std::string>& args) {
  std::vector<std::string> names;
  Arguments arguments(context);
  arguments.Positionals("command", names, 0, 1, "A command");
  if (auto code = arguments.Parse(args)) return *code;
  if (!names.empty()) {
    const Command* command = FindCommand(names.front());
    if (command == nullptr) {
      const std::string_view nearest = NearestCommand(names.front());
      return context.UsageError(fmt::format("{}: no such command{}", names.front(),
                                            nearest.empty() ? "" : fmt::format("; did you mean {}", nearest)));
    }
    Context of_command(*command, context.options);
    return command->run(of_command, {"--help"});
  }
  context.out.Write("Usage: picket [GLOBAL OPTIONS] COMMAND [ARGUMENTS]\n\n");
  Table table({{""}, {""}});
  for (const Command& command : Commands()) {
    table.Add({fmt::format("{} {}", command.name, command.synopsis), std::string(command.summary)});
  }
  context.out.Write(table.Render(2));
  context.out.Write(kFooter);
  return context.Finish();
}

}  // namespace picket::cli
