#include "chunkserver/replica_file.h"

#include "common/base/check.h"
#include "common/base/coding.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket::cs {
namespace {

Task<Status> SyncFile(std::shared_ptr<File> file) { co_return co_await file->Sync(); }

Buffer Zeros(size_t size) {
  Buffer b = Buffer::Allocate(size);
  std::memset(b.data(), 0, size);
  return b;
}

Task<> RemoveNewFiles(Env* env, std::string data, std::string meta, bool meta_too) {
  (void)co_await env->fs().Unlink(data);
  if (meta_too) (void)co_await env->fs().Unlink(meta);
}

}  // namespace

ReplicaFile::ReplicaFile(Env& env, std::string dir, Slot slot)
    : env_(env),
      dir_(std::move(dir)),
      slot_(std::move(slot)),
      length_(slot_.state == ReplicaState::kSealed ? slot_.length : slot_.durable_length),
      slot_lock_(env) {}

Marks ReplicaFile::marks() const {
  Marks m;
  m.chunk = slot_.chunk;
  m.state = slot_.state;
  m.version = slot_.version;
  m.generation = slot_.generation;
  m.raised_in = slot_.raised_in;
  m.instance = slot_.instance;
  m.attempt = slot_.attempt;
  m.sealed_generation = slot_.sealed_generation;
  m.digest = slot_.digest;
  m.length = length_;
  return m;
}

Task<Result<std::unique_ptr<ReplicaFile>>> ReplicaFile::Create(Env* env, std::string dir, Slot slot, const Slot* over) {
  slot.sequence = over != nullptr ? over->sequence + 1 : 0;
  slot.lineage = over != nullptr ? over->lineage + 1 : 1;
  slot.length = slot.durable_length = 0;
  const bool fresh = over == nullptr;
  auto replica = std::make_unique<ReplicaFile>(*env, dir, slot);
  const std::string data_path = replica->DataPath();
  const std::string meta_path = replica->MetaPath();

  auto data = co_await env->fs().Open(data_path, OpenMode::kCreateNew);
  if (!data) co_return Fail(data.error());
  Status made = co_await (*data)->Reserve(slot.chunk_size);
  bool meta_made = false;
  if (made) {
    auto meta = co_await env->fs().Open(meta_path, fresh ? OpenMode::kCreateNew : OpenMode::kReadWrite);
    if (!meta) {
      made = Fail(meta.error());
    } else {
      meta_made = fresh;
      // Zeros are written, not left as holes: every later change overwrites.
      const uint64_t from = fresh ? 0 : kProgressOffset;
      Buffer bytes = Zeros(kTableOffset + TableBytes(slot.chunk_size) - from);
      const std::string encoded = EncodeSlot(slot);
      if (fresh) std::memcpy(bytes.data(), encoded.data(), encoded.size());
      made = co_await (*meta)->WriteAt(from, bytes);
      if (made && !PICKET_MUTANT(sync_create)) made = co_await (*meta)->Sync();
      if (made && !PICKET_MUTANT(sync_create_dir)) made = co_await env->fs().SyncDir(dir);
      if (made && !fresh) {
        Buffer bytes_of_slot = Buffer::Copy(encoded);
        made = co_await (*meta)->WriteAt(slot.sequence % 2 * kSlotSize, bytes_of_slot);
        if (made) made = co_await (*meta)->Sync();
      }
      if (made) {
        replica->open_ = std::make_shared<Handles>();
        replica->open_->data = std::move(*data);
        replica->open_->meta = std::move(*meta);
        replica->open_->table.resize(BlocksIn(slot.chunk_size));
        replica->slot_unsynced_ = false;
        co_return std::move(replica);
      }
    }
  }
  // Nothing was promised: the names may go.
  co_await RemoveNewFiles(env, data_path, meta_path, meta_made);
  co_return Fail(std::move(made).error());
}

// ---- opening ---------------------------------------------------------------------------------------

