#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/facts.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace picket::cli {
namespace {

using client::Client;
using client::QuarantineEntry;
using client::Result;

// The id of a chunkserver that is named by its id or by its address.
Result<std::string> ServerId(Client& client, const std::string& name) {
  const auto cluster = client.Report();
  if (!cluster) return std::unexpected(cluster.error());
  for (const client::ServerInfo& server : cluster->servers) {
    if (server.id == name || server.address == name) return server.id;
  }
  client::Error error;
  error.kind = client::ErrorKind::kNotFound;
  error.code = "NOT_FOUND";
  error.message = "no chunkserver has that id or address";
  error.next_step = "see them all with: picket admin report";
  return std::unexpected(std::move(error));
}

void PrintEntries(Output& out, const std::vector<QuarantineEntry>& entries, bool refusals) {
  if (entries.empty()) return;
  using enum Table::Align;
  Table table({{"NAME"},
               {"CHUNK"},
               {"VERSION", kRight},
               {"GENERATION", kRight},
               {"BYTES", kRight},
               {"SINCE"},
               {"REASON"},
               {refusals ? "RESULT" : "LAST HOPE"},
               {"PATH"}});
  for (const QuarantineEntry& entry : entries) {
    const std::string result = entry.refused.empty() ? "done" : fmt::format("refused: {}", entry.refused);
    table.Add({out.Name(entry.name), HexId(entry.chunk), TokenText(entry.version), TokenText(entry.generation),
               fmt::format("{}", entry.bytes), UtcTime(entry.since_ns), out.Name(entry.reason),
               refusals ? result : entry.last_hope ? "yes" : "", out.Name(entry.path)});
  }
  out.Write(table.Render());
}

}  // namespace

int RunQuarantine(Context& context, const std::vector<std::string>& args) {
  bool force = false;
  std::vector<std::string> words;
  Arguments arguments(context);
  arguments.Flag("--force", force, "With purge: also replicas that are the last hope of their chunk")
      .Words(words, {"ls", "restore", "purge"}, Arguments::kAnyNumber,
             "ls, restore or purge, a chunkserver's id or address, then the names of replicas (purge: else all)");
  if (auto code = arguments.Parse(args)) return *code;
  const std::string verb = words.front();
  if (words.size() < 2) return context.UsageError(fmt::format("{}: a chunkserver is required", verb));
  const std::vector<std::string> names(words.begin() + 2, words.end());
  if (verb == "ls" && !names.empty()) return context.UsageError("ls: lists all of a chunkserver");
  if (verb == "restore" && names.empty()) return context.UsageError("restore: the name of a replica is required");
  Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const auto server = ServerId(*client, words[1]);
  if (!server) {
    context.Fail(words[1], server.error());
    return context.Finish();
  }
  const auto entries = verb == "ls"        ? client->ListQuarantine(*server)
                       : verb == "restore" ? client->RestoreQuarantine(*server, names)
                                           : client->PurgeQuarantine(*server, names, force);
  if (!entries) {
    context.Fail(words[1], entries.error());
    return context.Finish();
  }
  if (context.options.json) {
    Json list = Json::array();
    for (const QuarantineEntry& entry : *entries) list.push_back(FactsOf(entry));
    context.out.PrintJson({{"server", *server}, {"entries", std::move(list)}});
  } else {
    PrintEntries(context.out, *entries, verb != "ls");
  }
  for (const QuarantineEntry& entry : *entries) {
    if (entry.refused.empty()) {
      context.Succeed();
    } else {
      context.Fail(entry.name, kExitConflict, entry.refused);
    }
  }
  return context.Finish();
}

}  // namespace picket::cli
