#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/facts.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace picket::cli {
namespace {

void PrintReport(Output& out, const client::ClusterInfo& cluster) {
  out.Print("Cluster {} at {}: {}\n", cluster.cluster_id, cluster.master, cluster.state);
  Table facts({{""}, {""}});
  auto fact = [&facts](std::string name, std::string value) { facts.Add({std::move(name), std::move(value)}); };
  fact("Software", cluster.software);
  fact("Epoch", fmt::format("{} (nonce {})", cluster.epoch, HexId(cluster.epoch_nonce)));
  fact("Revision", fmt::format("{}", cluster.revision));
  fact("Up for", DurationText(cluster.uptime_ms / 1000));
  fact("Files and directories", fmt::format("{} ({} being written)", cluster.inode_count, cluster.open_files));
  fact("Chunks", fmt::format("{}", cluster.chunk_count));
  fact("  with too few replicas", fmt::format("{}", cluster.chunks_under_goal));
  fact("  without any replica", fmt::format("{}", cluster.chunks_missing));
  fact("  to be deleted", fmt::format("{}", cluster.garbage_chunks));
  out.Write(facts.Render());
  out.Print("Servers ({}):\n", cluster.servers.size());
  if (cluster.servers.empty()) return;

  using enum Table::Align;
  Table servers({{"SERVER"},
                 {"ADDRESS"},
                 {"RACK"},
                 {"STATE"},
                 {"SIZE", kRight},
                 {"FREE", kRight},
                 {"REPLICAS", kRight},
                 {"IN THEM", kRight},
                 {"HEARD", kRight},
                 {"SOFTWARE"}});
  for (const client::ServerInfo& server : cluster.servers) {
    servers.Add({server.id, server.address, out.Name(server.rack), server.state, HumanBytes(server.total_bytes),
                 HumanBytes(server.free_bytes), fmt::format("{}", server.replica_count),
                 HumanBytes(server.replica_bytes), fmt::format("{:.1f} s ago", server.last_heartbeat_ms_ago / 1000.0),
                 server.software});
  }
  out.Write(servers.Render());
}

}  // namespace

int RunAdmin(Context& context, const std::vector<std::string>& args) {
  std::vector<std::string> words;
  Arguments arguments(context);
  arguments.Positionals("words", words, 1, 1, "report");
  if (auto code = arguments.Parse(args)) return *code;
  if (words[0] != "report" && words[0] != "-report") {
    return context.UsageError(fmt::format("\"{}\" is not known; it can be: report", words[0]));
  }
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const auto cluster = client->Report();
  if (!cluster) {
    context.Fail("", cluster.error());
  } else if (context.options.json) {
    context.out.PrintJson(FactsOf(*cluster));
  } else {
    PrintReport(context.out, *cluster);
  }
  return context.Finish();
}

}  // namespace picket::cli
