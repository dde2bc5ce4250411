#include "client/core/file_writer.h"

#include "client/core/write_session.h"

namespace picket {

FileWriter::FileWriter(std::shared_ptr<WriteSession> session) : session_(std::move(session)) {}
FileWriter::~FileWriter() { session_->Detach(); }

Task<Status> FileWriter::Write(Buffer data) { return WriteSession::Write(session_, std::move(data)); }
Task<Status> FileWriter::Flush() { return WriteSession::Flush(session_); }
Task<Status> FileWriter::Sync() { return WriteSession::Sync(session_); }
Task<Result<proto::FileStatus>> FileWriter::Close() { return WriteSession::Close(session_); }
Task<Status> FileWriter::Abandon() { return WriteSession::Abandon(session_); }

uint64_t FileWriter::bytes_written() const { return session_->written(); }
uint64_t FileWriter::bytes_acknowledged() const { return session_->acknowledged(); }
const proto::FileStatus& FileWriter::status() const { return session_->status(); }
const std::vector<std::string>& FileWriter::warnings() const { return session_->warnings(); }

}  // namespace picket
