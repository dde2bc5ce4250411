#include "client/core/file_system.h"

#include "client/core/chunk_reader.h"
#include "client/core/master_client.h"
#include "client/core/open_file.h"
#include "client/core/random_write_session.h"
#include "client/core/record_reader.h"
#include "client/core/record_session.h"
#include "client/core/session_keeper.h"
#include "client/core/write_session.h"

namespace picket {
namespace {

Error BadChunkSize(const std::string& path, const proto::FileStatus& status) {
  return Error(Code::kInternal,
               path + ": the master gave a chunk size of " + std::to_string(status.chunk_size()) + " bytes");
}

}  // namespace

FileSystem::FileSystem(Env& env, FileSystemOptions options) : env_(env), options_(std::move(options)) {
  while (!options_.id) options_.id = ClientId(env.Random());
  master_ = std::make_shared<MasterClient>(env, options_.master, options_.id, options_.connect_timeout);
  sessions_ = std::make_shared<SessionKeeper>(env, master_);
  records_ = std::make_shared<RecordSessions>(env, master_, sessions_);
  chunks_ = std::make_shared<ChunkReader>(env, master_, options_.operation_timeout);
}

FileSystem::~FileSystem() = default;

Task<Status> FileSystem::Connect() { return master_->FirstContact(Deadline()); }

// ---- names -----------------------------------------------------------------------------------------

Task<Result<proto::FileStatus>> FileSystem::Stat(std::string path) {
  proto::StatRequest request;
  request.set_path(std::move(path));
  auto answer = co_await master_->Read<proto::StatResponse>(proto::STAT, request, Deadline());
  if (!answer) co_return Fail(std::move(answer).error());
  co_return std::move(*answer->mutable_status());
}

Task<Result<proto::ListResponse>> FileSystem::List(std::string path, std::string start_after, uint32_t limit) {
  proto::ListRequest request;
  request.set_path(std::move(path));
  request.set_start_after(std::move(start_after));
  request.set_limit(limit);
  co_return co_await master_->Read<proto::ListResponse>(proto::LIST, request, Deadline());
}

Task<Result<proto::FileStatus>> FileSystem::Mkdir(std::string path, bool parents, uint32_t mode,
                                                  proto::Conditions conditions) {
  proto::MkdirRequest request;
  request.set_path(std::move(path));
  request.set_parents(parents);
  request.set_mode(mode);
  request.set_owner(options_.user);
  request.set_group(options_.group);
  *request.mutable_conditions() = std::move(conditions);
  auto answer = co_await master_->Mutate<proto::MkdirResponse>(proto::MKDIR, std::move(request), Deadline());
  if (!answer) co_return Fail(std::move(answer).error());
  co_return std::move(*answer->mutable_status());
}

Task<Status> FileSystem::Rename(std::string from, std::string to, bool overwrite, proto::Conditions conditions) {
  proto::RenameRequest request;
  request.set_from(std::move(from));
  request.set_to(std::move(to));
  request.set_overwrite(overwrite);
  *request.mutable_conditions() = std::move(conditions);
  auto answer = co_await master_->Mutate<proto::RenameResponse>(proto::RENAME, std::move(request), Deadline());
  if (!answer) co_return Fail(std::move(answer).error());
  co_return Status();
}

Task<Result<std::string>> FileSystem::Remove(std::string path, bool recursive, bool skip_trash, InodeId only_inode) {
  return Remove(std::move(path), {.recursive = recursive, .skip_trash = skip_trash, .only_inode = only_inode});
}

Task<Result<std::string>> FileSystem::Remove(std::string path, RemoveOptions options) {
  proto::DeleteRequest request;
  request.set_path(std::move(path));
  request.set_recursive(options.recursive);
  request.set_skip_trash(options.skip_trash);
  request.set_user(options_.user);
  request.set_only_inode(options.only_inode.value);
  *request.mutable_conditions() = std::move(options.conditions);
  auto answer = co_await master_->Mutate<proto::DeleteResponse>(proto::DELETE, std::move(request), Deadline());
  if (!answer) co_return Fail(std::move(answer).error());
  co_return std::move(*answer->mutable_trash_path());
}

Task<Result<proto::FileStatus>> FileSystem::SetAttributes(proto::SetAttributesRequest request,
                                                          proto::Conditions conditions) {
  *request.mutable_conditions() = std::move(conditions);
  auto answer =
      co_await master_->Mutate<proto::SetAttributesResponse>(proto::SET_ATTRIBUTES, std::move(request), Deadline());
  if (!answer) co_return Fail(std::move(answer).error());
  co_return std::move(*answer->mutable_status());
}

Task<Result<proto::FileStatus>> FileSystem::SetMode(std::string path, uint32_t mode, proto::Conditions conditions) {
  proto::SetAttributesRequest request;
  request.set_path(std::move(path));
  request.set_mode(mode);
  return SetAttributes(std::move(request), std::move(conditions));
}

Task<Result<proto::FileStatus>> FileSystem::SetOwner(std::string path, std::string owner, std::string group,
                                                     proto::Conditions conditions) {
  proto::SetAttributesRequest request;
  request.set_path(std::move(path));
  if (!owner.empty()) request.set_owner(std::move(owner));
  if (!group.empty()) request.set_group(std::move(group));
  return SetAttributes(std::move(request), std::move(conditions));
}

Task<Result<proto::FileStatus>> FileSystem::SetTime(std::string path, int64_t mtime_ns, proto::Conditions conditions) {
  proto::SetAttributesRequest request;
  request.set_path(std::move(path));
  request.set_mtime_ns(mtime_ns);
  return SetAttributes(std::move(request), std::move(conditions));
}

Task<Result<proto::SummaryResponse>> FileSystem::Summary(std::string path) {
  proto::SummaryRequest request;
  request.set_path(std::move(path));
  co_return co_await master_->Read<proto::SummaryResponse>(proto::SUMMARY, request, Deadline());
}

// ---- files -----------------------------------------------------------------------------------------

Task<Result<std::unique_ptr<FileWriter>>> FileSystem::Create(std::string path, CreateFileOptions options) {
  proto::CreateRequest request;
  request.set_path(path);
  request.set_overwrite(options.overwrite);
  request.set_parents(options.parents);
  request.set_mode(options.mode);
  request.set_owner(options_.user);
  request.set_group(options_.group);
  request.set_replication(options.replication);
  request.set_chunk_size(options.chunk_size);
  request.set_holder(options_.id.value);
  request.set_mtime_ns(options.mtime_ns);
  request.set_writer_id(options.session.writer_id);
  *request.mutable_limits() = options.session.limits;
  *request.mutable_conditions() = options.session.conditions;
  auto created = co_await master_->Mutate<proto::CreateResponse>(proto::CREATE, std::move(request), Deadline());
  if (!created) co_return Fail(std::move(created).error());
  co_return Writer(OpenedSession::Of(std::move(*created)),
                   {.path = std::move(path), .sync = options.sync, .mtime_ns = options.mtime_ns});
}

Task<Result<OpenedSession>> FileSystem::OpenExclusive(std::string path, AppendFileOptions options) {
  proto::OpenRequest request;
  request.set_path(path);
  request.set_mode(proto::EXCLUSIVE);
  request.set_holder(options_.id.value);
  request.set_writer_id(options.session.writer_id);
  *request.mutable_limits() = options.session.limits;
  *request.mutable_conditions() = options.session.conditions;
  request.set_create(options.create);
  request.set_parents(options.made.parents);
  request.set_permissions(options.made.mode);
  request.set_owner(options_.user);
  request.set_group(options_.group);
  request.set_replication(options.made.replication);
  request.set_chunk_size(options.made.chunk_size);
  auto opened = co_await master_->Mutate<proto::OpenResponse>(proto::OPEN_FILE, std::move(request), Deadline());
  if (!opened) co_return Fail(std::move(opened).error());
  if (opened->status().chunk_size() < kMaxPacketSize) co_return Fail(BadChunkSize(path, opened->status()));
  co_return OpenedSession::Of(std::move(*opened));
}

Task<Result<std::unique_ptr<FileWriter>>> FileSystem::OpenForAppend(std::string path, AppendFileOptions options) {
  auto opened = co_await OpenExclusive(path, options);
  if (!opened) co_return Fail(std::move(opened).error());
  co_return Writer(std::move(*opened),
                   {.path = std::move(path), .sync = options.made.sync, .mtime_ns = options.made.mtime_ns});
}

Task<Result<std::unique_ptr<RandomWriter>>> FileSystem::OpenForWrite(std::string path, AppendFileOptions options) {
  auto opened = co_await OpenExclusive(path, options);
  if (!opened) co_return Fail(std::move(opened).error());
  WriteSessionOptions how{.path = std::move(path),
                          .sync = options.made.sync,
                          .mtime_ns = options.made.mtime_ns,
                          .patience = options_.operation_timeout};
  auto session = std::make_shared<RandomWriteSession>(env_, master_, sessions_, std::move(*opened), std::move(how));
  session->Start();
  co_return std::make_unique<RandomWriter>(std::move(session));
}

Result<std::unique_ptr<FileWriter>> FileSystem::Writer(OpenedSession opened, WriteSessionOptions options) {
  if (opened.status.chunk_size() < kMaxPacketSize) return Fail(BadChunkSize(options.path, opened.status));
  options.patience = options_.operation_timeout;
  auto session = std::make_shared<WriteSession>(env_, master_, sessions_, std::move(opened), std::move(options));
  session->Start();
  return std::make_unique<FileWriter>(std::move(session));
}

Task<Result<proto::FileStatus>> FileSystem::Truncate(std::string path, uint64_t length, TruncateOptions options) {
  proto::TruncateRequest request;
  request.set_path(std::move(path));
  request.set_length(length);
  request.set_holder(options_.id.value);
  request.set_writer_id(std::move(options.writer_id));
  *request.mutable_conditions() = std::move(options.conditions);
  auto answer = co_await master_->Mutate<proto::TruncateResponse>(proto::TRUNCATE, std::move(request), Deadline());
  if (!answer) co_return Fail(std::move(answer).error());
  co_return std::move(*answer->mutable_status());
}

Task<Result<proto::FileStatus>> FileSystem::Concat(std::string target, std::vector<std::string> sources,
                                                   proto::Conditions conditions) {
  proto::ConcatRequest request;
  request.set_target(std::move(target));
  for (std::string& source : sources) request.add_sources(std::move(source));
  *request.mutable_conditions() = std::move(conditions);
  auto answer = co_await master_->Mutate<proto::ConcatResponse>(proto::CONCAT, std::move(request), Deadline());
  if (!answer) co_return Fail(std::move(answer).error());
  co_return std::move(*answer->mutable_status());
}

Task<Result<std::unique_ptr<FileReader>>> FileSystem::Open(std::string path) {
  auto file = co_await chunks_->Locate(path, InodeId(), 0, ChunkReader::kLocatePage);
  if (!file) co_return Fail(std::move(file).error());
  if (file->status().type() != proto::REGULAR) co_return Fail(Code::kIsDirectory, path + " is a directory");
  co_return std::make_unique<FileReader>(std::make_shared<OpenFile>(env_, chunks_, *file));
}

}  // namespace picket
