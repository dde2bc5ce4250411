#include "chunkserver/replica_store.h"

#include <utility>

#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket::cs {
namespace {

// False also when that cannot be found out.
Task<bool> IsEmptyFile(Fs* fs, std::string path) {
  auto head = co_await ReadHead(fs, path, 1);
  co_return head && head->empty();
}

}  // namespace

void TraceReplica(Env* env, ServerId server, ProtocolEvent::Kind kind, const Replica& replica, uint64_t length,
                  uint64_t value) {
  ProtocolEvent e{};
  e.kind = kind;
  e.server = server;
  e.chunk = replica.chunk;
  e.version = replica.file->slot().version;
  e.generation = replica.file->slot().generation;
  e.length = length;
  e.value = value;
  env->Trace(e);
}

ReplicaStore::ReplicaStore(Env& env, Options options)
    : env_(env),
      options_(std::move(options)),
      replicas_dir_(ReplicasDir(options_.dir)),
      quarantine_(env, replicas_dir_, QuarantineDir(options_.dir), options_.quarantined_for) {}

Task<Status> ReplicaStore::Init(Env* env, std::string dir) {
  for (const std::string& name : {ReplicasDir(dir), QuarantineDir(dir), AsideDir(dir)}) {
    PICKET_CO_TRY(co_await env->fs().MakeDir(name));
  }
  co_return Status();
}

// ---- start-up --------------------------------------------------------------------------------------

Task<Status> ReplicaStore::Open(ServerState* state) {
  // Names that an earlier process made and did not live to sync: what is served must not vanish.
  if (!PICKET_MUTANT(sync_start_dir)) PICKET_CO_TRY(co_await env_.fs().SyncDir(replicas_dir_));
  auto names = co_await env_.fs().List(replicas_dir_);
  if (!names) co_return Fail(names.error());
  std::map<ChunkId, Found> found;
  for (const std::string& name : *names) {
    ChunkId chunk;
    const bool meta = name.ends_with(".meta");
    const bool data = name.ends_with(".data");
    const bool redo = name.ends_with(".redo");
    const std::string stem = name.substr(0, name.size() - std::min<size_t>(name.size(), 5));
    if ((!meta && !data && !redo) || stem.size() != 16 || !FromHex(stem, &chunk.value) || ToString(chunk) != stem) {
      co_await SetAside(name, "not a replica's name", state->incarnation());
      continue;
    }
    Found& f = found[chunk];
    f.chunk = chunk;
    (meta ? f.meta : data ? f.data : f.redo) = true;
  }
  auto work = std::make_shared<std::vector<Found>>();
  for (const auto& [chunk, f] : found) work->push_back(f);
  auto next = std::make_shared<size_t>(0);
  std::vector<Task<bool>> workers;
  for (size_t i = 0; i < std::min(kScanWorkers, work->size()); ++i) {
    workers.push_back(Worker(this, work, next, state));
  }
  (void)co_await WhenAll(&env_, std::move(workers));
  co_return Status();
}

Task<bool> ReplicaStore::Worker(ReplicaStore* self, std::shared_ptr<std::vector<Found>> work,
                                std::shared_ptr<size_t> next, ServerState* state) {
  while (*next < work->size()) {
    const Found found = (*work)[(*next)++];
    co_await self->LoadOne(found, state);
  }
  co_return true;
}

