// RecordAppender and RecordReader over those of the core on the loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/blocking/loop_thread.h"
#include "client/core/record_appender.h"
#include "client/core/record_reader.h"
#include "picket/records.h"

namespace picket::client {

class BlockingRecordAppender final : public RecordAppender {
 public:
  BlockingRecordAppender(std::shared_ptr<LoopThread> loop, std::unique_ptr<picket::RecordAppender> appender)
      : loop_(std::move(loop)),
        appender_(std::move(appender)),
        max_record_(appender_->max_record()),
        warnings_(appender_->warnings()) {}
  ~BlockingRecordAppender() override { loop_->Dispose(std::move(appender_)); }

  Result<uint64_t> Append(std::string_view record, bool sync) override;
  std::vector<Result<uint64_t>> AppendAll(const std::vector<std::string>& records, bool sync) override;
  Result<> Close() override;
  uint64_t max_record() const override { return max_record_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }

 private:
  Buffer Copied(std::string_view record);

  const std::shared_ptr<LoopThread> loop_;
  std::unique_ptr<picket::RecordAppender> appender_;
  const uint64_t max_record_;
  const std::vector<std::string> warnings_;
};

class BlockingRecordReader final : public RecordReader {
 public:
  BlockingRecordReader(std::shared_ptr<LoopThread> loop, std::unique_ptr<picket::RecordReader> reader)
      : loop_(std::move(loop)), reader_(std::move(reader)) {}
  ~BlockingRecordReader() override { loop_->Dispose(std::move(reader_)); }

  Result<std::optional<Record>> Next() override;
  Result<> Seek(uint64_t offset) override;

 private:
  // Handed over at once: a small record does not cost a change of threads.
  static constexpr size_t kBatch = 64;
  static constexpr size_t kBatchBytes = 1 << 20;
  struct Batch {
    std::vector<picket::RecordReader::Record> records;
    std::optional<picket::Error> error;  // met behind them
  };
  static Task<Batch> ReadBatch(picket::RecordReader* reader);

  const std::shared_ptr<LoopThread> loop_;
  std::unique_ptr<picket::RecordReader> reader_;
  Batch batch_;
  size_t next_ = 0;  // in the batch
};

}  // namespace picket::client
