#include "client/blocking/writer.h"

#include <algorithm>
#include <cstring>

#include "client/blocking/convert.h"
#include "client/blocking/error_map.h"
#include "client/core/packet.h"

namespace picket::client {

BlockingWriter::BlockingWriter(std::shared_ptr<LoopThread> loop, std::unique_ptr<FileWriter> file, std::string path)
    : loop_(std::move(loop)), file_(std::move(file)), path_(std::move(path)), begin_(file_->status().length()), warnings_(file_->warnings()) {}

BlockingWriter::~BlockingWriter() { loop_->Dispose(std::move(file_)); }

Buffer BlockingWriter::TakeGathered() {
  if (gathered_size_ == 0) return Buffer();
  Buffer taken = gathered_.Slice(0, gathered_size_);
  gathered_ = Buffer();
  gathered_size_ = 0;
  return taken;
}

void BlockingWriter::Learn() {
  acknowledged_ = file_->bytes_acknowledged();
  if (file_->warnings().size() != warnings_.size()) warnings_ = file_->warnings();
}

Task<Status> BlockingWriter::Take(Buffer gathered, Step step) {
  Status status;
  if (!gathered.empty()) status = co_await file_->Write(std::move(gathered));
  if (status && step != nullptr) status = co_await (file_.get()->*step)();
  Learn();
  co_return status;
}

Task<picket::Result<proto::FileStatus>> BlockingWriter::TakeClose(Buffer gathered) {
  PICKET_CO_TRY(co_await Take(std::move(gathered), nullptr));
  auto status = co_await file_->Close();
  Learn();
  co_return status;
}

Result<> BlockingWriter::Advance(Step step) {
  auto status = loop_->Run<Status>(
      [this, gathered = TakeGathered(), step](FileSystem&) mutable { return Take(std::move(gathered), step); });
  if (!status) return Ends(status.error());
  return {};
}

std::unexpected<Error> BlockingWriter::Ends(const picket::Error& why) {
  ended_ = Public(why);
  return std::unexpected(*ended_);
}

Result<> BlockingWriter::Write(const void* data, size_t size) {
  if (ended_) return std::unexpected(*ended_);
  const auto* bytes = static_cast<const std::byte*>(data);
  while (size > 0) {
    // A packet ends at a multiple of its size, so that whole ones need no second copy.
    const uint64_t room = kMaxPacketSize - (begin_ + written_ - gathered_size_) % kMaxPacketSize;
    if (gathered_.empty()) gathered_ = loop_->Allocate(room);
    const size_t part = std::min<uint64_t>(size, room - gathered_size_);
    std::memcpy(gathered_.data() + gathered_size_, bytes, part);
    gathered_size_ += part;
    written_ += part;
    bytes += part;
    size -= part;
    if (gathered_size_ == room) {
      if (auto done = Advance(nullptr); !done) return done;
    }
  }
  return {};
}

Result<> BlockingWriter::Flush() { return Advance(&FileWriter::Flush); }
Result<> BlockingWriter::Sync() { return Advance(&FileWriter::Sync); }

Result<FileStatus> BlockingWriter::Close() {
  auto status = loop_->Run<picket::Result<proto::FileStatus>>(
      [this, gathered = TakeGathered()](FileSystem&) mutable { return TakeClose(std::move(gathered)); });
  if (!status) return Ends(status.error());
  Ends(picket::Error(Code::kInvalidArgument, path_ + ": the writer is closed"));
  return Public(*status, path_);
}

Result<> BlockingWriter::Abandon() {
  auto status = loop_->Run<Status>([file = file_.get()](FileSystem&) { return file->Abandon(); });
  // A writer that can't be given up is as it was.
  if (!status && status.error().code == Code::kInvalidArgument) return PublicFailure(status.error());
  TakeGathered();
  Ends(picket::Error(Code::kInvalidArgument, path_ + ": the writer was abandoned"));
  if (!status) return PublicFailure(status.error());
  return {};
}

}  // namespace picket::client