Task<Status> ReplicaFile::OpenFiles() {
  if (open_) co_return Status();
  auto handles = std::make_shared<Handles>();
  auto data = co_await env_.fs().Open(DataPath(), OpenMode::kReadWrite);
  if (!data) co_return Fail(data.error());
  auto meta = co_await env_.fs().Open(MetaPath(), OpenMode::kReadWrite);
  if (!meta) co_return Fail(meta.error());
  handles->data = std::move(*data);
  handles->meta = std::move(*meta);
  handles->table.resize(BlocksIn(slot_.chunk_size));
  Buffer bytes = Buffer::Allocate(handles->table.size() * 4);
  auto n = co_await handles->meta->ReadAt(kTableOffset, bytes);
  if (!n) co_return Fail(n.error());
  if (*n < bytes.size()) {
    co_return Fail(Code::kCorrupt, MetaPath() + " is cut short");
  }
  std::memcpy(handles->table.data(), bytes.data(), bytes.size());
  if (slot_.state == ReplicaState::kSealed) {
    auto size = co_await handles->data->Size();
    if (!size) co_return Fail(size.error());
    if (*size < slot_.length) {
      co_return Fail(Code::kCorrupt, DataPath() + " has " + std::to_string(*size) + " bytes, " +
                                         std::to_string(slot_.length) + " are sealed");
    }
    // A power cut may undo the cut that followed the slot: space only.
    if (*size > slot_.length) (void)co_await handles->data->Truncate(slot_.length);
    if (slot_.durable_length == slot_.length && slot_.length % kBlockSize != 0) {
      // A recovery cuts, seals and only then writes the table's last entry.
      handles->table[slot_.length / kBlockSize] = slot_.tail_crc;
    }
    if (Crc32c(handles->table.data(), BlocksIn(slot_.length) * 4) != slot_.digest) {
      co_return Fail(Code::kCorrupt, MetaPath() + ": the CRC table does not match the sealed digest");
    }
  }
  if (!open_) open_ = std::move(handles);
  co_return Status();
}

Task<Status> ReplicaFile::Load() {
  PICKET_CO_TRY(Usable());
  if (open_) co_return Status();
  Status opened = co_await OpenFiles();
  if (!opened && (opened.error().code == Code::kCorrupt || opened.error().code == Code::kNotFound)) {
    co_await MarkCorrupt(opened.error().message);
    co_return Fail(Code::kCorrupt, "chunk " + ToString(slot_.chunk) + ": " + opened.error().message);
  }
  if (opened && slot_.state != ReplicaState::kSealed && length_ % kBlockSize != 0) {
    open_->table[length_ / kBlockSize] = slot_.tail_crc;
  }
  co_return opened;
}

bool ReplicaFile::CanUnload() const {
  if (!open_ || slot_lock_.waiting() > 0) return false;
  return slot_.state == ReplicaState::kSealed || !dirty();
}

Status ReplicaFile::Usable() const {
  if (given_up_ || slot_.state == ReplicaState::kCorrupt) {
    return Fail(Error(Code::kCorrupt, "chunk " + ToString(slot_.chunk) + ": the replica is corrupt")
                    .WithNextStep("use another replica"));
  }
  return {};
}

// ---- content ---------------------------------------------------------------------------------------

Task<Status> ReplicaFile::WriteTable(uint64_t first, uint64_t count) {
  Buffer bytes = Buffer::Allocate(count * 4);
  std::memcpy(bytes.data(), open_->table.data() + first, count * 4);
  co_return co_await open_->meta->WriteAt(kTableOffset + first * 4, bytes);
}

