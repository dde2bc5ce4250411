#include "client/blocking/random_writer.h"

#include <algorithm>
#include <cstring>

#include "client/blocking/convert.h"
#include "client/blocking/error_map.h"
#include "client/core/packet.h"

namespace picket::client {

Result<> BlockingRandomWriter::WriteAt(uint64_t offset, const void* data, size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  while (size > 0) {
    // Parts end where packets do.
    const size_t part = std::min<uint64_t>(size, kMaxPacketSize - offset % kMaxPacketSize);
    Buffer copy = loop_->Allocate(part);
    std::memcpy(copy.data(), bytes, part);
    auto done = loop_->Run<Status>(
        [file = file_.get(), offset, copy](FileSystem&) { return file->WriteAt(offset, copy); });
    if (!done) return PublicFailure(done.error());
    offset += part;
    bytes += part;
    size -= part;
    written_ += part;
  }
  return {};
}

Result<> BlockingRandomWriter::Flush() {
  auto done = loop_->Run<Status>([file = file_.get()](FileSystem&) { return file->Flush(); });
  if (!done) return PublicFailure(done.error());
  return {};
}

Result<> BlockingRandomWriter::Sync() {
  auto done = loop_->Run<Status>([file = file_.get()](FileSystem&) { return file->Sync(); });
  if (!done) return PublicFailure(done.error());
  return {};
}

Result<FileStatus> BlockingRandomWriter::Close() {
  auto status =
      loop_->Run<picket::Result<proto::FileStatus>>([file = file_.get()](FileSystem&) { return file->Close(); });
  if (!status) return PublicFailure(status.error());
  return Public(*status, path_);
}

}  // namespace picket::client
