#include "client/blocking/records.h"

#include "client/blocking/error_map.h"

namespace picket::client {

// ---- appending -------------------------------------------------------------------------------------

Buffer BlockingRecordAppender::Copied(std::string_view record) {
  if (record.empty()) return Buffer();
  Buffer bytes = loop_->Allocate(record.size());
  std::memcpy(bytes.data(), record.data(), record.size());
  return bytes;
}

Result<uint64_t> BlockingRecordAppender::Append(std::string_view record, bool sync) {
  auto offset = loop_->Run<picket::Result<uint64_t>>([appender = appender_.get(), bytes = Copied(record),
                                                      sync](FileSystem&) { return appender->Append(bytes, sync); });
  if (!offset) return PublicFailure(offset.error());
  return *offset;
}

std::vector<Result<uint64_t>> BlockingRecordAppender::AppendAll(const std::vector<std::string>& records, bool sync) {
  std::vector<Buffer> buffers;
  buffers.reserve(records.size());
  for (const std::string& record : records) buffers.push_back(Copied(record));
  auto offsets = loop_->Run<std::vector<picket::Result<uint64_t>>>(
      [appender = appender_.get(), buffers = std::move(buffers), sync](FileSystem&) mutable {
        return appender->AppendAll(std::move(buffers), sync);
      });
  std::vector<Result<uint64_t>> out;
  out.reserve(offsets.size());
  for (auto& offset : offsets) {
    if (offset) {
      out.emplace_back(*offset);
    } else {
      out.emplace_back(PublicFailure(offset.error()));
    }
  }
  return out;
}

Result<> BlockingRecordAppender::Close() {
  auto closed = loop_->Run<Status>([appender = appender_.get()](FileSystem&) { return appender->Close(); });
  if (!closed) return PublicFailure(closed.error());
  return {};
}

// ---- reading ---------------------------------------------------------------------------------------

Task<BlockingRecordReader::Batch> BlockingRecordReader::ReadBatch(picket::RecordReader* reader) {
  Batch batch;
  for (size_t bytes = 0; batch.records.size() < kBatch && bytes < kBatchBytes;) {
    auto record = co_await reader->Next();
    if (!record) {
      batch.error = std::move(record).error();
      break;
    }
    if (!*record) break;
    bytes += (*record)->bytes.size();
    batch.records.push_back(std::move(**record));
  }
  co_return batch;
}

Result<std::optional<Record>> BlockingRecordReader::Next() {
  if (next_ == batch_.records.size()) {
    if (batch_.error) return PublicFailure(*batch_.error);
    batch_ = loop_->Run<Batch>([reader = reader_.get()](FileSystem&) { return ReadBatch(reader); });
    next_ = 0;
    if (batch_.records.empty()) {
      if (batch_.error) return PublicFailure(*batch_.error);
      return std::nullopt;
    }
  }
  picket::RecordReader::Record& record = batch_.records[next_++];
  Record out;
  out.offset = record.offset;
  out.client = record.client.value;
  out.sequence = record.sequence;
  out.bytes = std::string(record.bytes.view());
  record.bytes = Buffer();
  return out;
}

Result<> BlockingRecordReader::Seek(uint64_t offset) {
  batch_ = Batch();
  next_ = 0;
  struct There {
    static Task<Status> Go(picket::RecordReader* reader, uint64_t where) {
      reader->Seek(where);
      co_return Status();
    }
  };
  auto done = loop_->Run<Status>([reader = reader_.get(), offset](FileSystem&) { return There::Go(reader, offset); });
  if (!done) return PublicFailure(done.error());
  return {};
}

}  // namespace picket::client
