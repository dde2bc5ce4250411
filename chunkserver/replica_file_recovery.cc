// ReplicaFile: the end of a lease recovery (design §4.4).
#include "chunkserver/replica_file.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket::cs {

Task<Result<uint32_t>> ReplicaFile::TailCrcAt(uint64_t length) {
  PICKET_CHECK(length <= length_);
  const uint64_t start = length / kBlockSize * kBlockSize;
  if (start == length) co_return 0;
  const uint32_t whole = open_->table[start / kBlockSize];
  if (length == length_) co_return whole;
  auto bytes = co_await Read(start, std::min(kBlockSize, length_ - start));
  if (!bytes) co_return Fail(bytes.error());
  if (Crc32c(bytes->view()) != whole && !PICKET_MUTANT(verify_tail)) {
    co_return Fail(Code::kCorrupt, "chunk " + ToString(slot_.chunk) + ": the bytes at " + std::to_string(start) +
                                       " do not match their checksum");
  }
  co_return Crc32c(bytes->data(), length - start);
}

Task<Status> ReplicaFile::Finish(Marking m, uint64_t length, uint32_t tail_crc) {
  auto ticket = co_await slot_lock_.Lock();
  PICKET_CO_TRY(Usable());
  PICKET_CHECK(length <= length_ && m.version >= slot_.version && m.generation >= slot_.generation);
  if (dirty() && !PICKET_MUTANT(sync_finish)) PICKET_CO_TRY(co_await SyncContent(length_));
  const uint64_t blocks = BlocksIn(length);
  std::vector<uint32_t> table(open_->table.begin(), open_->table.begin() + static_cast<ptrdiff_t>(blocks));
  if (length % kBlockSize != 0) table.back() = tail_crc;
  Slot next = slot_;
  next.version = m.version;
  next.generation = m.generation;
  next.state = ReplicaState::kSealed;
  next.raised_in = m.raised_in;
  next.epoch = m.epoch;
  next.revision = m.revision;
  next.length = next.durable_length = length;
  next.tail_crc = length % kBlockSize == 0 ? 0 : tail_crc;
  next.digest = Crc32c(table.data(), blocks * 4);
  next.sealed_generation = m.generation;
  next.overwritten = false;
  ++next.lineage;
  const bool redo = redo_ || slot_.overwritten;
  PICKET_CO_TRY(co_await WriteSlot(open_->meta, std::move(next), true));
  length_ = length;
  table_synced_blocks_ = std::min(table_synced_blocks_, length / kBlockSize);
  std::copy(table.begin(), table.end(), open_->table.begin());
  co_await TidySealed(redo);
  co_return Status();
}

// What a sealed replica does not need: bytes beyond its end, space reserved, a redo file. The slot says all
// that counts: a failure costs space only.
Task<> ReplicaFile::TidySealed(bool redo) {
  auto handles = open_;
  Status tidied = co_await handles->data->Truncate(length_);
  if (tidied && length_ % kBlockSize != 0) tidied = co_await WriteTable(length_ / kBlockSize, 1);
  if (!tidied) {
    PICKET_LOG(env_, kWarning, "chunk {}: sealed, but its space is not given back: {}", ToString(slot_.chunk),
               tidied.error().message);
  }
  if (redo) co_await RemoveRedo();
}

}  // namespace picket::cs
