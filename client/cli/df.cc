#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace picket::cli {

int RunDf(Context& context, const std::vector<std::string>& args) {
  bool human = false;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-h,--human-readable", human, "Sizes in K, M, G: powers of 1024")
      .Positionals("paths", paths, 0, Arguments::kAnyNumber, "Ignored: a cluster is one file system");
  if (auto code = arguments.Parse(args)) return *code;
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const auto cluster = client->Report();
  if (!cluster) {
    context.Fail("", cluster.error());
    return context.Finish();
  }
  uint64_t total = 0;
  uint64_t free = 0;
  uint64_t used = 0;
  int live = 0;
  for (const client::ServerInfo& server : cluster->servers) {
    if (server.state != "live") continue;
    ++live;
    total += server.total_bytes;
    free += server.free_bytes;
    used += server.replica_bytes;
  }
  const std::string name = fmt::format("picket://{}", client->master());
  if (context.options.json) {
    context.out.PrintJson({{"filesystem", name},
                           {"total_bytes", total},
                           {"used_bytes", used},
                           {"free_bytes", free},
                           {"live_servers", live}});
    return context.Finish();
  }
  auto size = [human](uint64_t bytes) { return human ? HumanBytes(bytes) : fmt::format("{}", bytes); };
  using enum Table::Align;
  Table table({{"Filesystem"}, {"Size", kRight}, {"Used", kRight}, {"Available", kRight}, {"Use%", kRight}});
  const double share = total == 0 ? 0 : 100.0 * static_cast<double>(used) / static_cast<double>(total);
  table.Add({name, size(total), size(used), size(free), fmt::format("{:.0f}%", share)});
  context.out.Write(table.Render());
  return context.Finish();
}

}  // namespace picket::cli
