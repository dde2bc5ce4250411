#include "master/delete_orders.h"

#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket {

bool DeleteOrders::HasReported(const Replica& replica) const {
  const Server* server = servers_.Find(replica.server);
  return server != nullptr && servers_.LivenessOf(*server) == Liveness::kLive && replica.instance &&
         ((server->reported && replica.session == server->session) || PICKET_MUTANT(delete_after_report));
}

std::optional<Victim> DeleteOrders::Name(ChunkId chunk, const Replica& replica) const {
  if (!HasReported(replica)) return std::nullopt;
  return Victim{chunk, replica, servers_.Find(replica.server)->incarnation};
}

Task<> DeleteOrders::Room(ServerId server) {
  while (in_flight_.size() >= kMaxInFlight || in_flight_at_[server] >= kMaxInFlightPerServer) {
    co_await ended_.Wait();
  }
}

bool DeleteOrders::StillThere(const Victim& victim) const {
  const Replica* now = locations_.Find(victim.chunk, victim.replica.server);
  return now != nullptr && now->instance == victim.replica.instance && now->session == victim.replica.session &&
         now->version == victim.replica.version;
}

void DeleteOrders::Start(const Victim& victim) {
  if (!in_flight_.contains({victim.chunk, victim.replica.server})) env_.Spawn(Run(this, victim));
}

Task<> DeleteOrders::Run(DeleteOrders* self, Victim victim) {
  auto deleted = co_await self->Delete(victim);
  if (deleted) co_return;
  PICKET_LOG(self->env_, kInfo, "chunk {} on chunkserver {} was not deleted: {}", ToString(victim.chunk),
             ToString(victim.replica.server), deleted.error().ToString());
}

Task<Status> DeleteOrders::Delete(Victim victim) {
  const ServerId at = victim.replica.server;
  const std::pair key(victim.chunk, at);
  if (!StillThere(victim) || !in_flight_.insert(key).second) {
    co_return Fail(Code::kSuperseded, "its server reports another replica by now, or it is being deleted");
  }
  ++in_flight_at_[at];
  locations_.SetLeaving(victim.chunk, at, victim.replica.instance, Leaving::kOrdered);
  proto::DeleteReplicaRequest request;
  request.set_chunk(victim.chunk.value);
  request.set_version(victim.replica.version.value);
  request.set_instance(victim.replica.instance.value);
  auto response = co_await orders_.Send<proto::DeleteReplicaResponse>(
      proto::DELETE_REPLICA, at, victim.incarnation, orders_.NewAttempt(), std::move(request), 10s);
  in_flight_.erase(key);
  --in_flight_at_[at];
  ended_.NotifyAll();
  if (response) {
    locations_.Remove(victim.chunk, at, victim.replica.instance);
    co_return Status();
  }
  // The fence's word that it is not that replica any more is final; anything else says nothing.
  const Code code = response.error().code;
  const bool refused = code == Code::kStaleVersion || code == Code::kConflict;
  locations_.SetLeaving(victim.chunk, at, victim.replica.instance, refused ? Leaving::kNo : Leaving::kUnanswered);
  co_return Fail(response.error());
}

}  // namespace picket
