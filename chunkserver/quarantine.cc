#include "chunkserver/quarantine.h"

#include "common/obs/log.h"

namespace picket::cs {

Task<Status> Quarantine::SaveMeta(Slot slot, int64_t wall_ns) {
  auto content = co_await ReadFile(&env_.fs(), replicas_dir_ + "/" + ReplicaFile::MetaName(slot.chunk));
  if (!content) co_return Fail(content.error());
  slot.deleted_ns = wall_ns;
  std::string saved = EncodeSlot(slot);
  saved.resize(2 * kSlotSize);
  if (content->size() > saved.size()) saved += content->substr(saved.size());
  co_return co_await WriteFileAtomic(&env_.fs(), Stem(slot) + ".meta", std::move(saved));
}

Task<Status> Quarantine::MoveData(Slot slot) {
  Status moved =
      co_await env_.fs().Rename(replicas_dir_ + "/" + ReplicaFile::DataName(slot.chunk), Stem(slot) + ".data");
  if (!moved && moved.error().code == Code::kNotFound) co_return Status();
  if (!moved) co_return moved;
  PICKET_CO_TRY(co_await env_.fs().SyncDir(dir_));
  PICKET_CO_TRY(co_await env_.fs().SyncDir(replicas_dir_));
  co_await GiveBackReserved(Stem(slot) + ".data");
  co_return Status();
}

Task<> Quarantine::GiveBackReserved(std::string path) {
  auto file = co_await env_.fs().Open(path, OpenMode::kReadWrite);
  if (!file) co_return;
  auto size = co_await (*file)->Size();
  if (!size) co_return;
  auto freed = co_await (*file)->Truncate(*size);
  if (!freed) PICKET_LOG(env_, kWarning, "{} keeps the space reserved for its chunk: {}", path, freed.error().message);
}

Task<Result<size_t>> Quarantine::Purge() {
  auto names = co_await env_.fs().List(dir_);
  if (!names) co_return Fail(names.error());
  size_t removed = 0;
  for (const std::string& name : *names) {
    if (!name.ends_with(".meta")) continue;
    const std::string path = dir_ + "/" + name;
    auto content = co_await ReadFile(&env_.fs(), path);
    if (!content) continue;
    auto slot = NewestSlot(std::string_view(*content).substr(0, 2 * kSlotSize));
    if (!slot || !*slot || env_.WallNanos() - (*slot)->deleted_ns < kept_for_.count()) continue;
    Status gone = co_await env_.fs().Unlink(path.substr(0, path.size() - 5) + ".data");
    if (!gone && gone.error().code != Code::kNotFound) co_return Fail(gone.error());
    PICKET_CO_TRY(co_await env_.fs().Unlink(path));
    ++removed;
  }
  co_return removed;
}

}  // namespace picket::cs
