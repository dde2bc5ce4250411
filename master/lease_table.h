// Primary leases as the master counts them, in memory (design §2).
//
// 1. A lease protects only reads that an old primary serves, and avoids duels; write safety is version
//    and members (F19). So it may be lost with the process, if the next one waits.
// 2. It is counted from the receipt of the primary's answer that the grant uses, or of the heartbeat that
//    extends it: never earlier than the primary counts. The primary counts from before that answer left.
// 3. After an activation every unsealed chunk of an earlier epoch may have a primary for one full period.
// 4. A server that comes back with another incarnation has no lease any more (D4).
// Runs on the master's executor.
#pragma once

#include <map>
#include <optional>

#include "common/base/ids.h"
#include "common/env/env.h"
#include "common/env/sync.h"

namespace picket {

class LeaseTable {
 public:
  struct Lease {
    Version version;
    ServerId primary;
    Incarnation incarnation;
    Mono end;
    uint64_t length = 0;  // the chunk had when it was granted; 0 after a master's start
  };
  LeaseTable(Env& env, Nanos period) : env_(env), period_(period), activated_(env.Now()), changed_(env) {}

  Nanos period() const { return period_; }

  // `answered`: when the primary's answer for this version was received.
  void Grant(ChunkId chunk, Version version, ServerId primary, Incarnation incarnation, Mono answered,
             uint64_t length = 0);
  // One more period from now, for the holder itself, also when this table has forgotten it with an earlier
  // process. False when another lease is known. The caller has checked that the version is committed, no
  // attempt is under way, and the server is a member of that incarnation.
  bool Extend(ChunkId chunk, Version version, ServerId primary, Incarnation incarnation);
  // Released, revoked, sealed or deleted.
  void Void(ChunkId chunk);
  void ServerRestarted(ServerId server, Incarnation now);

  // The lease that runs.
  std::optional<Lease> Find(ChunkId chunk) const;
  // Until when a primary that this process does not know of may serve the chunk; nothing when that cannot be.
  std::optional<Mono> UnknownUntil(ChunkId chunk, Version current, uint32_t epoch) const;

  // Some lease ended before its time.
  Signal& changed() { return changed_; }
  // Forgets what has run out.
  void Sweep();
  size_t size() const { return leases_.size(); }

 private:
  Env& env_;
  const Nanos period_;
  const Mono activated_;
  std::map<ChunkId, Lease> leases_;
  Signal changed_;
};

}  // namespace picket
