#include <fmt/format.h>

#include <algorithm>

#include "client/cli/demo/scenes.h"
#include "client/cli/text.h"

namespace picket::cli::demo {

Status PlayOldReplica(Play& play) {
  Stage& stage = play.stage;
  Story& story = play.story;
  RawWriter& writer = play.writer;
  const uint64_t chunk = writer.grant().token().chunk();
  const uint64_t version = writer.grant().token().version();
  const Endpoint place = EndpointOf(play.old_primary);
  const std::string name = stage.NameOf(place);
  story.Begin("The old replica");
  story.Explain(
      "The same server still has its copy of the chunk, without \"three\". Old bytes that look whole are the most "
      "dangerous ones to read.");

  const auto described = stage.client().DescribeChunk(chunk);
  if (!described) return Fail(Of(described.error()));
  const auto old =
      std::ranges::find(described->replicas, HexId(play.old_primary.server()), &client::ReplicaInfo::server);
  if (old != described->replicas.end() && old->counted) return Fail(NotAsTold("the old replica counts"));
  story.Tell("chunk show", fmt::format("has the chunk at version {}, {}", TokenText(described->version),
                                       old == described->replicas.end()
                                           ? "and does not list that copy any more"
                                           : fmt::format("and that copy at {}: not counted", TokenText(old->version))));
  proto::ReadRequest read;
  read.set_chunk(chunk);
  read.set_version(version);
  read.set_length(1 << 16);
  const auto answer = stage.wire().Call<proto::ReadResponse>(place, proto::READ, read, kCallTimeout);
  PICKET_TRY(ExpectRefusal(story, "a read of the present version, at the old replica", name,
                           answer ? Status() : Status(Fail(answer.error())), Code::kReplicaBehind));
  const auto content = ReadFile(stage, writer.path());
  if (!content || *content != "one\ntwo\nthree\n")
    return Fail(NotAsTold("a reader does not get all acknowledged bytes"));
  story.Tell("A reader", "gets \"one\", \"two\", \"three\", from the servers that count");

  PICKET_TRY(writer.SealAndClose(content->size()));
  story.Tell("C", "seals the chunk and closes the file");
  const auto closed = stage.client().DescribeChunk(chunk);
  if (!closed) return Fail(Of(closed.error()));
  const auto counted = std::ranges::count(closed->replicas, true, &client::ReplicaInfo::counted);
  if (!closed->sealed || counted != writer.grant().chain_size())
    return Fail(NotAsTold("the old replica counts in the sealed chunk"));
  story.Tell(
      "chunk show",
      fmt::format("has it sealed at version {}, {} bytes, on {} servers that count; the old copy is not one of them",
                  TokenText(closed->version), closed->length, counted));
  story.End(
      "An old copy is served to nobody and counted nowhere. When enough others count, its server is ordered to set it "
      "aside.");
  return {};
}

}  // namespace picket::cli::demo
