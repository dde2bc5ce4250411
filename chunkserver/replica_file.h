// One replica on disk: <chunk>.data, pure bytes, and <chunk>.meta (replica_format.h); blocks that were
// overwritten and are not yet in place: <chunk>.redo (redo_log.h). Every durable change of a replica is a
// method here.
//
// 1. The mark in the slot never goes back. A change of marks or state becomes visible in memory only
//    after the slot is durable.
// 2. What a slot promises is durable before the slot: data, then the CRC page, then the slot.
// 3. Bytes below the slot's durable length are not changed in place: they are given up by a slot first, or
//    their blocks' new content is durable in the redo file. A block is old or new, never torn.
// 4. A failed sync is never retried: what was written since the last good one may be gone although reads
//    still show it. The replica is given up (kCorrupt in memory) and said to be.
// 5. A write that failed for space changes nothing that is promised.
// 6. A crash of the process loses nothing that Append or Overwrite has returned for; a power cut nothing
//    that a sync, a seal or a mark covers.
//
//   Create ─▶ open ──Append──▶ open ──Seal──▶ sealed ──Raise(reopen)──▶ open
//               ├─ Raise(recovering) ─▶ recovering ──Finish──▶ sealed
//               │  Overwrite, Raise, Cut, SyncUpTo keep the state
//               └─ Entomb ─▶ tombstone;   MarkCorrupt, a failed sync ─▶ corrupt
//
// REQUIRES, unless said otherwise: the caller holds the chunk's lock, and Load succeeded.
// Runs on the chunkserver's executor.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chunkserver/fence.h"
#include "chunkserver/redo_log.h"
#include "chunkserver/replica_format.h"
#include "common/env/sync.h"

namespace picket::cs {

// What an order writes into the slot together.
struct Marking {
  Version version;
  Generation generation;
  ReplicaState state = ReplicaState::kOpen;
  Incarnation raised_in;
  Epoch epoch;
  uint64_t revision = 0;
};

// What a tombstone remembers of the deletion: until nothing of that time can come late any more (F21).
struct Retirement {
  int64_t wall_ns = 0;
  Incarnation boot;
  Epoch epoch;       // of the master that ordered it
  uint64_t key = 0;  // the newest that signs client tokens, as far as is known here
  Retired why = Retired::kUnknown;
};

class ReplicaFile {
 public:
  // A replica that exists; `dir` holds both files. Nothing is opened.
  ReplicaFile(Env& env, std::string dir, Slot slot);
  ReplicaFile(const ReplicaFile&) = delete;

  // Makes both files, space for the whole chunk and the first slot durable, or nothing. With `over`, the
  // slot of a tombstone, its meta file is taken over and the marks in it stay until the new slot is
  // durable. `slot` needs no sequence, lengths or lineage. kNoSpace, kIoError;
  // kAlreadyExists: a file of that name is there, which stays.
  static Task<Result<std::unique_ptr<ReplicaFile>>> Create(Env* env, std::string dir, Slot slot, const Slot* over);

  const Slot& slot() const { return slot_; }
  Marks marks() const;
  uint64_t length() const { return length_; }  // applied; not necessarily durable
  bool dirty() const { return length_ != slot_.durable_length || pending(); }
  // Bytes were replaced since it was last sealed, or created. Survives a crash as the bytes do.
  bool overwritten() const { return slot_.overwritten || pending(); }

  // Opens both files and reads the CRC table; nothing when that is done. kCorrupt when they do not fit
  // the slot (the replica is marked so).
  Task<Status> Load();
  bool loaded() const { return open_ != nullptr; }
  // True if memory holds nothing that the files do not.
  bool CanUnload() const;
  void Unload() {
    open_.reset();
    redo_.reset();
  }

  // After a start, before anything else: finds the longest verified prefix. A replica whose bytes below
  // the durable length are not what the slot says becomes kCorrupt, durably. Replicas sealed without a
  // sync are verified and made durable. Needs no lock; Load is not required.
  Task<Status> Recover();

  // Appends at length(). REQUIRES: `crcs` are the verified CRCs of the parts of `bytes` in each block.
  // On return the bytes survive a crash of the process. `writeback`: begin to write back early.
  Task<Status> Append(Buffer bytes, std::vector<uint32_t> crcs, bool writeback);

  // Replaces bytes that are all below length(). REQUIRES: as Append. On return they survive a crash of the
  // process, and each block they touch is old or new whatever happens. kCorrupt when a block's old bytes do
  // not match their checksum: the replica is marked so.
  Task<Status> Overwrite(uint64_t offset, Buffer bytes, std::vector<uint32_t> crcs);

  // Makes everything applied when it runs durable, at least `length`. Callers that wait for each other
  // share one sync. The chunk's lock is not needed. `lineage`: of the slot when `length` was applied;
  // another one by now is kSuperseded: the caller's bytes belong to the past.
  Task<Status> SyncUpTo(uint64_t length, uint64_t lineage);

  // A promise (F5): everything applied is durable, then the new marks. Raises only.
  Task<Status> Raise(Marking marking);
  // The same, and the content ends at `length` from then on, in one step (F2); `tail_crc` is that of the
  // partial last block.
  Task<Status> RaiseAndCut(Marking marking, uint64_t length, uint32_t tail_crc);
  // Gives up the bytes from `length`, a block boundary, on, durably, under the present marks: so that a
  // reconciliation can fill it anew. Until an order says that it is whole again no boot vouches for the
  // replica (raised_in is 0): it is unclean, whatever becomes of the filling.
  Task<Status> Cut(uint64_t length);

