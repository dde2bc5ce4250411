#include "chunkserver/record_windows.h"

#include "common/base/mutation.h"
#include "common/base/record_frame.h"

namespace picket::cs {

std::shared_ptr<RecordWindows::Records> RecordWindows::Known(const Replica& replica) {
  auto it = by_chunk_.find(replica.chunk);
  if (it == by_chunk_.end()) return nullptr;
  const Kept& kept = *it->second;
  const bool same = kept.file.lock() == replica.file && kept.lineage == replica.file->slot().lineage &&
                    kept.records->window.end() <= replica.file->length();
  if (same || PICKET_MUTANT(record_window_lineage)) return kept.records;
  kept_.erase(it->second);
  by_chunk_.erase(it);
  return nullptr;
}

void RecordWindows::Keep(const Replica& replica, std::shared_ptr<Records> records) {
  if (auto it = by_chunk_.find(replica.chunk); it != by_chunk_.end()) {
    kept_.erase(it->second);
    by_chunk_.erase(it);
  }
  kept_.push_back({replica.chunk, replica.file, replica.file->slot().lineage, std::move(records)});
  by_chunk_.emplace(replica.chunk, std::prev(kept_.end()));
  size_t remembered = 0;
  for (const Kept& kept : kept_) remembered += kept.records->window.size();
  while (remembered > kMaxRemembered && kept_.size() > 1) {
    remembered -= kept_.front().records->window.size();
    by_chunk_.erase(kept_.front().chunk);
    kept_.pop_front();
  }
}

Task<Result<std::shared_ptr<RecordWindows::Records>>> RecordWindows::Of(ReplicaPtr replica) {
  std::shared_ptr<Records> records = Known(*replica);
  if (records && (records->torn || records->window.end() == replica->file->length())) co_return records;
  if (!records) records = std::make_shared<Records>();
  if (Status read = co_await Read(replica->file, records.get()); !read) co_return Fail(std::move(read).error());
  Keep(*replica, records);
  co_return records;
}

Task<Status> RecordWindows::Read(std::shared_ptr<ReplicaFile> file, Records* records) {
  RecordWindow& window = records->window;
  const uint64_t length = file->length();
  const uint64_t chunk_size = file->slot().chunk_size;
  Buffer piece;
  uint64_t piece_at = 0;
  while (window.end() < length) {
    const uint64_t at = window.end();
    const uint64_t size = std::min<uint64_t>(kRecordHeaderSize, length - at);
    if (at + size > piece_at + piece.size()) {
      auto bytes = co_await file->Read(at, std::min(kScanStep, length - at));
      if (!bytes) co_return Fail(std::move(bytes).error());
      piece = std::move(*bytes);
      piece_at = at;
    }
    const std::string_view head = piece.view().substr(at - piece_at, size);
    if (size < kRecordHeaderSize) {
      if (length == chunk_size) {
        window.Skip(size);
        break;
      }
      if (!MayBeginRecord(head)) co_return co_await NoFrame(file, at);
      records->torn = true;
      break;
    }
    auto header = DecodeRecordHeader(head);
    if (!header || header->frame_size() > chunk_size - at) co_return co_await NoFrame(file, at);
    if (header->frame_size() > length - at) {
      records->torn = true;
      break;
    }
    if (header->padding) {
      window.Skip(header->frame_size());
    } else {
      window.Note({ClientId(header->client), header->sequence}, header->frame_size());
    }
  }
  co_return Status();
}

Task<Status> RecordWindows::NoFrame(std::shared_ptr<ReplicaFile> file, uint64_t at) {
  const ChunkId chunk = file->slot().chunk;
  auto good = co_await file->VerifyBlocks(at / kBlockSize, 2);
  if (!good) co_return Fail(std::move(good).error());
  if (!*good) {
    const std::string why = "the bytes at " + std::to_string(at) + " do not match their checksum";
    co_await file->MarkCorrupt(why);
    changes_.Changed(chunk);
    co_return Fail(Error(Code::kCorrupt, "chunk " + ToString(chunk) + ": " + why).WithNextStep("use another replica"));
  }
  co_return Fail(Error(Code::kConflict, "chunk " + ToString(chunk) + ": no record begins at byte " +
                                            std::to_string(at) + ": the file was not written by record append")
                     .WithNextStep("append records to a file of their own"));
}

}  // namespace picket::cs
