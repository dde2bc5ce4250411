#include "master/garbage_collector.h"

#include <algorithm>

#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket {

Task<> GarbageCollector::Run() {
  for (;;) {
    co_await env_.Sleep(options_.interval);
    leases_.Sweep();
    auto ok = co_await Pass();
    if (ok) continue;
    const bool stops = store_.failed() || !serving_.Check();
    PICKET_LOG(env_, kWarning, "the garbage collector {}: {}", stops ? "stops" : "tries again later",
               ok.error().ToString());
    if (stops) co_return;
  }
}

bool GarbageCollector::EveryoneHeardSince(Mono when) const {
  return std::ranges::all_of(servers_.all(), [&](const auto& entry) {
    const Server& server = entry.second;
    return servers_.LivenessOf(server) == Liveness::kDead || (server.reported && server.heard > when);
  });
}

bool GarbageCollector::Look(const ChunkRow& garbage, std::vector<Victim>* due) {
  const Mono seen = first_seen_.try_emplace(garbage.id, env_.Now()).first->second;
  const std::vector<Replica>& replicas = locations_.Of(garbage.id);
  for (const Replica& replica : replicas) {
    const Server* server = servers_.Find(replica.server);
    // A version that this history did not mint is an operator's matter (D14).
    if (replica.version.value > garbage.record.minted()) continue;
    if (server == nullptr || servers_.LivenessOf(*server) != Liveness::kLive || !replica.instance) continue;
    const bool reported = server->reported && replica.session == server->session;
    if (!reported && !PICKET_MUTANT(delete_after_report)) continue;
    due->push_back(Victim{garbage.id, replica, server->incarnation});
  }
  const Mono settled = std::max(seen + options_.settle, activated_ + options_.dead_after);
  return replicas.empty() && env_.Now() > settled && !servers_.all().empty() && EveryoneHeardSince(settled);
}

Task<Status> GarbageCollector::Pass() {
  ChunkId after;
  std::map<ChunkId, Mono> still;
  for (;;) {
    PICKET_CO_TRY(serving_.Check());
    auto rows = chunks_.Garbage(after, kStep);
    if (!rows) co_return Fail(rows.error());
    std::vector<Victim> due;
    std::vector<ChunkId> gone;
    for (const ChunkRow& row : *rows) {
      if (Look(row, &due)) {
        gone.push_back(row.id);
      } else {
        still[row.id] = first_seen_[row.id];
      }
    }
    // Before any wait: a server that reports one of them meanwhile would be left with an orphan.
    if (!gone.empty()) PICKET_CO_TRY(co_await Forget(std::move(gone)));
    for (const Victim& victim : due) {
      const ServerId at = victim.replica.server;
      while (in_flight_.size() >= kMaxInFlight || in_flight_at_[at] >= kMaxInFlightPerServer) {
        co_await ended_.Wait();
      }
      PICKET_CO_TRY(serving_.Check());
      // Only what its server still says it has; the order names it exactly anyway.
      const Replica* now = locations_.Find(victim.chunk, at);
      if (now == nullptr || now->instance != victim.replica.instance || now->session != victim.replica.session) continue;
      if (!in_flight_.insert({victim.chunk, at}).second) continue;
      ++in_flight_at_[at];
      env_.Spawn(Delete(this, victim));
    }
    if (rows->size() < kStep) break;
    after = rows->back().id;
    co_await env_.Sleep(Nanos(0));
  }
  first_seen_ = std::move(still);
  co_return Status();
}

Task<> GarbageCollector::Delete(GarbageCollector* self, Victim victim) {
  proto::DeleteReplicaRequest request;
  request.set_chunk(victim.chunk.value);
  request.set_version(victim.replica.version.value);
  request.set_instance(victim.replica.instance.value);
  auto response = co_await self->orders_.Send<proto::DeleteReplicaResponse>(
      proto::DELETE_REPLICA, victim.replica.server, victim.incarnation, self->orders_.NewAttempt(), std::move(request),
      10s);
  if (response) {
    self->locations_.Remove(victim.chunk, victim.replica.server, victim.replica.instance);
  } else {
    PICKET_LOG(self->env_, kInfo, "chunk {} on chunkserver {} was not deleted: {}", ToString(victim.chunk),
               ToString(victim.replica.server), response.error().ToString());
  }
  self->in_flight_.erase({victim.chunk, victim.replica.server});
  --self->in_flight_at_[victim.replica.server];
  self->ended_.NotifyAll();
}

Task<Status> GarbageCollector::Forget(std::vector<ChunkId> gone) {
  Batch batch;
  for (ChunkId id : gone) chunks_.Forget(&batch, id);
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  co_return Status();
}

}  // namespace picket
