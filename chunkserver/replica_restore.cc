// ReplicaStore: what comes back from quarantine, and what goes for good.
#include "chunkserver/replica_store.h"
#include "common/obs/log.h"

namespace picket::cs {

Task<Status> ReplicaStore::Restore(ReplicaPtr replica, std::string name, Quarantine::Meta meta, InstanceId instance) {
  const std::string meta_path = replicas_dir_ + "/" + ReplicaFile::MetaName(replica->chunk);
  // First a tombstone with the rest of the meta file behind it: until the last step a start finds that, and
  // puts the data back into quarantine.
  Slot tombstone = replica->file ? replica->file->slot() : meta.slot;
  if (replica->file) {
    auto live = co_await env_.fs().Open(meta_path, OpenMode::kReadWrite);
    if (!live) co_return Fail(live.error());
    Buffer rest = Buffer::Copy(meta.rest);
    PICKET_CO_TRY(co_await (*live)->WriteAt(kProgressOffset, rest));
    PICKET_CO_TRY(co_await (*live)->Sync());
  } else {
    tombstone.state = ReplicaState::kTombstone;
    tombstone.sequence = 0;
    std::string content = EncodeSlot(tombstone);
    content.resize(2 * kSlotSize);
    PICKET_CO_TRY(co_await WriteFileAtomic(&env_.fs(), meta_path, content + meta.rest));
    replica->file = std::make_shared<ReplicaFile>(env_, replicas_dir_, tombstone);
  }
  PICKET_CO_TRY(co_await quarantine_.TakeData(name, replica->chunk));

  Slot slot = meta.slot;
  slot.sequence = tombstone.sequence + 1;
  slot.instance = instance;
  slot.deleted_ns = 0;
  slot.retired = Retired::kUnknown;
  // It was away: nobody vouches for what an unsealed one has.
  if (slot.state != ReplicaState::kSealed) slot.raised_in = Incarnation();
  auto live = co_await env_.fs().Open(meta_path, OpenMode::kReadWrite);
  if (!live) co_return Fail(live.error());
  Buffer bytes = Buffer::Copy(EncodeSlot(slot));
  PICKET_CO_TRY(co_await (*live)->WriteAt(slot.sequence % 2 * kSlotSize, bytes));
  PICKET_CO_TRY(co_await (*live)->Sync());

  replica->file = std::make_shared<ReplicaFile>(env_, replicas_dir_, slot);
  replica->last_serial = 0;
  replica->answered_at.reset();
  replica->known_acked = 0;
  replica->Forget();
  if (slot.state != ReplicaState::kSealed || slot.durable_length < slot.length) {
    Status recovered = co_await replica->file->Recover();
    if (!recovered) co_await replica->file->MarkCorrupt(recovered.error().message);
    if (replica->file->loaded()) Touch(replica.get());
  }
  if (auto removed = co_await quarantine_.Remove(name); !removed) {
    PICKET_LOG(env_, kWarning, "{}: restored, but its meta file stays in quarantine: {}", name,
               removed.error().message);
  }
  co_return Status();
}

Task<Result<uint64_t>> ReplicaStore::Purge(std::string name) {
  ChunkId chunk;
  if (!Quarantine::ParseName(name, &chunk)) co_return Fail(Code::kNotFound, name + " is not in quarantine");
  ReplicaPtr replica = FindOrAdd(chunk);
  FifoLock::Ticket ticket = replica->lock().Enqueue();
  co_await ticket.Wait();
  auto removed = co_await quarantine_.Remove(name);
  ForgetEmpty(replica);
  co_return removed;
}

Task<Status> ReplicaStore::ForgetTombstone(ReplicaPtr replica) {
  // Data that a failed move left here would be bytes without a meta file.
  PICKET_CO_TRY(co_await quarantine_.MoveData(replica->file->slot()));
  const std::string path = replicas_dir_ + "/" + ReplicaFile::MetaName(replica->chunk);
  Status gone = co_await env_.fs().Unlink(path);
  if (!gone && gone.error().code != Code::kNotFound) co_return gone;
  PICKET_CO_TRY(co_await env_.fs().SyncDir(replicas_dir_));
  replica->file.reset();
  ForgetEmpty(replica);
  co_return Status();
}

}  // namespace picket::cs
