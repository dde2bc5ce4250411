#include "master/commit_seal.h"

#include <algorithm>
#include <vector>

#include "common/base/mutation.h"

namespace picket {

Result<CommitSeal::Before> CommitSeal::Check(const proto::CommitSealRequest& request) const {
  const ChunkWriter writer{ChunkId(request.chunk()), InodeId(request.inode()), Generation(request.generation()),
                           ClientId(request.holder())};
  const std::string name = "chunk " + ToString(writer.chunk);
  PICKET_TRY(sessions_.CheckWriter(writer.inode, writer.generation, writer.holder));
  if (request.close()) PICKET_TRY(files_.CheckAlone(writer.inode));
  auto found = chunks_.Get(writer.chunk);
  if (!found) return Fail(found.error());
  if (*found && (*found)->inode() == writer.inode.value && (*found)->sealed() &&
      (*found)->current() == request.version() && (*found)->length() == request.length() &&
      (*found)->digest() == request.digest() && (*found)->minted() == (*found)->current()) {
    return Before{std::move(**found), true};
  }
  auto record = attempts_.Admit(writer);
  if (!record) return Fail(record.error());
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
  PICKET_TRY(CheckMembersAndLength(request, *record));
  return Before{std::move(*record), false};
}

Status CommitSeal::CheckMembersAndLength(const proto::CommitSealRequest& request, const record::Chunk& record) const {
  const std::string name = "chunk " + ToString(ChunkId(request.chunk()));
  std::vector<uint64_t> members, sealed(request.sealed_servers().begin(), request.sealed_servers().end());
  for (const record::Member& member : record.members()) members.push_back(member.server());
  std::ranges::sort(members);
  std::ranges::sort(sealed);
  if (members != sealed && !PICKET_MUTANT(seal_every_member)) {
    return Fail(Error(Code::kConflict, name + " has " + std::to_string(members.size()) + " members, and " +
                                           std::to_string(sealed.size()) + " servers are named as sealed, or others")
                    .WithNextStep("seal every member, or ask for a grant without the one that fails"));
  }
  if (request.length() < record.length() && !PICKET_MUTANT(seal_floor)) {
    return Fail(Error(Code::kIntegrity, name + " was sealed at " + std::to_string(record.length()) +
                                            " bytes before and cannot be sealed at " + std::to_string(request.length()))
                    .WithNextStep("keep every replica and inspect them with 'picket chunk show'"));
  }
  if (request.length() > record.chunk_size() || (request.length() == 0) != request.drop_empty()) {
    return Fail(Code::kInvalidArgument, name + " of " + std::to_string(record.chunk_size()) +
                                            " bytes cannot be sealed at " + std::to_string(request.length()) +
                                            (request.length() == 0 ? " without being dropped" : ""));
  }
  return {};
}

Result<proto::CommitSealResponse> CommitSeal::Change(const proto::CommitSealRequest& request, const Before& before,
                                                     Batch* batch) {
  const ChunkId chunk(request.chunk());
  auto file = names_.Get(InodeId(request.inode()));
  if (!file) return Fail(file.error());
  record::Inode& inode = file->inode;
  const bool changes = !before.sealed;
  if (changes && request.drop_empty()) {
    // Behind what was written may be a hole that a truncation left: its length says nothing about chunks.
    auto count = chunks_.CountBelow(file->id, before.record.index());
    if (!count) return Fail(count.error());
    chunks_.TurnToGarbage(batch, chunk, before.record);
    if (before.record.index() + 1 >= inode.chunk_count()) inode.set_chunk_count(*count);
  } else if (changes) {
    record::Chunk sealed = before.record;
    sealed.set_sealed(true);
    sealed.set_length(request.length());
    sealed.set_digest(request.digest());
    sealed.clear_members();
    chunks_.Put(batch, chunk, sealed);
    NoteSealedLength(&inode, before.record, request.length());
  }
  proto::CommitSealResponse response;
  if (request.close()) {
    if (!changes) PICKET_TRY(files_.CheckAllSealed(*file));
    // Ends the session, its open chunk with it; what fails here has changed nothing in memory.
    auto closed = files_.Close(batch, std::move(*file), request.mtime_ns());
    if (!closed) return Fail(closed.error());
    file = std::move(closed);
  } else if (changes) {
    sessions_.SetOpenChunk(batch, file->id, ChunkId());
    names_.PutInode(batch, &*file);
  }
  *response.mutable_status() = files_.StatusOf(*file);
  return response;
}

Task<Result<proto::CommitSealResponse>> CommitSeal::Run(proto::CommitSealRequest request) {
  auto admitted = co_await changes_.Admit<proto::CommitSealResponse>(request.mutation(), proto::COMMIT_SEAL);
  if (!admitted) co_return Fail(admitted.error());
  if (admitted->answer) co_return std::move(*admitted->answer);
  // From here to Stage without a wait.
  auto before = Check(request);
  Batch batch;
  Result<proto::CommitSealResponse> changed;
  if (before) changed = Change(request, *before, &batch);
  if (!before || !changed) {
    auto refusal = co_await changes_.Refuse(request.mutation(), before ? changed.error() : before.error());
    co_return Fail(std::move(refusal));
  }
  auto answer = co_await changes_.Commit(std::move(batch), request.mutation(), proto::COMMIT_SEAL, std::move(*changed));
  if (!answer || before->sealed) co_return answer;

  leases_.Void(ChunkId(request.chunk()));
  if (!request.drop_empty()) {
    NoteSealed(request, before->record);
    before->record.set_length(request.length());
    TraceChunk(env_, ProtocolEvent::Kind::kChunkSealed, ChunkId(request.chunk()), before->record, request.digest());
  }
  co_return answer;
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
