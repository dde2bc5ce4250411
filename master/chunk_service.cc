#include "master/chunk_service.h"

#include <algorithm>

namespace picket {

void ChunkService::Register(RpcServer* server) {
  server->Handle<proto::AddChunkRequest, proto::WriteGrant>(
      proto::ADD_CHUNK, [this](auto request, Mono deadline) { return add_.Run(std::move(request), deadline); });
  server->Handle<proto::GrantRequest, proto::WriteGrant>(
      proto::GRANT, [this](auto request, Mono deadline) { return Grant(std::move(request), deadline); });
  server->Handle<proto::CommitSealRequest, proto::CommitSealResponse>(
      proto::COMMIT_SEAL, [this](auto request, Mono) { return seal_.Run(std::move(request)); });
  server->Handle<proto::GetFileRequest, proto::GetFileResponse>(
      proto::GET_FILE, [this](auto request, Mono) { return GetFile(std::move(request)); });
  server->Handle<proto::DescribeChunkRequest, proto::DescribeChunkResponse>(
      proto::DESCRIBE_CHUNK, [this](auto request, Mono) { return Describe(std::move(request)); });
}

Task<Result<proto::WriteGrant>> ChunkService::Grant(proto::GrantRequest request, Mono deadline) {
  auto admission = co_await answers_.Admit(request.mutation(), proto::GRANT);
  if (!admission) co_return Fail(admission.error());
  if (admission->answer) {
    PICKET_CO_TRY(co_await store_.ReadBarrier());
    co_return standing_.Repeat(*admission->answer);
  }
  Granter::Ask ask;
  ask.writer = ChunkWriter{ChunkId(request.chunk()), InodeId(request.inode()), Generation(request.generation()),
                           ClientId(request.holder())};
  ask.acked_length = request.acked_length();
  for (uint64_t id : request.failed_servers()) ask.failed.push_back(ServerId(id));
  ask.reason = request.reason().substr(0, 200);
  ask.deadline = deadline;
  ask.reopen = request.reopen();
  ask.remember = [this, mutation = request.mutation()](Batch* batch, const proto::WriteGrant& grant) {
    answers_.Remember(batch, mutation, proto::GRANT, grant.SerializeAsString());
  };
  FifoLock::Ticket turn;
  if (const auto session = sessions_.Find(ask.writer.inode); session && session->shared()) {
    if (session->mode == proto::SHARED_LOCK) co_return Fail(Code::kConflict, "under a shared lock nobody writes");
    auto mine = co_await standing_.Turn(ask.writer.inode, deadline);
    if (!mine) co_return Fail(mine.error());
    turn = std::move(*mine);
    if (auto standing = standing_.Find(ask.writer, Version(request.version()), ask.failed)) {
      PICKET_CO_TRY(co_await store_.ReadBarrier());
      co_return std::move(*standing);
    }
  }
  auto granted = co_await granter_.Grant(std::move(ask));
  co_return granted;
}

Task<Result<proto::GetFileResponse>> ChunkService::GetFile(proto::GetFileRequest request) {
  Result<Entry> file = Fail(Code::kInvalidArgument, "a path or an inode is needed");
  if (!request.path().empty()) {
    auto path = Path::Parse(request.path());
    if (!path) co_return Fail(path.error());
    file = names_.Resolve(*path);
  } else if (request.inode() != 0) {
    file = names_.Get(InodeId(request.inode()));
  }
  if (file && file->is_directory()) {
    file = Fail(Code::kIsDirectory, Quoted(request.path()) + " is a directory");
  }
  proto::GetFileResponse response;
  if (file) {
    const uint32_t limit = request.limit() == 0 ? kChunksPage : std::min(request.limit(), kChunksPage);
    auto chunks = chunks_.OfFile(file->id, request.first_index(), limit + 1);
    if (!chunks) co_return Fail(chunks.error());
    response.set_more(chunks->size() > limit);
    if (chunks->size() > limit) chunks->pop_back();
    for (const ChunkRow& chunk : *chunks) *response.add_chunks() = view_.Describe(chunk, request.all_replicas());
    const auto session = sessions_.Find(file->id);
    *response.mutable_status() =
        ToFileStatus(*file, session.has_value(), session ? session->holder() : ClientId());
    response.set_revision(store_.revision());
  }
  PICKET_CO_TRY(co_await store_.ReadBarrier());
  if (!file) co_return Fail(file.error());
  co_return response;
}

Task<Result<proto::DescribeChunkResponse>> ChunkService::Describe(proto::DescribeChunkRequest request) {
  const ChunkId id(request.chunk());
  auto record = chunks_.Get(id);
  if (!record) co_return Fail(record.error());
  if (!*record) co_return Fail(Code::kNotFound, "there is no chunk " + ToString(id));
  proto::DescribeChunkResponse response;
  response.set_replication((*record)->replication());
  if ((*record)->inode() != 0) {
    auto path = names_.PathOf(InodeId((*record)->inode()));
    if (!path) co_return Fail(path.error());
    if (*path) response.set_path((*path)->ToString());
  }
  *response.mutable_chunk() = view_.Describe(ChunkRow{id, std::move(**record)}, true);
  response.set_revision(store_.revision());
  PICKET_CO_TRY(co_await store_.ReadBarrier());
  co_return response;
}

}  // namespace picket
