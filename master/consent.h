// What a chunkserver may let go for good: only the master knows that nobody will miss it. Pure.
#pragma once

#include "common/base/ids.h"
#include "proto/records.pb.h"

namespace picket {

// A tombstone of this chunk (F21). `record` null: there is none. Without a record nothing is ordered for a
// chunk any more, unless it is being created just now, which an id of an earlier epoch is not.
bool MayForgetTombstone(const record::Chunk* record, ChunkId chunk, uint32_t epoch);

// A replica whose time in quarantine is over: the chunk is gone, or enough replicas count without it (D16).
bool MayLeaveQuarantine(const record::Chunk* record, size_t good_replicas);

}  // namespace picket