Task<Status> ReplicaFile::Append(Buffer bytes, std::vector<uint32_t> crcs, bool writeback) {
  PICKET_CO_TRY(Usable());
  auto handles = open_;
  const uint64_t start = length_;
  const uint64_t end = start + bytes.size();
  if (bytes.empty()) co_return Status();
  if (end > slot_.chunk_size) {
    co_return Fail(Code::kInvalidArgument, "chunk " + ToString(slot_.chunk) + ": bytes up to " + std::to_string(end) +
                                               " do not fit in " + std::to_string(slot_.chunk_size));
  }
  PICKET_CHECK(crcs.size() == BlocksIn(end) - start / kBlockSize);
  // The CRC of a block that was begun before goes on from what it was: nothing is read again.
  if (const uint64_t begun = start % kBlockSize; begun != 0) {
    crcs[0] =
        Crc32c(bytes.data(), std::min<uint64_t>(bytes.size(), kBlockSize - begun), handles->table[start / kBlockSize]);
  }
  PICKET_CO_TRY(co_await handles->data->WriteAt(start, bytes));
  const uint64_t first = start / kBlockSize;
  const uint64_t whole = end / kBlockSize - first;
  if (whole > 0) {
    Buffer entries = Buffer::Allocate(whole * 4);
    std::memcpy(entries.data(), crcs.data(), whole * 4);
    PICKET_CO_TRY(co_await handles->meta->WriteAt(kTableOffset + first * 4, entries));
  }
  Progress progress;
  progress.lineage = slot_.lineage;
  progress.length = end;
  progress.tail_crc = end % kBlockSize == 0 ? 0 : crcs.back();
  Buffer record = Buffer::Copy(EncodeProgress(progress));
  if (!PICKET_MUTANT(progress_record)) PICKET_CO_TRY(co_await handles->meta->WriteAt(kProgressOffset, record));
  PICKET_CO_TRY(Usable());  // a sync may have failed meanwhile
  std::copy(crcs.begin(), crcs.end(), handles->table.begin() + static_cast<ptrdiff_t>(first));
  length_ = end;
  if (writeback && start / kWritebackStep != end / kWritebackStep) {
    const uint64_t from = start / kWritebackStep * kWritebackStep;
    handles->data->StartWriteback(from, end / kWritebackStep * kWritebackStep - from);
  }
  co_return Status();
}

Task<Status> ReplicaFile::SyncContent(uint64_t length) {
  PICKET_CO_TRY(co_await PlaceOverwrites());
  if (PICKET_MUTANT(sync_content)) co_return Status();
  auto handles = open_;
  std::vector<Task<Status>> syncs;
  syncs.push_back(SyncFile(handles->data));
  // The partial tail's CRC is in the slot: only whole blocks need the table.
  if (length / kBlockSize > table_synced_blocks_) syncs.push_back(SyncFile(handles->meta));
  for (Status& done : co_await WhenAll(&env_, std::move(syncs))) {
    if (!done) co_return GiveUp("sync", done.error());
  }
  table_synced_blocks_ = std::max(table_synced_blocks_, length / kBlockSize);
  co_return Status();
}

Task<Status> ReplicaFile::WriteSlot(std::shared_ptr<File> meta, Slot next, bool sync) {
  // The other slot is about to be overwritten: until the newest one is durable it is all there is.
  if (slot_unsynced_) {
    if (Status done = co_await meta->Sync(); !done) co_return GiveUp("sync of the slot", done.error());
    slot_unsynced_ = false;
  }
  next.sequence = slot_.sequence + 1;
  if (pending() && next.state != ReplicaState::kSealed && !PICKET_MUTANT(overwrite_flag)) next.overwritten = true;
  // A recovery remembers the seal that it found as long as the content is that of the seal (F11).
  const bool changed = pending() || next.length != slot_.length;
  if (next.state == ReplicaState::kRecovering && changed) next.sealed_generation = Generation();
  Buffer bytes = Buffer::Copy(EncodeSlot(next));
  PICKET_CO_TRY(co_await meta->WriteAt(next.sequence % 2 * kSlotSize, bytes));
  if (sync && !PICKET_MUTANT(sync_slot)) {
    if (Status done = co_await meta->Sync(); !done) co_return GiveUp("sync of the slot", done.error());
  }
  slot_unsynced_ = !sync;
  slot_ = std::move(next);
  // What is in the redo file is in place now, or of no use any more, and the slot says so: what stays costs
  // space only, and the change is made.
  if (sync && pending()) {
    if (Status cleared = co_await redo_->Clear(); !cleared) {
      PICKET_LOG(env_, kWarning, "chunk {}: its redo file is not emptied: {}", ToString(slot_.chunk),
                 cleared.error().message);
    }
  }
  co_return Status();
}

Task<Status> ReplicaFile::SyncNow() {
  PICKET_CO_TRY(Usable());
  const uint64_t length = length_;
  if (length == slot_.durable_length && !pending()) co_return Status();
  const uint32_t tail_crc = TailCrc();
  PICKET_CO_TRY(co_await SyncContent(length));
  Slot next = slot_;
  next.length = next.durable_length = length;
  next.tail_crc = tail_crc;
  co_return co_await WriteSlot(open_->meta, std::move(next), true);
}

