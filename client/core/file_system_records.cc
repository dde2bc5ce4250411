// The part of a FileSystem that is about records.
#include "client/core/file_system.h"
#include "client/core/record_reader.h"
#include "client/core/record_session.h"

namespace picket {

Task<Result<std::unique_ptr<RecordAppender>>> FileSystem::AppendRecords(std::string path, AppendFileOptions options) {
  proto::OpenRequest request;
  request.set_path(path);
  request.set_mode(proto::RECORD_APPEND);
  request.set_holder(options_.id.value);
  request.set_writer_id(options.session.writer_id);
  *request.mutable_limits() = options.session.limits;
  *request.mutable_conditions() = options.session.conditions;
  request.set_create(true);
  request.set_parents(options.made.parents);
  request.set_permissions(options.made.mode);
  request.set_owner(options_.user);
  request.set_group(options_.group);
  request.set_replication(options.made.replication);
  request.set_chunk_size(options.made.chunk_size);
  auto opened = co_await master_->Mutate<proto::OpenResponse>(proto::OPEN_FILE, std::move(request), Deadline());
  if (!opened) co_return Fail(std::move(opened).error());
  RecordSessionOptions session;
  session.path = std::move(path);
  session.sync = options.made.sync;
  session.patience = options_.operation_timeout;
  co_return std::make_unique<RecordAppender>(records_->Of(std::move(*opened), std::move(session)));
}

Task<Result<std::unique_ptr<RecordReader>>> FileSystem::ReadRecords(std::string path) {
  auto file = co_await chunks_->Locate(path, InodeId(), 0, 1);
  if (!file) co_return Fail(std::move(file).error());
  if (file->status().type() != proto::REGULAR) co_return Fail(Code::kIsDirectory, path + " is a directory");
  co_return std::make_unique<RecordReader>(env_, chunks_, *file);
}

}  // namespace picket
