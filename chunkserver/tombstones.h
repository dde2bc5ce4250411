// Tombstones are collected when nothing of the deleted replica's time can come late any more (F21):
//
// 1. here: the session that could hold orders for it is over (a newer epoch is marked, or this is another
//    boot: the fence refuses every order of that time), and the keys of that time are retired;
// 2. at the master: the chunk has no record, so that nobody will order anything for it again.
// Until both hold, the marks stay and refuse late creations.
// Runs on the chunkserver's executor.
#pragma once

#include <set>

#include "chunkserver/replica_store.h"
#include "chunkserver/server_state.h"
#include "chunkserver/token_verifier.h"

namespace picket::cs {

// A tombstone's slot, this boot, the mark, and the keys: the lowest that is honoured, and the newest that was
// when this boot first knew any (for tombstones that do not say theirs). Pure.
struct TombstoneGate {
  Incarnation boot;
  Epoch epoch;
  uint64_t oldest_key = 0;
  uint64_t first_newest_key = 0;
};
bool MayBeForgotten(const Slot& tombstone, const TombstoneGate& gate);

class Tombstones {
 public:
  Tombstones(Env& env, const Self& self, ServerState& state, ReplicaStore& store, TokenVerifier& keys)
      : env_(env), self_(self), state_(state), store_(store), keys_(keys) {}

  // Those that may go as far as this server knows; a part of all in turn.
  std::set<ChunkId> Offer();
  // The master agreed. Judged again under the chunk's lock.
  Task<Status> Forget(ChunkId chunk);

  static constexpr size_t kMaxOffered = 500;   // in one heartbeat
  static constexpr size_t kMaxLookedAt = 5000;

 private:
  TombstoneGate Gate();

  Env& env_;
  const Self& self_;
  ServerState& state_;
  ReplicaStore& store_;
  TokenVerifier& keys_;
  ChunkId after_;
  uint64_t first_newest_key_ = 0;
};

}  // namespace picket::cs
