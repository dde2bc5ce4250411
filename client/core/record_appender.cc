#include "client/core/record_appender.h"

#include "client/core/record_session.h"

namespace picket {
namespace {

Task<Result<uint64_t>> Closed() { co_return Fail(Code::kInvalidArgument, "the appender is closed"); }

}  // namespace

RecordAppender::RecordAppender(std::shared_ptr<RecordSession> session) : session_(std::move(session)) {
  session_->Join();
}
RecordAppender::~RecordAppender() {
  if (open_) session_->Leave();
}

Task<Result<uint64_t>> RecordAppender::Append(Buffer record, bool sync) {
  if (!open_) return Closed();
  return RecordSession::Append(session_, std::move(record), sync);
}
Task<std::vector<Result<uint64_t>>> RecordAppender::AppendAll(std::vector<Buffer> records, bool sync) {
  std::vector<Task<Result<uint64_t>>> appends;
  for (Buffer& record : records) appends.push_back(Append(std::move(record), sync));
  return WhenAll(&session_->env(), std::move(appends));
}
Task<Status> RecordAppender::Close() {
  if (!open_) co_return Status();
  open_ = false;
  const auto session = session_;
  co_return co_await RecordSession::Close(session);
}

uint64_t RecordAppender::max_record() const { return session_->max_record(); }
const proto::FileStatus& RecordAppender::status() const { return session_->status(); }
const std::vector<std::string>& RecordAppender::warnings() const { return session_->warnings(); }

}  // namespace picket