Task<Status> ReplicaFile::SyncUpTo(uint64_t length, uint64_t lineage) {
  auto ticket = co_await slot_lock_.Lock();
  PICKET_CO_TRY(Usable());
  if (slot_.lineage != lineage) {
    co_return Fail(Error(Code::kSuperseded, "chunk " + ToString(slot_.chunk) + ": version " + slot_.version.ToString() +
                                                " took over during the sync")
                       .WithNextStep("ask the master for a grant"));
  }
  if (slot_.durable_length >= length && !pending()) co_return Status();
  co_return co_await SyncNow();
}

// ---- marks -----------------------------------------------------------------------------------------

Task<Status> ReplicaFile::Mark(Marking m, uint64_t length, uint32_t tail_crc) {
  PICKET_CHECK(m.version >= slot_.version && m.generation >= slot_.generation);
  const bool cut = length < length_;
  Slot next = slot_;
  const bool of_seal = slot_.state == ReplicaState::kSealed || slot_.state == ReplicaState::kRecovering;
  if (m.state != ReplicaState::kRecovering || !of_seal) next.sealed_generation = Generation();
  next.version = m.version;
  next.generation = m.generation;
  next.state = m.state;
  next.raised_in = m.raised_in;
  next.epoch = m.epoch;
  next.revision = m.revision;
  next.length = next.durable_length = length;
  next.tail_crc = tail_crc;
  ++next.lineage;
  const bool sync = m.state != ReplicaState::kRecovering || !PICKET_MUTANT(sync_begin);
  PICKET_CO_TRY(co_await WriteSlot(open_->meta, std::move(next), sync));
  if (cut) {
    length_ = length;
    table_synced_blocks_ = std::min(table_synced_blocks_, length / kBlockSize);
  }
  if (length % kBlockSize != 0) open_->table[length / kBlockSize] = tail_crc;
  co_return Status();
}

Task<Status> ReplicaFile::Raise(Marking marking) {
  auto ticket = co_await slot_lock_.Lock();
  PICKET_CO_TRY(Usable());
  const uint64_t length = length_;
  const uint32_t tail_crc = TailCrc();
  if (length != slot_.durable_length || pending()) PICKET_CO_TRY(co_await SyncContent(length));
  if (marking.state == ReplicaState::kSealed) {
    // A sealed replica keeps its content and digest; only the marks move.
    Slot next = slot_;
    next.version = marking.version;
    next.generation = marking.generation;
    next.raised_in = marking.raised_in;
    next.epoch = marking.epoch;
    next.revision = marking.revision;
    next.durable_length = length;
    next.tail_crc = tail_crc;
    ++next.lineage;
    co_return co_await WriteSlot(open_->meta, std::move(next), true);
  }
  co_return co_await Mark(marking, length, tail_crc);
}

Task<Status> ReplicaFile::RaiseAndCut(Marking marking, uint64_t length, uint32_t tail_crc) {
  auto ticket = co_await slot_lock_.Lock();
  PICKET_CO_TRY(Usable());
  PICKET_CHECK(length <= length_);
  if (length > slot_.durable_length || pending()) PICKET_CO_TRY(co_await SyncContent(length));
  co_return co_await Mark(marking, length, tail_crc);
}

Task<Status> ReplicaFile::Cut(uint64_t length) {
  PICKET_CHECK(length % kBlockSize == 0 && length <= length_);
  auto ticket = co_await slot_lock_.Lock();
  PICKET_CO_TRY(Usable());
  Marking same;
  same.version = slot_.version;
  same.generation = slot_.generation;
  same.state = slot_.state == ReplicaState::kSealed ? ReplicaState::kOpen : slot_.state;
  same.raised_in = Incarnation();  // nobody vouches for what is left
  same.epoch = slot_.epoch;
  same.revision = slot_.revision;
  if (length > slot_.durable_length || pending()) PICKET_CO_TRY(co_await SyncContent(length));
  co_return co_await Mark(same, length, 0);
}

