// The primary leases this server holds. In memory only: a restart voids them (D4).
//
// A lease is counted from just before the first answer for its version left, or from just before the
// heartbeat that extended it left, less a margin for drifting clocks (F19): it ends here before it ends
// at the master. Write safety does not rest on it: version and members do (design §2).
// Runs on the chunkserver's executor.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/env/env.h"
#include "proto/chunkserver_master.pb.h"

namespace picket::cs {

struct PrimaryLease {
  Version version;
  Generation generation;
  std::vector<proto::Hop> others;  // the members after this server, in chain order
  Mono ends;
  bool mutated = false;  // since the last heartbeat
};

class LeaseHolder {
 public:
  LeaseHolder(Env& env, uint32_t margin_percent) : env_(env), margin_percent_(margin_percent) {}

  // NOT_PRIMARY when nothing of the lease is left.
  Status Grant(ChunkId chunk, PrimaryLease lease, Mono counted_from, Nanos period);
  // The lease for exactly this version, while it runs.
  std::optional<PrimaryLease> Held(ChunkId chunk, Version version) const;
  void MarkMutated(ChunkId chunk, Version version);
  // At this version or below.
  void Revoke(ChunkId chunk, Version version);
  // Whatever the version: the mark has moved, or the replica has gone.
  void Drop(ChunkId chunk) { leases_.erase(chunk); }
  Nanos Left(ChunkId chunk) const;

  // The leases to ask an extension for: mutated since the last call. Ended ones are forgotten.
  std::vector<proto::HeartbeatRequest::Extension> TakeExtensions();
  // They are asked for again: the heartbeat that carried them failed.
  void PutBack(const std::vector<proto::HeartbeatRequest::Extension>& extensions);
  // The master extended, in its answer to a heartbeat sent at `sent`.
  void Extend(ChunkId chunk, Version version, Mono sent, Nanos period);

  size_t size() const { return leases_.size(); }

 private:
  Mono End(Mono from, Nanos period) const { return from + period - period * margin_percent_ / 100; }

  Env& env_;
  const uint32_t margin_percent_;
  std::map<ChunkId, PrimaryLease> leases_;
};

}  // namespace picket::cs
