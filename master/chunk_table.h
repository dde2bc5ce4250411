// The chunk records: what the master durably knows of each chunk (records.proto Chunk), in three tables
// (keys.h): the records, the places in files (only while a chunk belongs to one), and the garbage (only
// while replicas wait to be deleted).
//
// 1. A chunk is open (members, no length), sealed (length and digest, no members) or garbage
//    (inode 0, neither members nor a place in a file). Garbage never becomes anything else.
// 2. `minted` never goes down and is never below `current`; an id is handed out once, because it bears
//    the number of an epoch that the activation made durable first.
// 3. The tables here stage rows in the caller's batch; nothing is durable before that batch is.
// Runs on the master's executor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "master/meta_store.h"
#include "proto/records.pb.h"

namespace picket {

struct ChunkRow {
  ChunkId id;
  record::Chunk record;
};

// The file's end and its stored bytes as a seal at `length` leaves them. `before`: the open chunk's record.
inline void NoteSealedLength(record::Inode* file, const record::Chunk& before, uint64_t length) {
  file->set_stored_bytes(file->stored_bytes() - before.length() + length);
  file->set_length(std::max(file->length(), before.index() * file->chunk_size() + length));
}

class ChunkTable {
 public:
  explicit ChunkTable(MetaStore& store) : store_(store) {}

  // A chunk handle never used before: epoch << 32 | counter. REQUIRES: the store is active.
  ChunkId NewId();
  // Whether an epoch of this history may have handed that id out.
  bool MayBeOurs(ChunkId id) const;
  // The number that a next version of this chunk bears: max(minted + 1, epoch << 32 | 1). It may be used
  // only when a record with it as `minted` is durable.
  Version NextVersion(const record::Chunk& record) const;

  // nullopt: no such chunk, or its garbage is gone. kCorrupt / kIoError when the disk fails.
  Result<std::optional<record::Chunk>> Get(ChunkId id) const;
  // The chunk at a place of a file.
  Result<std::optional<ChunkRow>> At(InodeId inode, uint64_t index) const;
  // One more than the index of the last chunk below `end`; 0: there is none.
  Result<uint64_t> CountBelow(InodeId inode, uint64_t end) const;
  // The chunks of a file in the order of their index, from `first_index` on, at most `limit`.
  Result<std::vector<ChunkRow>> OfFile(InodeId inode, uint64_t first_index, size_t limit) const;
  // Every chunk with an id above `after` (garbage too), in the order of ids, at most `limit`.
  Result<std::vector<ChunkRow>> Scan(ChunkId after, size_t limit) const;
  // The garbage with an id above `after`, at most `limit`.
  Result<std::vector<ChunkRow>> Garbage(ChunkId after, size_t limit) const;

  // Sets the record of a chunk that belongs to a file, and its place in it.
  void Put(Batch* batch, ChunkId id, const record::Chunk& record) const;
  // Gives a sealed chunk to another file, `base` places on.
  void Move(Batch* batch, ChunkId id, record::Chunk record, InodeId file, uint64_t base) const;
  // Takes the chunk out of its file: a garbage record is left, until no server has a replica. Ends every
  // attempt on it (F8). `record` is the present one, or of a chunk that never got into a file.
  void TurnToGarbage(Batch* batch, ChunkId id, record::Chunk record) const;
  // Forgets garbage for good. REQUIRES: no server reports a replica.
  void Forget(Batch* batch, ChunkId id) const;

 private:
  MetaStore& store_;
  uint32_t next_ = 0;
};

}  // namespace picket
