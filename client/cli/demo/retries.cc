#include <fmt/format.h>

#include "client/cli/demo/scenes.h"
#include "client/cli/text.h"

namespace picket::cli::demo {

Status PlayRetries(Play& play) {
  Stage& stage = play.stage;
  Story& story = play.story;
  RawWriter& writer = play.writer;
  story.Begin("Retries and late duplicates");
  story.Explain(
      "An answer may be lost and a message may come twice, or late. The same request again is harmless; an old one is "
      "not let in.");

  const auto first = writer.Create();
  if (!first) return Fail(first.error());
  const auto second = writer.Create();
  if (!second) return Fail(second.error());
  if (first->generation() != second->generation() || first->status().inode() != second->status().inode()) {
    return Fail(NotAsTold("the repeated creation made another file"));
  }
  story.Tell(
      "C",
      fmt::format("makes {}, asks again under the same mutation id as if the answer had been lost, and gets the first "
                  "answer: inode {}, generation {}",
                  writer.path(), HexId(first->status().inode()), TokenText(first->generation())));
  PICKET_TRY(writer.AddChunk());
  const proto::WriteToken token = writer.grant().token();
  const proto::Hop primary = writer.grant().chain(0);
  const std::string where = fmt::format("the primary, {}", stage.NameOf(EndpointOf(primary)));
  story.Tell("C", fmt::format("may write chunk {} under version {}; the primary is {}", HexId(token.chunk()),
                              TokenText(token.version()), stage.NameOf(EndpointOf(primary))));
  const RawWriter::Packet one{.serial = 1, .offset = 0, .bytes = "one\n"};
  PICKET_TRY(writer.Send(primary, token, one));
  PICKET_TRY(writer.Send(primary, token, {.serial = 2, .offset = 4, .bytes = "two\n"}));
  story.Tell(
      "C",
      "sends packets 1 and 2 under the same token: a token that equals the mark is accepted, as often as it comes");
  PICKET_TRY(
      ExpectRefusal(story, "packet 1, delivered again", where, writer.Send(primary, token, one), Code::kOutOfOrder));
  const auto content = ReadFile(stage, writer.path());
  if (!content || *content != "one\ntwo\n") return Fail(NotAsTold("the duplicate left a trace"));
  story.End("Each request has one effect: \"one\", \"two\", once each, in this order.");
  return {};
}

}  // namespace picket::cli::demo
