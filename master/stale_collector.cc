#include "master/stale_collector.h"

#include <algorithm>

#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket {

Task<> StaleCollector::Run() {
  for (;;) {
    co_await env_.Sleep(options_.interval);
    auto ok = co_await Pass();
    if (ok) continue;
    const bool stops = store_.failed() || !serving_.Check();
    PICKET_LOG(env_, kWarning, "collecting stale replicas {}: {}", stops ? "stops" : "is tried again later",
               ok.error().ToString());
    if (stops) co_return;
  }
}

Task<Status> StaleCollector::Pass() {
  for (size_t looked = 0; looked < kMaxPerPass; looked += kStep) {
    PICKET_CO_TRY(serving_.Check());
    const std::vector<ChunkId> chunks = locations_.Next(after_, kStep);
    const bool last = chunks.size() < kStep;
    std::vector<Victim> due;
    Suspects now;
    for (ChunkId chunk : chunks) PICKET_CO_TRY(Look(chunk, &now, &due));
    // What has become of the suspects in this range is in `now`.
    const auto from = suspects_.lower_bound({after_, ServerId()});
    const auto to = last ? suspects_.end() : suspects_.lower_bound({ChunkId(chunks.back().value + 1), ServerId()});
    suspects_.erase(from, to);
    suspects_.merge(now);
    after_ = last ? ChunkId() : chunks.back();
    for (const Victim& victim : due) {
      co_await deletes_.Room(victim.replica.server);
      PICKET_CO_TRY(serving_.Check());
      auto record = chunks_.Get(victim.chunk);
      if (!record) co_return Fail(record.error());
      if (MayGo(victim.chunk, *record ? &**record : nullptr, victim.replica)) deletes_.Start(victim);
    }
    if (last) break;
    co_await env_.Sleep(Nanos(0));
  }
  co_return Status();
}

Worth StaleCollector::Judge(const record::Chunk* record, const Replica& replica) const {
  const Server* server = servers_.Find(replica.server);
  ReplicaFacts facts = FactsOf(replica, server == nullptr ? Incarnation() : server->incarnation);
  facts.leaving = false;
  return JudgeReplica(record, store_.activations(), facts);
}

Status StaleCollector::Look(ChunkId chunk, Suspects* suspects, std::vector<Victim>* due) {
  auto found = chunks_.Get(chunk);
  if (!found) return Fail(found.error());
  const record::Chunk* record = *found ? &**found : nullptr;
  const Replica* victim = nullptr;
  for (const Replica& replica : locations_.Of(chunk)) {
    const Worth worth = Judge(record, replica);
    if (worth != Worth::kStale && worth != Worth::kOrphan) continue;
    const std::pair key(chunk, replica.server);
    Suspect suspect{replica.instance, replica.version, env_.Now()};
    const auto known = suspects_.find(key);
    if (known != suspects_.end() && known->second.instance == replica.instance &&
        known->second.version == replica.version) {
      suspect = known->second;
    }
    const bool orphan = worth == Worth::kOrphan && !PICKET_MUTANT(orphan_waits);
    const Nanos grace = orphan ? options_.orphan_grace : options_.settle;
    const bool may_go = MayGo(chunk, record, replica);
    if (!may_go && replica.state == proto::CORRUPT && !suspect.told) {
      suspect.told = true;
      PICKET_LOG(env_, kWarning, "chunk {} on chunkserver {} is corrupt and stays: too few other replicas count",
                 ToString(chunk), ToString(replica.server));
    }
    // The one whose order may be under way comes before all others.
    const bool ordered = replica.leaving != Leaving::kNo;
    if (may_go && env_.Now() - suspect.since >= grace && (victim == nullptr || ordered)) victim = &replica;
    suspects->emplace(key, suspect);
  }
  if (victim == nullptr) return {};
  if (auto named = deletes_.Name(chunk, *victim)) due->push_back(*named);
  return {};
}

bool StaleCollector::MayGo(ChunkId chunk, const record::Chunk* record, const Replica& replica) const {
  // Of one that is gone already, or was replaced, the order's own check knows.
  const bool other_leaves = std::ranges::any_of(locations_.Of(chunk), [&](const Replica& other) {
    return other.server != replica.server && other.leaving != Leaving::kNo;
  });
  if (other_leaves) return false;
  switch (Judge(record, replica)) {
    case Worth::kOrphan: return chunks_.MayBeOurs(chunk);
    case Worth::kStale: return EnoughWithout(chunk, *record);
    default: return false;
  }
}

bool StaleCollector::EnoughWithout(ChunkId chunk, const record::Chunk& record) const {
  if (record.integrity() || record.minted() != record.current()) return false;
  if (!record.sealed()) {
    const auto session = sessions_.Find(InodeId(record.inode()));
    if (!session || session->recovering) return false;
  }
  size_t good = 0;
  for (const Replica& replica : locations_.Of(chunk)) {
    if (IsGood(Judge(&record, replica)) && replica.leaving == Leaving::kNo && deletes_.HasReported(replica)) ++good;
  }
  if (!record.sealed() && good < static_cast<size_t>(record.members_size())) return false;
  return good >= record.replication() || PICKET_MUTANT(stale_goal_first);
}

}  // namespace picket