  // A recovery's end: marks, the end at `length` (<= length()) and the seal in one slot, durable on return.
  // Bytes beyond go only after that. `tail_crc` is that of the partial last block.
  Task<Status> Finish(Marking marking, uint64_t length, uint32_t tail_crc);

  // Seals at length(). With `sync` durable on return.
  Task<Status> Seal(Generation generation, bool sync);

  // The slot as it is in memory is durable on return. A process that was killed between writing a slot and
  // syncing it leaves one that is read, and is not yet promised: whoever answers from it settles it.
  // Load is not required.
  Task<Status> Settle();

  // Removes a redo file that an earlier process left and that counts for nothing: the slot says so, and is
  // made durable first. Load is not required.
  Task<Status> DropRedo();

  // Durable tombstone with the marks; the files are closed and the data is left to be moved away.
  Task<Status> Entomb(Retirement retirement);
  // Says durably (if the disk lets it) that the replica is not to be used.
  Task<> MarkCorrupt(std::string why);

  // The CRC of each block up to length().
  std::vector<uint32_t> BlockCrcs() const;
  uint32_t BlockCrc(uint64_t block) const { return open_->table[block]; }
  // The CRC that the block before `length` would have if the replica ended there. The bytes of a block that
  // is not whole then are read and verified: kCorrupt. 0 at a block boundary.
  Task<Result<uint32_t>> TailCrcAt(uint64_t length);
  // How many leading bytes are equal to content with these block CRCs: `length`, or a block boundary.
  // Bytes before `from`, which is one of these, are not looked at.
  Task<Result<uint64_t>> EqualPrefix(uint64_t length, std::vector<uint32_t> crcs, uint64_t from = 0);
  // Re-reads these blocks and compares; false when one differs or is missing.
  Task<Result<bool>> VerifyBlocks(uint64_t first, uint64_t count);
  // `size` bytes at `offset`, all of them below length(). kCorrupt when the file is shorter.
  Task<Result<Buffer>> Read(uint64_t offset, size_t size);
  // kCorrupt when the data file ends before `end`: asked before sendfile, which can only break off.
  Task<Status> HasData(uint64_t end);
  // The same bytes for sendfile. The content must not be replaced before SlicesSent.
  FileSlice Slice(uint64_t offset, size_t size);
  // Returns when no slice of this replica is being sent any more; false at the deadline.
  Task<bool> SlicesSent(Mono deadline);

  static std::string DataName(ChunkId chunk) { return ToString(chunk) + ".data"; }
  static std::string MetaName(ChunkId chunk) { return ToString(chunk) + ".meta"; }
  static std::string RedoName(ChunkId chunk) { return ToString(chunk) + ".redo"; }
  static constexpr uint64_t kWritebackStep = 8 << 20;

 private:
  struct Handles {
    std::shared_ptr<File> data;
    std::shared_ptr<File> meta;
    std::vector<uint32_t> table;  // one entry per block of the chunk; the tail's is that of length_
  };
  struct Slices {
    explicit Slices(Env& env) : sent(env) {}
    Signal sent;
    size_t count = 0;
  };

  std::string DataPath() const { return dir_ + "/" + DataName(slot_.chunk); }
  std::string MetaPath() const { return dir_ + "/" + MetaName(slot_.chunk); }
  uint32_t TailCrc() const { return length_ % kBlockSize == 0 ? 0 : open_->table[length_ / kBlockSize]; }
  Task<Status> OpenFiles();
  // For changes of the slot alone: the meta file, with or without the rest.
  Task<Result<std::shared_ptr<File>>> OpenMeta();
  // Writes table entries [first, first + count) from memory.
  Task<Status> WriteTable(uint64_t first, uint64_t count);
  // Data and CRC page up to `length`, overwritten blocks in place. REQUIRES slot_lock_.
  Task<Status> SyncContent(uint64_t length);
  // There are blocks whose content is in the redo file.
  bool pending() const { return redo_ && !redo_->empty(); }
  // The redo file durable, then its blocks in place, not synced. REQUIRES slot_lock_.
  Task<Status> PlaceOverwrites();
  // Puts the overwritten blocks over what was read at `offset` from the data file. REQUIRES slot_lock_.
  Task<Status> ReadOverwritten(uint64_t offset, Buffer into);
  Task<Result<RedoBlock>> Patched(uint64_t block, uint64_t at, Buffer bytes, uint32_t crc);
  // After a start: places what the redo file has, and says what the checksums at these two ends are by now.
  Task<Status> Replay(Progress* durable, Progress* target);
  Task<> RemoveRedo();
  Task<Result<Buffer>> ReadLocked(uint64_t offset, size_t size);
  Task<Status> SyncNow();
  Task<Status> WriteSlot(std::shared_ptr<File> meta, Slot next, bool sync);
  Task<Status> Mark(Marking marking, uint64_t length, uint32_t tail_crc);
  Task<> TidySealed(bool redo);
  Task<Result<uint64_t>> VerifiedEnd(Progress promised, Progress target);
  Status GiveUp(const char* what, const Error& cause);
  Status Usable() const;

  Env& env_;
  const std::string dir_;
  Slot slot_;
  uint64_t length_;
  std::shared_ptr<Handles> open_;
  std::unique_ptr<RedoLog> redo_;  // from the first overwrite on
  std::shared_ptr<Slices> slices_;
  FifoLock slot_lock_;  // whoever writes a slot holds it; taken after the chunk's lock
  uint64_t table_synced_blocks_ = 0;
  bool slot_unsynced_ = true;  // the newest slot may be in the page cache only
  bool given_up_ = false;
};

}  // namespace picket::cs
