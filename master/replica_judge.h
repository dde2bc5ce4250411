// What a replica that a server reports is worth, by the chunk's record alone. Pure: the one judge of
// who may be counted, shown to readers, or deleted.
//
// 1. While a chunk is unsealed, membership decides, never a comparison of versions (F1).
// 2. Of a sealed chunk a replica counts iff it is sealed, at the record's version, with its length and
//    its digest (F9).
// 3. An attempt that opens a sealed chunk again raises marks above the record's version before anything is
//    committed. Only replicas that counted are asked, and nobody holds a token for such a version, so they
//    have the sealed bytes still: between two committed sets they count for nothing and are readable.
// 4. A replica whose deletion may be under way counts for nothing, whatever it is (F13).
// 5. A version that this history did not mint is served to nobody and never deleted (D14).
#pragma once

#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "proto/chunkserver_master.pb.h"
#include "proto/records.pb.h"

namespace picket {

enum class Worth {
  kMember,   // of the granted set of an unsealed chunk; the server has not restarted since
  kUnclean,  // of the granted set, but its server has restarted since: no source, not for readers (F4)
  kCounted,  // of a sealed chunk, good
  kBetween,  // of a sealed chunk, raised by an attempt that is not committed: has its bytes
  kStale,    // neither: whatever its version
  kLeaving,  // an order to delete it may have left: counts as gone
  kGarbage,  // the chunk is to be deleted
  kOrphan,   // no such chunk
  kAhead,    // its version was not minted by this history: AHEAD_OF_MASTER
};
inline constexpr size_t kWorths = 9;

// A replica as the master knows it.
struct ReplicaFacts {
  ServerId server;
  Incarnation incarnation;  // of the server, at its present registration
  Version version;
  proto::ReplicaState state = proto::REPLICA_STATE_UNKNOWN;
  uint64_t length = 0;
  uint32_t digest = 0;
  bool leaving = false;     // an order to delete it may have left
};

// The same by a master of that history (its activations, oldest first): a version of an epoch that it did not
// go through is ahead, unless the record vouches for it, by an adoption. So is a replica without a record from
// before an adoption: it may be of the history that was given up.
Worth JudgeReplica(const record::Chunk* record, const std::vector<record::Activation>& history,
                   const ReplicaFacts& replica);
// `record` null: the chunk is unknown. `epoch`: the judging master's number.
Worth JudgeReplica(const record::Chunk* record, uint32_t epoch, const ReplicaFacts& replica);

// It counts towards the goal.
constexpr bool IsGood(Worth worth) { return worth == Worth::kMember || worth == Worth::kCounted; }
// Readers may be sent there: the replica judges the version that they read at.
constexpr bool IsReadable(Worth worth) { return IsGood(worth) || worth == Worth::kBetween; }

std::string_view WorthName(Worth worth);

}  // namespace picket
