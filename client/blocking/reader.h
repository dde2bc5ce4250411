// Reader over a FileReader on the loop.
#pragma once

#include <memory>
#include <string>

#include "client/blocking/loop_thread.h"
#include "picket/client.h"

namespace picket::client {

class BlockingReader final : public Reader {
 public:
  BlockingReader(std::shared_ptr<LoopThread> loop, std::unique_ptr<FileReader> file, std::string path);
  ~BlockingReader() override;

  Result<size_t> ReadAt(uint64_t offset, void* into, size_t size) override;
  Result<size_t> Read(void* into, size_t size) override;
  Result<> Seek(uint64_t offset) override;
  Result<uint64_t> Length() override;
  const FileStatus& status() const override { return status_; }

 private:
  // One request of ReadAt to the loop: bounds the memory of a large one.
  static constexpr size_t kReadAtPart = 8 << 20;

  const std::shared_ptr<LoopThread> loop_;
  std::unique_ptr<FileReader> file_;
  const FileStatus status_;
  Buffer piece_;           // of the sequential position, what Read has not given out yet
};

}  // namespace picket::client
