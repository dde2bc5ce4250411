#include <fmt/format.h>

#include "client/cli/demo/scenes.h"
#include "client/cli/text.h"

namespace picket::cli::demo {
namespace {

constexpr std::chrono::milliseconds kPatience{400};  // with a primary that stands still

}  // namespace

Status PlayOldPrimary(Play& play) {
  Stage& stage = play.stage;
  Story& story = play.story;
  RawWriter& writer = play.writer;
  story.Begin("The old primary");
  story.Explain(
      "The primary is the replica's server that puts a chunk's writes in order. This one stops in mid-write, the "
      "others go on without "
      "it, and then it comes back with its memory of being the primary.");

  play.old_token = writer.grant().token();
  play.old_primary = writer.grant().chain(0);
  const proto::WriteToken& token = play.old_token;
  const Endpoint old_place = EndpointOf(play.old_primary);
  const std::string old_name = stage.NameOf(old_place);
  PICKET_TRY(stage.Pause(old_place));
  story.Tell(old_name, fmt::format("stands still (SIGSTOP), primary of version {}", TokenText(token.version())));
  const RawWriter::Packet three{.serial = 3, .offset = 8, .bytes = "three\n"};
  const Status hung = writer.Send(play.old_primary, token, three, kPatience);
  if (hung) return Fail(NotAsTold("a stopped server answered"));
  story.Tell("C", fmt::format("sends packet 3 and hears nothing ({}): whether it will be applied, nobody knows",
                              CodeName(hung.error().code)));
  PICKET_TRY(writer.GrantWithoutPrimary(three.offset));
  const proto::WriteGrant& grant = writer.grant();
  const proto::Hop primary = grant.chain(0);
  const std::string name = stage.NameOf(EndpointOf(primary));
  if (grant.token().version() <= token.version()) return Fail(NotAsTold("the new version is not above the old one"));
  if (grant.length() != three.offset) return Fail(NotAsTold("the set does not go on from the last acknowledged byte"));
  story.Tell(
      "The master",
      fmt::format("has waited for the end of the primary's lease; version {} is on {} servers, the primary is {}, "
                  "and C goes on from byte {}",
                  TokenText(grant.token().version()), grant.chain_size(), name, grant.length()));
  PICKET_TRY(writer.Send(primary, grant.token(), {.serial = 1, .offset = three.offset, .bytes = three.bytes}));
  story.Tell("C",
             fmt::format("sends \"three\" again: the first write after the fail-over is accepted, under version {}",
                         TokenText(grant.token().version())));
  PICKET_TRY(ExpectRefusal(story, "a write of the old version, at the new primary", name,
                           writer.Send(primary, token, {.serial = 4, .offset = 14, .bytes = "late\n"}),
                           Code::kStaleVersion));
  PICKET_TRY(stage.Resume(old_place));
  story.Tell(old_name, "goes on (SIGCONT), with packet 3 still in its socket");
  PICKET_TRY(ExpectRefusal(story, "a write of the old version, at the old primary", old_name,
                           writer.Send(play.old_primary, token, {.serial = 4, .offset = 14, .bytes = "late\n"}),
                           Code::kNotPrimary));
  const auto content = ReadFile(stage, writer.path());
  if (!content || *content != "one\ntwo\nthree\n") return Fail(NotAsTold("the old primary's writes are in the file"));
  story.End(
      "\"three\" is there once. Without its lease the old primary takes nothing, and could pass nothing on: the "
      "others' marks are above its version.");
  return {};
}

}  // namespace picket::cli::demo
