// What a replica that a server reports is worth, by the chunk's record alone. Pure: the one judge of
// who may be counted, shown to readers, or deleted.
//
// 1. While a chunk is unsealed, membership decides, never a comparison of versions (F1).
// 2. Of a sealed chunk a replica counts iff it is sealed, at the record's version, with its length and
//    its digest (F9).
// 3. A version that this history did not mint is served to nobody and never deleted (D14).
#pragma once

#include <string_view>

#include "common/base/ids.h"
#include "proto/chunkserver_master.pb.h"
#include "proto/records.pb.h"

namespace picket {

enum class Worth {
  kMember,   // of the granted set of an unsealed chunk; the server has not restarted since
  kUnclean,  // of the granted set, but its server has restarted since: no source, not for readers (F4)
  kCounted,  // of a sealed chunk, good
  kStale,    // neither: whatever its version
  kGarbage,  // the chunk is to be deleted
  kOrphan,   // no such chunk: left alone
  kAhead,    // its version was not minted by this history: AHEAD_OF_MASTER
};

// A replica as the master knows it.
struct ReplicaFacts {
  ServerId server;
  Incarnation incarnation;  // of the server, at its present registration
  Version version;
  proto::ReplicaState state = proto::REPLICA_STATE_UNKNOWN;
  uint64_t length = 0;
  uint32_t digest = 0;
};

// `record` null: the chunk is unknown. `epoch`: the judging master's number.
Worth JudgeReplica(const record::Chunk* record, uint32_t epoch, const ReplicaFacts& replica);

// Readers may be sent there, and it counts towards the goal.
constexpr bool IsGood(Worth worth) { return worth == Worth::kMember || worth == Worth::kCounted; }

std::string_view WorthName(Worth worth);

}  // namespace picket
