#include "client/core/file_system.h"

#include "client/core/chunk_reader.h"
#include "client/core/master_client.h"
#include "client/core/open_file.h"
#include "client/core/session_keeper.h"
#include "client/core/write_session.h"

namespace picket {

FileSystem::FileSystem(Env& env, FileSystemOptions options) : env_(env), options_(std::move(options)) {
  while (!options_.id) options_.id = ClientId(env.Random());
  master_ = std::make_shared<MasterClient>(env, options_.master, options_.id, options_.connect_timeout);
  sessions_ = std::make_shared<SessionKeeper>(env, master_);
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

Task<Result<proto::FileStatus>> FileSystem::Mkdir(std::string path, bool parents, uint32_t mode) {
  proto::MkdirRequest request;
  request.set_path(std::move(path));
  request.set_parents(parents);
  request.set_mode(mode);
  request.set_owner(options_.user);
  request.set_group(options_.group);
  auto answer = co_await master_->Mutate<proto::MkdirResponse>(proto::MKDIR, std::move(request), Deadline());
  if (!answer) co_return Fail(std::move(answer).error());
  co_return std::move(*answer->mutable_status());
}

Task<Status> FileSystem::Rename(std::string from, std::string to, bool overwrite) {
  proto::RenameRequest request;
  request.set_from(std::move(from));
  request.set_to(std::move(to));
  request.set_overwrite(overwrite);
  auto answer = co_await master_->Mutate<proto::RenameResponse>(proto::RENAME, std::move(request), Deadline());
  if (!answer) co_return Fail(std::move(answer).error());
  co_return Status();
}

Task<Result<std::string>> FileSystem::Remove(std::string path, bool recursive, bool skip_trash, InodeId only_inode) {
  proto::DeleteRequest request;
  request.set_path(std::move(path));
  request.set_recursive(recursive);
  request.set_skip_trash(skip_trash);
  request.set_user(options_.user);
  request.set_only_inode(only_inode.value);
  auto answer = co_await master_->Mutate<proto::DeleteResponse>(proto::DELETE, std::move(request), Deadline());
  if (!answer) co_return Fail(std::move(answer).error());
  co_return std::move(*answer->mutable_trash_path());
}

Task<Result<proto::FileStatus>> FileSystem::SetAttributes(proto::SetAttributesRequest request) {
  auto answer =
      co_await master_->Mutate<proto::SetAttributesResponse>(proto::SET_ATTRIBUTES, std::move(request), Deadline());
  if (!answer) co_return Fail(std::move(answer).error());
  co_return std::move(*answer->mutable_status());
}

Task<Result<proto::FileStatus>> FileSystem::SetMode(std::string path, uint32_t mode) {
  proto::SetAttributesRequest request;
  request.set_path(std::move(path));
  request.set_mode(mode);
  return SetAttributes(std::move(request));
}

Task<Result<proto::FileStatus>> FileSystem::SetOwner(std::string path, std::string owner, std::string group) {
  proto::SetAttributesRequest request;
  request.set_path(std::move(path));
  if (!owner.empty()) request.set_owner(std::move(owner));
  if (!group.empty()) request.set_group(std::move(group));
  return SetAttributes(std::move(request));
}

Task<Result<proto::FileStatus>> FileSystem::SetTime(std::string path, int64_t mtime_ns) {
  proto::SetAttributesRequest request;
  request.set_path(std::move(path));
  request.set_mtime_ns(mtime_ns);
  return SetAttributes(std::move(request));
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
  auto created = co_await master_->Mutate<proto::CreateResponse>(proto::CREATE, std::move(request), Deadline());
  if (!created) co_return Fail(std::move(created).error());
  if (created->status().chunk_size() < kMaxPacketSize) {
    co_return Fail(Code::kInternal, path + ": the master gave a chunk size of " +
                                        std::to_string(created->status().chunk_size()) + " bytes");
  }
  WriteSessionOptions session_options{.path = std::move(path),
                                      .sync = options.sync,
                                      .mtime_ns = options.mtime_ns,
                                      .patience = options_.operation_timeout};
  auto session = std::make_shared<WriteSession>(env_, master_, sessions_, std::move(*created),
                                                std::move(session_options));
  session->Start();
  co_return std::make_unique<FileWriter>(std::move(session));
}

Task<Result<std::unique_ptr<FileReader>>> FileSystem::Open(std::string path) {
  auto file = co_await chunks_->Locate(path, InodeId(), 0, ChunkReader::kLocatePage);
  if (!file) co_return Fail(std::move(file).error());
  if (file->status().type() != proto::REGULAR) co_return Fail(Code::kIsDirectory, path + " is a directory");
  co_return std::make_unique<FileReader>(std::make_shared<OpenFile>(env_, chunks_, *file));
}

// ---- what the cluster says of itself ---------------------------------------------------------------

Task<Result<std::vector<proto::ChunkLocation>>> FileSystem::Chunks(std::string path) {
  std::vector<proto::ChunkLocation> chunks;
  proto::GetFileRequest request;
  request.set_path(std::move(path));
  request.set_all_replicas(true);
  while (true) {
    request.set_first_index(chunks.size());
    auto page = co_await master_->Read<proto::GetFileResponse>(proto::GET_FILE, request, Deadline());
    if (!page) co_return Fail(std::move(page).error());
    for (auto& chunk : *page->mutable_chunks()) chunks.push_back(std::move(chunk));
    if (!page->more() || page->chunks().empty()) co_return chunks;
    // The later pages are of the same file, whatever its name means by then.
    request.clear_path();
    request.set_inode(page->status().inode());
  }
}

Task<Result<proto::DescribeChunkResponse>> FileSystem::DescribeChunk(ChunkId chunk) {
  proto::DescribeChunkRequest request;
  request.set_chunk(chunk.value);
  co_return co_await master_->Read<proto::DescribeChunkResponse>(proto::DESCRIBE_CHUNK, request, Deadline());
}

Task<Result<proto::ClusterReportResponse>> FileSystem::Report() {
  co_return co_await master_->Read<proto::ClusterReportResponse>(proto::CLUSTER_REPORT,
                                                                 proto::ClusterReportRequest(), Deadline());
}

}  // namespace picket
