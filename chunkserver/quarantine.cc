#include "chunkserver/quarantine.h"

#include "common/obs/log.h"

namespace picket::cs {

Task<Result<Buffer>> ReadHead(Fs* fs, std::string path, size_t size) {
  auto file = co_await fs->Open(path, OpenMode::kReadOnly);
  if (!file) co_return Fail(file.error());
  Buffer bytes = Buffer::Allocate(size);
  auto n = co_await (*file)->ReadAt(0, bytes);
  if (!n) co_return Fail(n.error());
  co_return bytes.Slice(0, *n);
}

Task<Status> Quarantine::SaveMeta(Slot slot) {
  auto content = co_await ReadFile(&env_.fs(), replicas_dir_ + "/" + ReplicaFile::MetaName(slot.chunk));
  if (!content) co_return Fail(content.error());
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

bool Quarantine::ParseName(std::string_view name, ChunkId* chunk) {
  uint64_t instance = 0;
  return name.size() == 33 && name[16] == '.' && FromHex(name.substr(0, 16), &chunk->value) &&
         FromHex(name.substr(17), &instance) && ToHex(chunk->value) == name.substr(0, 16) &&
         ToHex(instance) == name.substr(17);
}

Task<Result<uint64_t>> Quarantine::SizeOf(std::string path) {
  auto file = co_await env_.fs().Open(path, OpenMode::kReadOnly);
  if (!file) co_return Fail(file.error());
  auto size = co_await (*file)->Size();
  co_return size;
}

Task<Result<std::vector<Quarantined>>> Quarantine::List() {
  auto files = co_await env_.fs().List(dir_);
  if (!files) co_return Fail(files.error());
  std::map<std::string, Quarantined> found;
  for (const std::string& file : *files) {
    if (!file.ends_with(".meta") && !file.ends_with(".data")) continue;
    Quarantined entry;
    entry.name = file.substr(0, file.size() - 5);
    if (ParseName(entry.name, &entry.chunk)) found.emplace(entry.name, entry);
  }
  std::vector<Quarantined> out;
  for (auto& [name, entry] : found) {
    if (out.size() == kMaxListed) break;
    auto head = co_await ReadHead(&env_.fs(), dir_ + "/" + name + ".meta", 2 * kSlotSize);
    if (head) {
      auto slot = NewestSlot(head->view());
      if (slot && *slot) entry.slot = std::move(**slot);
    }
    auto size = co_await SizeOf(dir_ + "/" + name + ".data");
    if (size) entry.bytes = *size;
    out.push_back(std::move(entry));
  }
  co_return out;
}

Task<Result<Quarantine::Meta>> Quarantine::ReadMeta(std::string name) {
  auto content = co_await ReadFile(&env_.fs(), dir_ + "/" + name + ".meta");
  if (!content) co_return Fail(content.error());
  auto slot = NewestSlot(std::string_view(*content).substr(0, 2 * kSlotSize));
  if (!slot) co_return Fail(slot.error());
  if (!*slot) co_return Fail(Code::kCorrupt, "the meta file of " + name + " in quarantine is empty");
  Meta meta;
  meta.slot = std::move(**slot);
  if (content->size() > 2 * kSlotSize) meta.rest = content->substr(2 * kSlotSize);
  co_return meta;
}

Task<Status> Quarantine::TakeData(std::string name, ChunkId chunk) {
  PICKET_CO_TRY(
      co_await env_.fs().Rename(dir_ + "/" + name + ".data", replicas_dir_ + "/" + ReplicaFile::DataName(chunk)));
  PICKET_CO_TRY(co_await env_.fs().SyncDir(replicas_dir_));
  co_return co_await env_.fs().SyncDir(dir_);
}

Task<Result<uint64_t>> Quarantine::Remove(std::string name) {
  expired_.erase(name);
  auto size = co_await SizeOf(dir_ + "/" + name + ".data");
  bool any = false;
  for (const char* part : {".data", ".meta"}) {
    Status gone = co_await env_.fs().Unlink(dir_ + "/" + name + part);
    if (!gone && gone.error().code != Code::kNotFound) co_return Fail(gone.error());
    any = any || gone;
  }
  if (!any) co_return Fail(Code::kNotFound, name + " is not in quarantine");
  PICKET_CO_TRY(co_await env_.fs().SyncDir(dir_));
  co_return size ? *size : 0;
}

Task<Status> Quarantine::FindExpired() {
  auto all = co_await List();
  if (!all) co_return Fail(all.error());
  expired_.clear();
  for (Quarantined& entry : *all) {
    if (expired_.size() == kMaxExpired) break;
    if (!entry.slot || env_.WallNanos() - entry.slot->deleted_ns < kept_for_.count()) continue;
    std::string name = entry.name;
    expired_.emplace(std::move(name), std::move(entry));
  }
  co_return Status();
}

}  // namespace picket::cs
