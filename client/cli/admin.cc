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

void Report(Context& context, client::Client& client) {
  const auto cluster = client.Report();
  if (!cluster) {
    context.Fail("", cluster.error());
  } else if (context.options.json) {
    context.out.PrintJson(FactsOf(*cluster));
  } else {
    PrintReport(context.out, *cluster);
  }
}

// What becomes of replicas that this cluster's history did not make.
void Decide(Context& context, client::Client& client, bool discard, bool dry_run, const std::vector<uint64_t>& chunks) {
  const auto report = client.Adopt(discard, dry_run, chunks);
  if (!report) return context.Fail("", report.error());
  context.Succeed();
  if (context.options.json) {
    Json facts = FactsOf(*report);
    facts["dry_run"] = dry_run;
    context.out.PrintJson(facts);
    return;
  }
  Output& out = context.out;
  if (report->history_lost) {
    out.Print("The master has stopped: chunkservers have seen a history that it does not know.\n"
              "{} in epoch {}, above all they have seen{}\n",
              dry_run ? "Adopted, its next start would serve" : "Its next start serves", report->epoch,
              dry_run ? "" : ": start it again now, then decide what becomes of replicas ahead of it");
  }
  if (report->replicas.empty()) return out.Write("No replica is of another history\n");
  using enum Table::Align;
  Table table({{"CHUNK"},
               {"SERVER"},
               {"VERSION", kRight},
               {"MINTED", kRight},
               {"BYTES", kRight},
               {"STATE"},
               {dry_run ? "WOULD BE" : "ACTION"},
               {"PATH"}});
  for (const client::AdoptItem& item : report->replicas) {
    table.Add({HexId(item.chunk), item.server, TokenText(item.version), TokenText(item.minted),
               fmt::format("{}", item.length), item.state, out.Name(item.action), out.Name(item.path)});
  }
  out.Write(table.Render());
}

}  // namespace

int RunAdmin(Context& context, const std::vector<std::string>& args) {
  bool dry_run = false;
  std::vector<std::string> ids;
  std::vector<std::string> words;
  Arguments arguments(context);
  arguments.Flag("--dry-run", dry_run, "With adopt and discard: say what would be done, and do nothing")
      .Texts("--chunk", ids, "ID", "With adopt and discard: only this chunk; may be repeated")
      .Words(words, {"report", "adopt", "discard"}, 1,
             "report; adopt or discard replicas of a history that this master does not know");
  if (auto code = arguments.Parse(args)) return *code;
  const std::string& verb = words[0];
  std::vector<uint64_t> chunks;
  for (const std::string& id : ids) {
    const auto chunk = ParseHexId(id);
    if (!chunk) return context.UsageError(fmt::format("\"{}\" is not the id of a chunk: 16 hex digits", id));
    chunks.push_back(*chunk);
  }
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  if (verb == "report") {
    Report(context, *client);
  } else {
    Decide(context, *client, verb == "discard", dry_run, chunks);
  }
  return context.Finish();
}

}  // namespace picket::cli
