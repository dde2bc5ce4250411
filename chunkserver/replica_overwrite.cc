// ReplicaFile: bytes that are replaced. New blocks go to the redo file and are read from there; a sync, a
// seal or a mark moves them into place: redo file durable, blocks in place and durable, slot.
#include "chunkserver/replica_file.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"

namespace picket::cs {

Task<Status> ReplicaFile::Overwrite(uint64_t offset, Buffer bytes, std::vector<uint32_t> crcs) {
  auto ticket = co_await slot_lock_.Lock();
  PICKET_CO_TRY(Usable());
  PICKET_CHECK(!bytes.empty() && offset + bytes.size() <= length_);
  PICKET_CHECK(crcs.size() == BlocksIn(offset + bytes.size()) - offset / kBlockSize);
  if (!redo_) {
    auto redo = std::make_unique<RedoLog>(env_, dir_, RedoName(slot_.chunk));
    PICKET_CO_TRY(co_await redo->Create());
    redo_ = std::move(redo);
  }
  std::vector<RedoBlock> blocks;
  for (uint64_t at = 0; at < bytes.size();) {
    const uint64_t block = (offset + at) / kBlockSize;
    const uint64_t begun = (offset + at) % kBlockSize;
    const uint64_t size = std::min<uint64_t>(kBlockSize - begun, bytes.size() - at);
    auto patched = co_await Patched(block, begun, bytes.Slice(at, size), crcs[blocks.size()]);
    if (!patched) {
      ticket.Release();
      if (patched.error().code == Code::kCorrupt) co_await MarkCorrupt(patched.error().message);
      co_return Fail(patched.error());
    }
    blocks.push_back(std::move(*patched));
    at += size;
  }
  PICKET_CO_TRY(co_await redo_->Add(slot_.instance, slot_.sequence, blocks));
  for (const RedoBlock& b : blocks) open_->table[b.block] = b.crc;
  if (redo_->size() >= RedoLog::kMaxSize) PICKET_CO_TRY(co_await SyncNow());
  co_return Status();
}

// A block's content after `bytes` are put at `at` in it. What stays is verified first: a byte that rotted
// would get a good checksum (GFS §5.2).
Task<Result<RedoBlock>> ReplicaFile::Patched(uint64_t block, uint64_t at, Buffer bytes, uint32_t crc) {
  const uint64_t start = block * kBlockSize;
  const uint64_t extent = std::min(kBlockSize, length_ - start);
  if (bytes.size() == extent) co_return RedoBlock{block, std::move(bytes), crc};
  auto old = co_await ReadLocked(start, extent);
  if (!old) co_return Fail(old.error());
  if (Crc32c(old->view()) != open_->table[block] && !PICKET_MUTANT(overwrite_verify)) {
    co_return Fail(Code::kCorrupt, "chunk " + ToString(slot_.chunk) + ": the bytes of block " + std::to_string(block) +
                                       ", of which a part is overwritten, do not match their checksum");
  }
  std::memcpy(old->data() + at, bytes.data(), bytes.size());
  const uint32_t patched = Crc32c(old->view());
  co_return RedoBlock{block, std::move(*old), patched};
}

Task<Status> ReplicaFile::ReadOverwritten(uint64_t offset, Buffer into) {
  const uint64_t end = offset + into.size();
  for (uint64_t block = offset / kBlockSize; block * kBlockSize < end; ++block) {
    if (!redo_->entries().contains(block)) continue;
    auto bytes = co_await redo_->Read(block);
    if (!bytes) co_return Fail(bytes.error());
    const uint64_t start = block * kBlockSize;
    const uint64_t from = std::max(offset, start);
    const uint64_t to = std::min(end, start + bytes->size());
    if (from < to) std::memcpy(into.data() + (from - offset), bytes->data() + (from - start), to - from);
  }
  co_return Status();
}

Task<Status> ReplicaFile::PlaceOverwrites() {
  if (!pending() || redo_->placed()) co_return Status();
  auto handles = open_;
  if (!PICKET_MUTANT(redo_before_place)) {
    if (Status done = co_await redo_->Sync(); !done) co_return GiveUp("sync of the overwritten blocks", done.error());
  }
  const RedoLog::Entries entries = redo_->entries();
  for (const auto& [block, entry] : entries) {
    auto bytes = co_await redo_->Read(block);
    if (!bytes) co_return GiveUp("reading an overwritten block", bytes.error());
    PICKET_CO_TRY(co_await handles->data->WriteAt(block * kBlockSize, *bytes));
    // The entry of a block that was not whole then is written by whoever makes it whole.
    if (entry.size == kBlockSize) PICKET_CO_TRY(co_await WriteTable(block, 1));
  }
  table_synced_blocks_ = std::min(table_synced_blocks_, entries.begin()->first);
  redo_->SetPlaced();
  co_return Status();
}

Task<Status> ReplicaFile::Replay(Progress* promised, Progress* target) {
  auto redo = std::make_unique<RedoLog>(env_, dir_, RedoName(slot_.chunk));
  auto found = co_await redo->Open(slot_.instance, slot_.sequence);
  if (!found) co_return Fail(found.error());
  if (!*found || PICKET_MUTANT(redo_replay)) co_return Status();
  redo_ = std::move(redo);
  if (!pending()) co_return Status();
  for (const auto& [block, entry] : redo_->entries()) {
    if ((block + 1) * kBlockSize > slot_.chunk_size) {
      co_return Fail(Code::kCorrupt, "the redo file names block " + std::to_string(block));
    }
    if (entry.size == kBlockSize) open_->table[block] = entry.crc;
  }
  // A partial last block: as far as the record goes, its bytes are what counts.
  for (Progress* end : {promised, target}) {
    const uint64_t block = end->length / kBlockSize;
    const uint64_t size = end->length % kBlockSize;
    const auto it = redo_->entries().find(block);
    if (size == 0 || it == redo_->entries().end() || it->second.size < size) continue;
    auto bytes = co_await redo_->Read(block);
    if (!bytes) co_return Fail(bytes.error());
    end->tail_crc = Crc32c(bytes->data(), size);
  }
  auto ticket = co_await slot_lock_.Lock();
  co_return co_await PlaceOverwrites();
}

Task<> ReplicaFile::RemoveRedo() {
  if (!redo_) redo_ = std::make_unique<RedoLog>(env_, dir_, RedoName(slot_.chunk));
  co_await redo_->Remove();
  redo_.reset();
}

Task<Status> ReplicaFile::DropRedo() {
  PICKET_CO_TRY(co_await Settle());
  co_await RemoveRedo();
  co_return Status();
}

}  // namespace picket::cs
