#include "chunkserver/redo_log.h"

#include "common/base/block.h"
#include "common/base/check.h"
#include "common/base/coding.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket::cs {
namespace {

constexpr uint64_t kRedoMagic = 0x314f4452544b4350;  // "PCKTRDO1"

}  // namespace

std::string EncodeRedoHead(const RedoHead& h) {
  std::string out;
  PutFixed(&out, kRedoMagic);
  PutFixed(&out, h.instance.value);
  PutFixed(&out, h.sequence);
  PutFixed(&out, h.block);
  PutFixed(&out, h.size);
  PutFixed(&out, h.crc);
  PutFixed(&out, Crc32c(out));
  return out;
}

std::optional<RedoHead> DecodeRedoHead(std::string_view bytes) {
  if (bytes.size() < kRedoHeadSize) return std::nullopt;
  const char* at = bytes.data();
  if (LoadFixed<uint64_t>(at) != kRedoMagic) return std::nullopt;
  if (Crc32c(bytes.substr(0, kRedoHeadSize - 4)) != LoadFixed<uint32_t>(at + kRedoHeadSize - 4)) return std::nullopt;
  RedoHead h;
  h.instance = InstanceId(LoadFixed<uint64_t>(at + 8));
  h.sequence = LoadFixed<uint64_t>(at + 16);
  h.block = LoadFixed<uint32_t>(at + 24);
  h.size = LoadFixed<uint32_t>(at + 28);
  h.crc = LoadFixed<uint32_t>(at + 32);
  return h;
}

Task<Status> RedoLog::Create() {
  auto file = co_await env_.fs().Open(path_, OpenMode::kCreate);
  if (!file) co_return Fail(file.error());
  PICKET_CO_TRY(co_await (*file)->Truncate(0));
  file_ = std::move(*file);
  co_return Status();
}

Task<Result<bool>> RedoLog::Open(InstanceId instance, uint64_t sequence) {
  auto file = co_await env_.fs().Open(path_, OpenMode::kReadWrite);
  if (!file && file.error().code == Code::kNotFound) co_return false;
  if (!file) co_return Fail(file.error());
  file_ = std::move(*file);
  Buffer record = Buffer::Allocate(kRedoHeadSize + kBlockSize);
  while (true) {
    auto n = co_await file_->ReadAt(end_, record);
    if (!n) co_return Fail(n.error());
    const auto head = DecodeRedoHead(record.view().substr(0, *n));
    const bool counts = head && head->instance == instance && head->sequence == sequence;
    if ((!counts && !PICKET_MUTANT(redo_sequence)) || !head) break;
    if (head->size > kBlockSize || *n < kRedoHeadSize + head->size) break;
    if (Crc32c(record.data() + kRedoHeadSize, head->size) != head->crc) break;
    entries_[head->block] = {end_ + kRedoHeadSize, head->size, head->crc};
    end_ += kRedoHeadSize + head->size;
  }
  co_return true;
}

Task<Status> RedoLog::Add(InstanceId instance, uint64_t sequence, std::vector<RedoBlock> blocks) {
  uint64_t end = end_;
  Entries added;
  for (const RedoBlock& b : blocks) {
    const auto size = static_cast<uint32_t>(b.bytes.size());
    const std::string head = EncodeRedoHead({instance, sequence, static_cast<uint32_t>(b.block), size, b.crc});
    Buffer record = env_.Allocate(kRedoHeadSize + size);
    std::memcpy(record.data(), head.data(), kRedoHeadSize);
    std::memcpy(record.data() + kRedoHeadSize, b.bytes.data(), size);
    PICKET_CO_TRY(co_await file_->WriteAt(end, record));
    added[b.block] = {end + kRedoHeadSize, size, b.crc};
    end += kRedoHeadSize + size;
  }
  end_ = end;
  placed_ = false;
  for (const auto& [block, entry] : added) entries_[block] = entry;
  co_return Status();
}

Task<Result<Buffer>> RedoLog::Read(uint64_t block) {
  const Entry entry = entries_.at(block);
  Buffer bytes = env_.Allocate(entry.size);
  auto n = co_await file_->ReadAt(entry.at, bytes);
  if (!n) co_return Fail(n.error());
  bytes = bytes.Slice(0, *n);
  if (*n < entry.size || Crc32c(bytes.view()) != entry.crc) {
    co_return Fail(Code::kCorrupt, path_ + ": the overwritten block " + std::to_string(block) +
                                       " does not match its checksum");
  }
  co_return bytes;
}

Task<Status> RedoLog::Sync() {
  PICKET_CO_TRY(co_await file_->Sync());
  if (!name_durable_) {
    PICKET_CO_TRY(co_await env_.fs().SyncDir(dir_));
    name_durable_ = true;
  }
  co_return Status();
}

Task<Status> RedoLog::Clear() {
  entries_.clear();
  end_ = 0;
  return file_->Truncate(0);
}

Task<> RedoLog::Remove() {
  entries_.clear();
  end_ = 0;
  file_.reset();
  Status gone = co_await env_.fs().Unlink(path_);
  if (!gone && gone.error().code != Code::kNotFound) {
    PICKET_LOG(env_, kWarning, "{} is of no use any more and cannot be removed: {}", path_, gone.error().message);
  }
}

}  // namespace picket::cs
