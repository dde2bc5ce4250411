#include "master/commit_seal.h"

#include <algorithm>
#include <vector>

#include "common/base/mutation.h"

namespace picket {

Result<record::Chunk> CommitSeal::Check(const proto::CommitSealRequest& request) const {
  const ChunkWriter writer{ChunkId(request.chunk()), InodeId(request.inode()), Generation(request.generation()),
                           ClientId(request.holder())};
  const std::string name = "chunk " + ToString(writer.chunk);
  auto record = attempts_.Admit(writer);
  if (!record) return record;
  if (request.version() < record->current() && !PICKET_MUTANT(seal_version)) {
    return Fail(Error(Code::kStaleVersion, name + ": the seal bears an old version")
                    .WithTokens(request.version(), record->current())
                    .WithNextStep("ask for a grant and go on from the length it gives"));
  }
  if (request.version() != record->current() || record->minted() != record->current()) {
    if (!PICKET_MUTANT(seal_version)) {
      return Fail(Error(Code::kSuperseded, name + ": an attempt is under way or has failed since the version was granted")
                      .WithTokens(request.version(), record->minted())
                      .WithNextStep("ask for a grant and go on from the length it gives"));
    }
  }
  std::vector<uint64_t> members, sealed(request.sealed_servers().begin(), request.sealed_servers().end());
  for (const record::Member& member : record->members()) members.push_back(member.server());
  std::ranges::sort(members);
  std::ranges::sort(sealed);
  if (members != sealed && !PICKET_MUTANT(seal_every_member)) {
    return Fail(Error(Code::kConflict, name + " has " + std::to_string(members.size()) + " members, and " +
                                           std::to_string(sealed.size()) + " servers are named as sealed, or others")
                    .WithNextStep("seal every member, or ask for a grant without the one that fails"));
  }
  if (request.length() < record->length()) {
    return Fail(Error(Code::kIntegrity, name + " was sealed at " + std::to_string(record->length()) +
                                            " bytes before and cannot be sealed at " + std::to_string(request.length()))
                    .WithNextStep("keep every replica and inspect them with 'picket chunk show'"));
  }
  if (request.length() > record->chunk_size() || (request.length() == 0) != request.drop_empty()) {
    return Fail(Code::kInvalidArgument, name + " of " + std::to_string(record->chunk_size()) +
                                            " bytes cannot be sealed at " + std::to_string(request.length()) +
                                            (request.length() == 0 ? " without being dropped" : ""));
  }
  return record;
}

Result<proto::CommitSealResponse> CommitSeal::Change(const proto::CommitSealRequest& request,
                                                     const record::Chunk& record, Batch* batch) {
  const ChunkId chunk(request.chunk());
  auto file = names_.Get(InodeId(request.inode()));
  if (!file) return Fail(file.error());
  if (request.drop_empty()) {
    if (record.index() + 1 != file->inode.chunk_count()) {
      return Fail(Code::kConflict, "chunk " + ToString(chunk) + " is not the last of its file: it cannot be dropped");
    }
    chunks_.TurnToGarbage(batch, chunk, record);
    file->inode.set_chunk_count(record.index());
  } else {
    record::Chunk sealed = record;
    sealed.set_sealed(true);
    sealed.set_length(request.length());
    sealed.set_digest(request.digest());
    sealed.clear_members();
    chunks_.Put(batch, chunk, sealed);
    NoteSealedLength(&file->inode, record, request.length());
  }
  sessions_.SetOpenChunk(batch, file->id, ChunkId());
  proto::CommitSealResponse response;
  if (request.close()) {
    auto closed = files_.Close(batch, std::move(*file), request.mtime_ns());
    if (!closed) return Fail(closed.error());
    file = std::move(closed);
  } else {
    names_.PutInode(batch, &*file);
  }
  *response.mutable_status() = ToFileStatus(*file, !request.close());
  return response;
}

Task<Result<proto::CommitSealResponse>> CommitSeal::Run(proto::CommitSealRequest request) {
  auto admission = co_await answers_.Admit(request.mutation(), proto::COMMIT_SEAL);
  if (!admission) co_return Fail(admission.error());
  proto::CommitSealResponse response;
  if (admission->answer) {
    PICKET_CO_TRY(co_await store_.ReadBarrier());
    if (!response.ParseFromString(*admission->answer)) co_return Fail(Code::kCorrupt, "a kept answer does not parse");
    co_return response;
  }
  // From here to Stage without a wait.
  auto record = Check(request);
  if (!record) co_return Fail(record.error());
  Batch batch;
  auto changed = Change(request, *record, &batch);
  if (!changed) co_return Fail(changed.error());
  response = std::move(*changed);
  response.set_revision(store_.next_revision());
  answers_.Remember(&batch, request.mutation(), proto::COMMIT_SEAL, response.SerializeAsString());
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());

  leases_.Void(ChunkId(request.chunk()));
  if (!request.drop_empty()) {
    NoteSealed(request, *record);
    record->set_length(request.length());
    TraceChunk(env_, ProtocolEvent::Kind::kChunkSealed, ChunkId(request.chunk()), *record, request.digest());
  }
  co_return response;
}

void CommitSeal::NoteSealed(const proto::CommitSealRequest& request, const record::Chunk& before) {
  // The servers say it themselves with their next heartbeats; readers need not wait for that.
  const ChunkId chunk(request.chunk());
  for (const record::Member& member : before.members()) {
    const Server* server = servers_.Find(ServerId(member.server()));
    if (server == nullptr || server->incarnation.value != member.incarnation()) continue;
    const Replica* known = locations_.Find(chunk, server->id);
    Replica replica = known != nullptr ? *known : Replica();
    replica.server = server->id;
    replica.session = server->session;
    replica.version = Version(request.version());
    replica.generation = Generation(request.generation());
    replica.state = proto::SEALED;
    replica.length = request.length();
    replica.digest = request.digest();
    locations_.Update(chunk, replica);
  }
}

}  // namespace picket
