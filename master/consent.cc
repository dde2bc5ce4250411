#include "master/consent.h"

#include "common/base/mutation.h"

namespace picket {

bool MayForgetTombstone(const record::Chunk* record, ChunkId chunk, uint32_t epoch) {
  if (record != nullptr && !PICKET_MUTANT(tombstone_confirmed)) return false;
  return static_cast<uint32_t>(chunk.value >> 32) < epoch;
}

bool MayLeaveQuarantine(const record::Chunk* record, size_t good_replicas) {
  if (record == nullptr || record->inode() == 0) return true;
  return good_replicas >= record->replication() || PICKET_MUTANT(quarantine_last_hope);
}

}  // namespace picket
