// The answer to an order that raises a mark: a promise (F5). Shared by grants and recoveries.
#pragma once

#include <optional>

#include "chunkserver/replica_store.h"
#include "proto/chunkserver_master.pb.h"

namespace picket::cs {

// Everything applied is durable on return, and so is the slot it is told from; so also a repeat promises what
// it reports. With `limit` it is told as if the replica ended there: no byte changes, and what was sealed or
// acknowledged beyond is left out. REQUIRES: the chunk's lock, and store.Use.
Task<Result<proto::AdvanceVersionResponse>> Promise(ReplicaPtr replica, Self self, Version mark_before,
                                                    std::optional<uint64_t> limit);

// The boot that vouches for a replica's content after a mark was raised that fills nothing: none, when bytes
// that were given up are still missing.
inline Incarnation VouchedBy(const Marks& before, const Self& self) {
  return before.raised_in ? self.incarnation : Incarnation();
}
// Nothing acknowledged is missing, as far as can be known here.
inline bool IsWhole(const Marks& marks, const Self& self) {
  return marks.state == ReplicaState::kSealed || marks.raised_in == self.incarnation;
}

}  // namespace picket::cs
