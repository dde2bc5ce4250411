#include "client/core/random_writer.h"

#include "client/core/random_write_session.h"

namespace picket {

RandomWriter::RandomWriter(std::shared_ptr<RandomWriteSession> session) : session_(std::move(session)) {}
RandomWriter::~RandomWriter() { session_->Detach(); }

Task<Status> RandomWriter::WriteAt(uint64_t offset, Buffer data) {
  return RandomWriteSession::WriteAt(session_, offset, std::move(data));
}
Task<Status> RandomWriter::Flush() { return RandomWriteSession::Flush(session_); }
Task<Status> RandomWriter::Sync() { return RandomWriteSession::Sync(session_); }
Task<Result<proto::FileStatus>> RandomWriter::Close() { return RandomWriteSession::Close(session_); }

uint64_t RandomWriter::bytes_written() const { return session_->written(); }
const proto::FileStatus& RandomWriter::status() const { return session_->status(); }
const std::vector<std::string>& RandomWriter::warnings() const { return session_->warnings(); }

}  // namespace picket
