#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/facts.h"
#include "client/cli/remote_path.h"
#include "client/cli/text.h"

namespace picket::cli {

int RunCount(Context& context, const std::vector<std::string>& args) {
  bool human = false;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-h,--human-readable", human, "Sizes in K, M, G: powers of 1024")
      .Positionals("paths", paths, 1, Arguments::kAnyNumber, "Files and directories");
  if (auto code = arguments.Parse(args)) return *code;
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  Json entries = Json::array();
  for (const std::string& argument : paths) {
    const auto found = Expand(*client, argument);
    if (!found) {
      context.Fail(argument, found.error());
      continue;
    }
    for (const client::FileStatus& entry : *found) {
      const auto summary = client->Summarize(entry.path);
      if (!summary) {
        context.Fail(entry.path, summary.error());
        continue;
      }
      context.Succeed();
      Json facts{{"path", entry.path}};
      facts.update(FactsOf(*summary));
      entries.push_back(std::move(facts));
      if (context.options.json) continue;
      context.out.Print("{:>12} {:>12} {:>18} {}\n", summary->directories, summary->files,
                        human ? HumanBytes(summary->bytes) : fmt::format("{}", summary->bytes),
                        context.out.Name(entry.path));
    }
  }
  if (context.options.json) context.out.PrintJson({{"entries", std::move(entries)}});
  return context.Finish();
}

}  // namespace picket::cli
