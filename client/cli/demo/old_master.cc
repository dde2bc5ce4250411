#include <fmt/format.h>

#include <algorithm>

#include "client/cli/demo/scenes.h"
#include "client/cli/text.h"
#include "proto/chunkserver_master.pb.h"

namespace picket::cli::demo {
namespace {

struct Target {
  Endpoint place;
  proto::DescribeReplicaResponse replica;
};

// A copy that counts, of the chunk that was just closed.
Result<Target> FindTarget(Play& play) {
  const proto::Hop& hop = play.writer.grant().chain(0);
  proto::DescribeReplicaRequest request;
  request.set_chunk(play.writer.grant().token().chunk());
  auto replica = play.stage.wire().Call<proto::DescribeReplicaResponse>(EndpointOf(hop), proto::DESCRIBE_REPLICA,
                                                                        request, kCallTimeout);
  if (!replica) return Fail(replica.error());
  return Target{EndpointOf(hop), std::move(*replica)};
}

}  // namespace

Status PlayOldMaster(Play& play) {
  Stage& stage = play.stage;
  Story& story = play.story;
  RawWriter& writer = play.writer;
  story.Begin("The old master");
  story.Explain(
      "A master that was replaced, or an order of it that was under way for long, must not change anything. Each start "
      "of a master is a new "
      "epoch, and every order bears one.");

  const auto before = stage.client().Report();
  if (!before) return Fail(Of(before.error()));
  const auto target = FindTarget(play);
  if (!target) return Fail(target.error());
  const std::string name = stage.NameOf(target->place);
  proto::DeleteReplicaRequest order;
  order.mutable_header()->set_cluster(before->cluster_id);
  order.mutable_header()->mutable_epoch()->set_number(before->epoch);
  order.mutable_header()->mutable_epoch()->set_nonce(before->epoch_nonce);
  order.mutable_header()->set_revision(before->revision);
  order.mutable_header()->set_server(writer.grant().chain(0).server());
  order.mutable_header()->set_incarnation(target->replica.incarnation());
  order.set_chunk(target->replica.replica().chunk());
  order.set_version(target->replica.replica().version());
  order.set_instance(target->replica.replica().instance());
  story.Tell(
      "The master",
      fmt::format("of epoch {} writes an order for {}: delete the copy of {} at version {}. The order stays on its way",
                  before->epoch, name, writer.path(), TokenText(order.version())));
  PICKET_TRY(stage.RestartMaster());
  const auto after = stage.client().Report();
  if (!after) return Fail(Of(after.error()));
  if (after->epoch <= before->epoch) return Fail(NotAsTold("a restarted master serves in its old epoch"));
  story.Tell("The master",
             fmt::format(
                 "is stopped and started again: epoch {}, which every chunkserver has made its mark before it reported",
                 after->epoch));
  const auto answer =
      stage.wire().Call<proto::DeleteReplicaResponse>(target->place, proto::DELETE_REPLICA, order, kCallTimeout);
  PICKET_TRY(ExpectRefusal(story, fmt::format("the order of epoch {}", before->epoch), name,
                           answer ? Status() : Status(Fail(answer.error())), Code::kStaleEpoch));
  const auto again = writer.Create();
  if (!again) return Fail(again.error());
  story.Tell(
      "C",
      fmt::format(
          "repeats its very first request, under its mutation id: the new master gives the first answer, generation {}",
          TokenText(again->generation())));
  const auto content = ReadFile(stage, writer.path());
  if (!content || *content != "one\ntwo\nthree\n") return Fail(NotAsTold("the file suffered from the restart"));
  story.End("The copy is still there: an order is judged by the epoch that it bears, not by when it comes.");
  return {};
}

}  // namespace picket::cli::demo