Task<Status> ReplicaFile::Seal(Generation generation, bool sync) {
  auto ticket = co_await slot_lock_.Lock();
  PICKET_CO_TRY(Usable());
  auto handles = open_;
  // Also when it has that length already: what Create reserved of a chunk not filled goes back.
  PICKET_CO_TRY(co_await handles->data->Truncate(length_));
  const uint64_t blocks = BlocksIn(length_);
  if (length_ % kBlockSize != 0) PICKET_CO_TRY(co_await WriteTable(blocks - 1, 1));
  Slot next = slot_;
  const bool redo = redo_ || slot_.overwritten;
  sync = sync || pending();  // readers of a sealed replica get the data file as it is
  if (sync) {
    table_synced_blocks_ = 0;  // the tail's entry counts from now on
    PICKET_CO_TRY(co_await SyncContent(std::max(length_, kBlockSize)));
    table_synced_blocks_ = length_ / kBlockSize;
    next.durable_length = length_;
    next.tail_crc = TailCrc();
  }
  next.state = ReplicaState::kSealed;
  next.length = length_;
  next.digest = Crc32c(handles->table.data(), blocks * 4);
  next.sealed_generation = generation;
  next.overwritten = false;
  PICKET_CO_TRY(co_await WriteSlot(open_->meta, std::move(next), sync));
  if (redo && sync) co_await RemoveRedo();
  co_return Status();
}

Task<Result<std::shared_ptr<File>>> ReplicaFile::OpenMeta() {
  if (open_) co_return open_->meta;
  auto meta = co_await env_.fs().Open(MetaPath(), OpenMode::kReadWrite);
  if (!meta) co_return Fail(meta.error());
  co_return std::shared_ptr<File>(std::move(*meta));
}

Task<Status> ReplicaFile::Settle() {
  if (!slot_unsynced_) co_return Status();
  auto ticket = co_await slot_lock_.Lock();
  if (!slot_unsynced_) co_return Status();
  auto meta = co_await OpenMeta();
  if (!meta) co_return Fail(meta.error());
  if (!PICKET_MUTANT(sync_settle)) {
    if (Status done = co_await (*meta)->Sync(); !done) co_return GiveUp("sync of the slot", done.error());
  }
  slot_unsynced_ = false;
  co_return Status();
}

Task<Status> ReplicaFile::Entomb(Retirement r) {
  auto ticket = co_await slot_lock_.Lock();
  auto meta = co_await OpenMeta();
  if (!meta) co_return Fail(meta.error());
  Slot next = slot_;
  next.state = ReplicaState::kTombstone;
  next.deleted_ns = r.wall_ns;
  next.raised_in = r.boot;
  if (r.epoch.number > 0) next.epoch = r.epoch;
  next.retired_key = r.key;
  next.retired = r.why;
  next.overwritten = false;
  ++next.lineage;
  const bool redo = redo_ || slot_.overwritten;
  PICKET_CO_TRY(co_await WriteSlot(*meta, std::move(next), true));
  open_.reset();
  if (redo) co_await RemoveRedo();
  co_return Status();
}

Task<> ReplicaFile::MarkCorrupt(std::string why) {
  PICKET_LOG(env_, kError, "chunk {}: the replica is corrupt: {}; it is kept, but serves nothing any more",
             ToString(slot_.chunk), why);
  auto ticket = co_await slot_lock_.Lock();
  if (given_up_ || slot_.state == ReplicaState::kCorrupt) co_return;
  Slot next = slot_;
  next.state = ReplicaState::kCorrupt;
  auto meta = co_await OpenMeta();
  if (meta) (void)co_await WriteSlot(*meta, std::move(next), true);
  slot_.state = ReplicaState::kCorrupt;
  open_.reset();
}

Status ReplicaFile::GiveUp(const char* what, const Error& cause) {
  PICKET_LOG(env_, kError, "chunk {}: {} failed ({}): the replica is given up; check the disk under {}",
             ToString(slot_.chunk), what, cause.message, dir_);
  given_up_ = true;
  slot_.state = ReplicaState::kCorrupt;
  return Fail(Error(Code::kIoError, "chunk " + ToString(slot_.chunk) + ": " + what + " failed: " + cause.message)
                  .WithNextStep("use another replica; check the disk"));
}

}  // namespace picket::cs
