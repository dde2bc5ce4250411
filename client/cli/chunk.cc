#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/facts.h"
#include "client/cli/remote_path.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace picket::cli {
namespace {

using client::ChunkInfo;
using client::Client;
using client::Result;

void PrintChunk(Output& out, const ChunkInfo& chunk) {
  out.Print("chunk {}  index {}  version {}  generation {}  minted {}  {} bytes  {}\n", HexId(chunk.id), chunk.index,
            TokenText(chunk.version), TokenText(chunk.generation), TokenText(chunk.minted), chunk.length,
            chunk.sealed ? fmt::format("sealed, digest {:08x}", chunk.digest) : "open");
  if (!chunk.primary.empty()) {
    out.Print("  primary {}, lease for another {:.1f} s\n", chunk.primary, chunk.lease_left_ms / 1000.0);
  } else {
    out.Print("  primary: none{}\n", chunk.sealed ? " (sealed)" : "");
  }
  if (chunk.replicas.empty()) {
    out.Write("  no replica is known\n");
    return;
  }
  using enum Table::Align;
  Table table({{"SERVER"},
               {"ADDRESS"},
               {"RACK"},
               {"VERSION", kRight},
               {"GENERATION", kRight},
               {"BYTES", kRight},
               {"STATE"},
               {""}});
  for (const client::ReplicaInfo& replica : chunk.replicas) {
    const bool primary = replica.server == chunk.primary;
    table.Add({replica.server, replica.address, out.Name(replica.rack), TokenText(replica.version),
               TokenText(replica.generation), fmt::format("{}", replica.length), replica.state,
               primary           ? "primary"
               : replica.counted ? ""
                                 : "not counted"});
  }
  out.Write(table.Render(2));
}

Result<std::vector<ChunkInfo>> Find(Client& client, const std::string& argument) {
  // Anything else is a path.
  if (const auto id = ParseHexId(argument)) {
    auto chunk = client.DescribeChunk(*id);
    if (!chunk) return std::unexpected(chunk.error());
    return std::vector{std::move(*chunk)};
  }
  const auto files = Expand(client, argument);
  if (!files) return std::unexpected(files.error());
  std::vector<ChunkInfo> all;
  for (const client::FileStatus& file : *files) {
    auto chunks = client.Chunks(file.path);
    if (!chunks) return std::unexpected(chunks.error());
    for (ChunkInfo& chunk : *chunks) {
      if (chunk.path.empty()) chunk.path = file.path;
      all.push_back(std::move(chunk));
    }
  }
  return all;
}

}  // namespace

int RunChunk(Context& context, const std::vector<std::string>& args) {
  std::vector<std::string> words;
  Arguments arguments(context);
  arguments.Words(words, {"show"}, 2, "show, then the path of a file or the id of a chunk (16 hex digits)");
  if (auto code = arguments.Parse(args)) return *code;
  if (words.size() < 2) return context.UsageError("show: a path or the id of a chunk is required");
  Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const auto chunks = Find(*client, words[1]);
  if (!chunks) {
    context.Fail(words[1], chunks.error());
    return context.Finish();
  }
  if (context.options.json) {
    Json list = Json::array();
    for (const ChunkInfo& chunk : *chunks) list.push_back(FactsOf(chunk));
    context.out.PrintJson({{"chunks", std::move(list)}});
    return context.Finish();
  }
  std::string path;
  for (const ChunkInfo& chunk : *chunks) {
    if (chunk.path != path) {
      path = chunk.path;
      context.out.Print("{}\n", context.out.Name(path));
    }
    PrintChunk(context.out, chunk);
  }
  if (chunks->empty()) context.out.Print("{}: no chunks\n", context.out.Name(words[1]));
  return context.Finish();
}

}  // namespace picket::cli
