#include "chunkserver/tombstones.h"

#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket::cs {

bool MayBeForgotten(const Slot& t, const TombstoneGate& gate) {
  if (t.state != ReplicaState::kTombstone) return false;
  const bool session_over = t.raised_in != gate.boot || t.epoch.number < gate.epoch.number;
  if (!session_over && !PICKET_MUTANT(tombstone_session)) return false;
  const uint64_t newest_then = t.retired_key != 0 ? t.retired_key : gate.first_newest_key;
  const bool keys_retired = gate.oldest_key > newest_then && newest_then != 0;
  return keys_retired || PICKET_MUTANT(tombstone_key);
}

TombstoneGate Tombstones::Gate() {
  if (first_newest_key_ == 0) first_newest_key_ = keys_.newest_key();
  return TombstoneGate{self_.incarnation, state_.mark().epoch, keys_.oldest_key(), first_newest_key_};
}

std::set<ChunkId> Tombstones::Offer() {
  std::set<ChunkId> out;
  const TombstoneGate gate = Gate();
  for (const ReplicaPtr& replica : store_.Tombstones(&after_, kMaxLookedAt)) {
    if (out.size() == kMaxOffered) {
      after_ = *out.rbegin();
      break;
    }
    if (MayBeForgotten(replica->file->slot(), gate)) out.insert(replica->chunk);
  }
  return out;
}

Task<Status> Tombstones::Forget(ChunkId chunk) {
  LockedReplica locked = co_await store_.Locked(chunk);
  if (!locked.replica || !locked.replica->file) co_return Status();
  if (!MayBeForgotten(locked.replica->file->slot(), Gate())) co_return Status();
  PICKET_CO_TRY(co_await store_.ForgetTombstone(locked.replica));
  PICKET_LOG(env_, kDebug, "chunk {}: its tombstone is gone (version {})", ToString(chunk),
             locked.marks.version.ToString());
  co_return Status();
}

}  // namespace picket::cs
