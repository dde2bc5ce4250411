#include "client/blocking/reader.h"

#include <algorithm>
#include <cstring>

#include "client/blocking/convert.h"
#include "client/blocking/error_map.h"

namespace picket::client {

BlockingReader::BlockingReader(std::shared_ptr<LoopThread> loop, std::unique_ptr<FileReader> file, std::string path)
    : loop_(std::move(loop)), file_(std::move(file)), status_(Public(file_->status(), std::move(path))) {}

BlockingReader::~BlockingReader() { loop_->Dispose(std::move(file_)); }

Result<size_t> BlockingReader::ReadAt(uint64_t offset, void* into, size_t size) {
  size_t done = 0;
  while (done < size) {
    const size_t part = std::min(size - done, kReadAtPart);
    auto bytes = loop_->Run<picket::Result<Buffer>>(
        [file = file_.get(), offset, done, part](FileSystem&) { return file->ReadAt(offset + done, part); });
    if (!bytes) return PublicFailure(bytes.error());
    if (bytes->empty()) break;
    std::memcpy(static_cast<std::byte*>(into) + done, bytes->data(), bytes->size());
    done += bytes->size();
    if (bytes->size() < part) break;
  }
  return done;
}

Result<size_t> BlockingReader::Read(void* into, size_t size) {
  if (size == 0) return 0;
  if (piece_.empty()) {
    auto bytes =
        loop_->Run<picket::Result<Buffer>>([file = file_.get()](FileSystem&) { return file->Read(); });
    if (!bytes) return PublicFailure(bytes.error());
    piece_ = std::move(*bytes);
    if (piece_.empty()) return 0;
  }
  const size_t part = std::min(size, piece_.size());
  std::memcpy(into, piece_.data(), part);
  piece_ = part == piece_.size() ? Buffer() : piece_.Slice(part, piece_.size() - part);
  return part;
}

Result<> BlockingReader::Seek(uint64_t offset) {
  piece_ = Buffer();
  struct SeekTask {
    static Task<Status> Run(FileReader* file, uint64_t to) {
      file->Seek(to);
      co_return Status();
    }
  };
  auto status =
      loop_->Run<Status>([file = file_.get(), offset](FileSystem&) { return SeekTask::Run(file, offset); });
  if (!status) return PublicFailure(status.error());
  return {};
}

Result<uint64_t> BlockingReader::Length() {
  auto length =
      loop_->Run<picket::Result<uint64_t>>([file = file_.get()](FileSystem&) { return file->Length(); });
  if (!length) return PublicFailure(length.error());
  return *length;
}

}  // namespace picket::client