Task<> ReplicaStore::LoadOne(Found found, ServerState* state) {
  const Incarnation boot = state->incarnation();
  const std::string data_name = ReplicaFile::DataName(found.chunk);
  const std::string meta_name = ReplicaFile::MetaName(found.chunk);
  Fs& fs = env_.fs();

  std::string why;
  std::optional<Slot> slot;
  if (found.meta) {
    auto head = co_await ReadHead(&fs, replicas_dir_ + "/" + meta_name, 2 * kSlotSize);
    if (!head) {
      PICKET_LOG(env_, kError, "{}/{} cannot be read ({}): its replica is not served; check the disk", replicas_dir_,
                 meta_name, head.error().message);
      co_return;
    }
    auto newest = NewestSlot(head->view());
    if (!newest) {
      why = newest.error().message;
    } else if (*newest) {
      slot = std::move(**newest);
      if (slot->cluster != options_.cluster)
        why = "it belongs to cluster " + slot->cluster;
      else if (slot->chunk != found.chunk)
        why = "it is the replica of chunk " + ToString(slot->chunk);
    }
  }
  if (why.empty() && !slot) {
    bool empty = !found.redo;
    if (empty && found.data) empty = co_await IsEmptyFile(&fs, replicas_dir_ + "/" + data_name);
    if (empty) {
      // An interrupted creation: nobody was told of it, and there are no bytes.
      if (found.data) (void)co_await fs.Unlink(replicas_dir_ + "/" + data_name);
      if (found.meta) (void)co_await fs.Unlink(replicas_dir_ + "/" + meta_name);
      co_return;
    }
    why = "bytes without a valid meta file";
  }
  if (!why.empty()) {
    if (found.data) co_await SetAside(data_name, why, boot);
    if (found.meta) co_await SetAside(meta_name, why, boot);
    if (found.redo) co_await SetAside(ReplicaFile::RedoName(found.chunk), why, boot);
    co_return;
  }

  state->SeeRevision(slot->epoch, slot->revision);
  ReplicaPtr replica = Add(found.chunk);
  replica->file = std::make_shared<ReplicaFile>(env_, replicas_dir_, *slot);
  replica->Forget();
  const bool unfinished = slot->state == ReplicaState::kOpen || slot->state == ReplicaState::kCreating ||
                          slot->state == ReplicaState::kRecovering ||
                          (slot->state == ReplicaState::kSealed && slot->durable_length < slot->length);
  if (found.redo && !unfinished) {
    if (Status dropped = co_await replica->file->DropRedo(); !dropped) {
      PICKET_LOG(env_, kWarning, "chunk {}: its redo file stays until the next start: {}", ToString(found.chunk),
                 dropped.error().message);
    }
  }
  if (slot->state == ReplicaState::kTombstone) {
    if (found.data) (void)co_await quarantine_.MoveData(*slot);
    co_return;
  }
  if (!found.data && slot->state != ReplicaState::kCorrupt) {
    co_await replica->file->MarkCorrupt("its data file is missing");
    co_return;
  }
  if (!unfinished) co_return;
  Status recovered = co_await replica->file->Recover();
  if (!recovered) {
    PICKET_LOG(env_, kError, "chunk {}: {}; its replica is not served", ToString(found.chunk),
               recovered.error().ToString());
    co_await replica->file->MarkCorrupt(recovered.error().message);
    co_return;
  }
  if (replica->file->loaded()) Touch(replica.get());
}

Task<> ReplicaStore::SetAside(std::string name, std::string why, Incarnation boot) {
  const std::string to = AsideDir(options_.dir) + "/" + name + "." + std::to_string(boot.value);
  Status moved = co_await env_.fs().Rename(replicas_dir_ + "/" + name, to);
  if (moved) {
    PICKET_LOG(env_, kWarning, "{}/{} is not a replica of this server ({}): moved to {}", replicas_dir_, name, why, to);
  } else {
    PICKET_LOG(env_, kError, "{}/{} is not a replica of this server ({}) and cannot be moved to {}: {}", replicas_dir_,
               name, why, to, moved.error().message);
  }
}

// ---- lookup ----------------------------------------------------------------------------------------

ReplicaPtr ReplicaStore::Find(ChunkId chunk) const {
  auto it = replicas_.find(chunk);
  return it == replicas_.end() ? nullptr : it->second;
}

Task<LockedReplica> ReplicaStore::Locked(ChunkId chunk) {
  LockedReplica locked;
  locked.marks.chunk = chunk;
  locked.replica = Find(chunk);
  if (locked.replica) {
    locked.ticket = locked.replica->lock().Enqueue();
    co_await locked.ticket.Wait();
    locked.marks = locked.replica->marks();
  }
  co_return std::move(locked);
}

ReplicaPtr ReplicaStore::Add(ChunkId chunk) {
  auto& place = replicas_[chunk];
  if (!place) place = std::make_shared<Replica>(env_, chunk);
  return place;
}

ReplicaPtr ReplicaStore::FindOrAdd(ChunkId chunk) { return Add(chunk); }

void ReplicaStore::ForgetEmpty(const ReplicaPtr& replica) {
  // Somebody who waits for the lock keeps the place: there is one lock for a chunk.
  if (replica->file || replica->lock().waiting() > 1) return;
  if (replica->place_) loaded_.erase(*std::exchange(replica->place_, std::nullopt));
  replicas_.erase(replica->chunk);
}

void ReplicaStore::Touch(Replica* replica) {
  if (replica->place_) loaded_.erase(*replica->place_);
  replica->place_ = loaded_.insert(loaded_.end(), replica);
  for (auto it = loaded_.begin(); loaded_.size() > options_.max_loaded && it != loaded_.end();) {
    Replica* r = *it;
    const bool gone = !r->file || !r->file->loaded();
    if (r == replica || r->busy() || !(gone || r->file->CanUnload())) {
      ++it;
      continue;
    }
    if (!gone) r->file->Unload();
    r->lock_.reset();
    r->place_.reset();
    it = loaded_.erase(it);
  }
}

