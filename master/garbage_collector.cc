#include "master/garbage_collector.h"

#include <algorithm>

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
    // A version that this history did not mint is an operator's matter (D14).
    if (replica.version.value > garbage.record.minted()) continue;
    if (auto victim = deletes_.Name(garbage.id, replica)) due->push_back(*victim);
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
      co_await deletes_.Room(victim.replica.server);
      PICKET_CO_TRY(serving_.Check());
      deletes_.Start(victim);
    }
    if (rows->size() < kStep) break;
    after = rows->back().id;
    co_await env_.Sleep(Nanos(0));
  }
  first_seen_ = std::move(still);
  co_return Status();
}

Task<Status> GarbageCollector::Forget(std::vector<ChunkId> gone) {
  Batch batch;
  for (ChunkId id : gone) chunks_.Forget(&batch, id);
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  co_return Status();
}

}  // namespace picket
