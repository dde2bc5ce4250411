// RandomWriter over that of the core on the loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/blocking/loop_thread.h"
#include "picket/client.h"

namespace picket::client {

class BlockingRandomWriter final : public RandomWriter {
 public:
  BlockingRandomWriter(std::shared_ptr<LoopThread> loop, std::unique_ptr<picket::RandomWriter> file, std::string path)
      : loop_(std::move(loop)), file_(std::move(file)), path_(std::move(path)), warnings_(file_->warnings()) {}
  ~BlockingRandomWriter() override { loop_->Dispose(std::move(file_)); }

  Result<> WriteAt(uint64_t offset, const void* data, size_t size) override;
  Result<> Flush() override;
  Result<> Sync() override;
  Result<FileStatus> Close() override;
  uint64_t bytes_written() const override { return written_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }

 private:
  const std::shared_ptr<LoopThread> loop_;
  std::unique_ptr<picket::RandomWriter> file_;
  const std::string path_;
  uint64_t written_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace picket::client