Task<Status> ReplicaStore::Use(ReplicaPtr replica) {
  if (!replica->file) co_return Fail(Code::kNotFound, "chunk " + ToString(replica->chunk) + ": no replica here");
  PICKET_CO_TRY(co_await replica->file->Load());
  Touch(replica.get());
  co_return Status();
}

// ---- creation and deletion -------------------------------------------------------------------------

Task<Status> ReplicaStore::Create(ReplicaPtr replica, Slot slot) {
  slot.cluster = options_.cluster;
  slot.chunk = replica->chunk;
  std::optional<Slot> over;
  if (replica->file) over = replica->file->slot();
  auto made = co_await ReplicaFile::Create(&env_, replicas_dir_, std::move(slot), over ? &*over : nullptr);
  if (!made) co_return Fail(made.error());
  replica->file = std::move(*made);
  replica->last_serial = 0;
  replica->answered_at.reset();
  replica->known_acked = 0;
  replica->readable_from = replica->file->slot().version;
  Touch(replica.get());
  co_return Status();
}

Task<Status> ReplicaStore::Delete(ReplicaPtr replica, Retirement retirement) {
  retirement.wall_ns = env_.WallNanos();
  auto file = replica->file;
  if (file->overwritten() && file->dirty()) {
    // Both quarantined files together are the whole replica.
    if (Status placed = co_await file->SyncUpTo(file->length(), file->slot().lineage); !placed) {
      PICKET_LOG(env_, kWarning, "chunk {}: its last overwrites do not go to quarantine with it: {}",
                 ToString(replica->chunk), placed.error().message);
    }
  }
  Slot slot = file->slot();
  slot.deleted_ns = retirement.wall_ns;
  slot.retired = retirement.why;
  if (Status saved = co_await quarantine_.SaveMeta(slot); !saved) {
    // A replica that can't be read is deleted all the same; its data is kept.
    PICKET_LOG(env_, kWarning, "chunk {}: its marks could not be copied to quarantine: {}", ToString(replica->chunk),
               saved.error().message);
  }
  PICKET_CO_TRY(co_await replica->file->Entomb(retirement));
  replica->last_serial = 0;
  replica->known_acked = 0;
  if (Status moved = co_await quarantine_.MoveData(slot); !moved) {
    PICKET_LOG(env_, kWarning, "chunk {}: deleted, but its data stays until the next start: {}",
               ToString(replica->chunk), moved.error().message);
  }
  co_return Status();
}

std::vector<ReplicaPtr> ReplicaStore::Tombstones(ChunkId* after, size_t limit) const {
  std::vector<ReplicaPtr> out;
  auto it = replicas_.upper_bound(*after);
  for (size_t i = 0; i < limit && it != replicas_.end(); ++i, ++it) {
    *after = it->first;
    if (it->second->marks().state == ReplicaState::kTombstone) out.push_back(it->second);
  }
  if (it == replicas_.end()) *after = ChunkId();
  return out;
}

// ---- reports ---------------------------------------------------------------------------------------

std::vector<ReplicaPtr> ReplicaStore::List(ChunkId after, size_t limit) const {
  std::vector<ReplicaPtr> out;
  for (auto it = replicas_.upper_bound(after); it != replicas_.end() && out.size() < limit; ++it) {
    const auto& file = it->second->file;
    if (file && file->slot().state != ReplicaState::kTombstone) out.push_back(it->second);
  }
  return out;
}

Generation ReplicaStore::NewestGeneration(InodeId inode) const {
  Generation newest;
  for (const auto& [chunk, replica] : replicas_) {
    if (replica->file && replica->file->slot().inode == inode) newest = std::max(newest, replica->file->slot().generation);
  }
  return newest;
}

proto::ReplicaReport ReplicaStore::Report(const Replica& replica, Incarnation own) const {
  const Slot& slot = replica.file->slot();
  proto::ReplicaReport r;
  r.set_chunk(slot.chunk.value);
  r.set_version(slot.version.value);
  r.set_generation(slot.generation.value);
  r.set_state(static_cast<proto::ReplicaState>(slot.state));
  r.set_length(replica.file->length());
  r.set_digest(slot.state == ReplicaState::kSealed ? slot.digest : 0);
  r.set_instance(slot.instance.value);
  r.set_sealed_generation(slot.sealed_generation.value);
  r.set_clean(slot.raised_in == own);
  return r;
}

ReplicaStore::Totals ReplicaStore::totals() const {
  Totals t;
  for (const auto& [chunk, replica] : replicas_) {
    if (!replica->file || replica->file->slot().state == ReplicaState::kTombstone) continue;
    ++t.replicas;
    t.bytes += replica->file->length();
  }
  return t;
}

}  // namespace picket::cs
