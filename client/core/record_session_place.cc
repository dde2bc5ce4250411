// Where a RecordSession's records go: the first chunk, a new grant for the same one, the next one.
#include <algorithm>

#include "client/core/chunk_stream.h"
#include "client/core/record_session.h"
#include "client/core/write_failure.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket {
namespace {

constexpr uint32_t kLookChunks = 4;

}  // namespace

// ---- failures on the way ---------------------------------------------------------------------------

void RecordSession::Progressed() {
  patience_.Progressed();
  conflicts_ = 0;
}

// ---- the place -------------------------------------------------------------------------------------

Task<Status> RecordSession::Move(std::shared_ptr<RecordSession> self, PlacePtr place, std::optional<Error> cause) {
  auto ticket = co_await self->moving_.Lock();
  PICKET_CO_TRY(self->Usable());
  if (self->place_ != place) co_return Status();
  Result<PlacePtr> next = PlacePtr();
  if (!place) {
    const auto& last = self->opened_.last_chunk();
    const bool full = last.sealed() && last.length() == self->opened_.status().chunk_size();
    next = co_await self->Enter(self->opened_.has_last_chunk() ? last.index() + (full ? 1 : 0) : 0);
  } else if (cause->code == Code::kChunkFull) {
    next = co_await self->Finish(place, cause->mark);
  } else {
    next = co_await self->Repair(place, *cause);
  }
  if (!next) {
    self->GiveUp(std::move(next).error());
    co_return self->Usable();
  }
  self->place_ = std::move(*next);
  co_return Status();
}

RecordSession::PlacePtr RecordSession::PlaceOf(uint64_t index, proto::WriteGrant grant, uint64_t known_end) const {
  auto place = std::make_shared<Place>();
  place->index = index;
  place->known_end = std::max<uint64_t>(known_end, grant.length());
  place->grant = std::move(grant);
  return place;
}

Task<Result<proto::GetFileResponse>> RecordSession::Look(uint64_t index) {
  proto::GetFileRequest request;
  request.set_inode(opened_.status().inode());
  request.set_first_index(index);
  request.set_limit(kLookChunks);
  co_return co_await master_->Read<proto::GetFileResponse>(proto::GET_FILE, request, Patience());
}

Task<Result<bool>> RecordSession::IsSealed(PlacePtr place) {
  auto file = co_await Look(place->index);
  if (!file) co_return Fail(std::move(file).error());
  for (const auto& location : file->chunks()) {
    if (location.chunk() == place->chunk().value) co_return location.sealed();
  }
  co_return Fail(Code::kNotFound, "chunk " + ToString(place->chunk()) + " is not in the file any more");
}

Task<Result<RecordSession::PlacePtr>> RecordSession::Grant(uint64_t index, ChunkId chunk, proto::GrantRequest request,
                                                           uint64_t known_end) {
  Sign(&request);
  request.set_chunk(chunk.value);
  for (const ServerId server : failed_) request.add_failed_servers(server.value);
  auto grant = co_await master_->Mutate<proto::WriteGrant>(proto::GRANT, std::move(request), Patience());
  if (!grant) co_return Fail(std::move(grant).error());
  if (grant->chain_size() == 0) {
    co_return Fail(Code::kInternal, "the master's grant of chunk " + ToString(chunk) + " has no replicas");
  }
  failed_.clear();
  co_return PlaceOf(index, std::move(*grant), known_end);
}

// Into chunk `index`: made, or shared with who made it; or, when it is sealed already, the one behind it, or
// itself again if it is the last one and not full.
Task<Result<RecordSession::PlacePtr>> RecordSession::Enter(uint64_t index) {
  const Mono begun = env_.Now();
  std::optional<MasterClient::Mutation> mutation;
  mutation.emplace(co_await master_->NewMutation());
  while (!error_) {
    proto::AddChunkRequest request;
    *request.mutable_mutation() = mutation->id();
    Sign(&request);
    request.set_index(index);
    const auto avoided = health_.AllAvoided(env_.Now());
    for (const ServerId server : avoided) request.add_exclude_servers(server.value);
    auto grant = co_await master_->Read<proto::WriteGrant>(proto::ADD_CHUNK, request, Patience());
    if (grant) {
      if (grant->chain_size() == 0) co_return Fail(Code::kInternal, "the master's grant has no replicas");
      Progressed();
      co_return PlaceOf(index, std::move(*grant), 0);
    }
    Error error = std::move(grant).error();
    if (LosesSession(error.code)) co_return Fail(std::move(error));
    auto file = co_await Look(index);
    if (!file) co_return Fail(std::move(file).error());
    if (file->chunks_size() > 0 && file->chunks(0).index() == index && file->chunks(0).sealed()) {
      const auto& there = file->chunks(0);
      if (file->chunks_size() > 1 || there.length() == opened_.status().chunk_size()) {
        ++index;
        mutation.emplace(co_await master_->NewMutation());
        continue;
      }
      proto::GrantRequest reopen;
      reopen.set_version(there.version());
      reopen.set_acked_length(there.length());
      reopen.set_reason("records are appended");
      reopen.set_reopen(true);
      auto place = co_await Grant(index, ChunkId(there.chunk()), std::move(reopen), there.length());
      if (place) co_return place;
      error = std::move(place).error();
    }
    const Mono end = patience_.Failed();
    if (error.code == Code::kNotEnoughReplicas) {
      if (!avoided.empty()) {
        health_.Forgive();  // better a server that failed lately than none
        continue;
      }
      if (env_.Now() >= begun + kPlacementPatience) co_return Fail(std::move(error));
    } else if (error.server != 0 && !IsFenced(error.code)) {
      health_.Disappointed(ServerId(error.server), env_.Now());
    } else if (!NeedsNewToken(error.code) && error.code != Code::kConflict) {
      co_return Fail(std::move(error));
    }
    if (env_.Now() >= end) co_return Fail(std::move(error));
    co_await patience_.BackOff(error);
  }
  co_return Fail(*error_);
}

// Who failed, as D18 has it; the cause itself when it is final.
Task<Status> RecordSession::Blame(PlacePtr place, const Error& cause) {
  WriteFailure failure = JudgeWriteFailure(cause, place->primary(), patience_.failures() > 0);
  if (cause.code == Code::kConflict && ++conflicts_ < kMaxConflicts) failure = {WriteVerdict::kAskAgain, {}};
  if (failure.verdict == WriteVerdict::kFinal) co_return Fail(cause);
  if (failure.verdict == WriteVerdict::kProbe) {
    const bool alive = co_await Answers(&env_, place->endpoint());
    if (!alive) failure = {WriteVerdict::kBlame, place->primary()};
  }
  if (failure.verdict == WriteVerdict::kBlame) {
    failed_.insert(failure.blamed);
    health_.Disappointed(failure.blamed, env_.Now());
  }
  co_return Status();
}

// The same token under the master's present key.
Task<Result<RecordSession::PlacePtr>> RecordSession::Refresh(PlacePtr place) {
  proto::RefreshTokenRequest request;
  Sign(&request);
  request.set_chunk(place->chunk().value);
  request.set_version(place->grant.token().version());
  auto fresh = co_await master_->Read<proto::RefreshTokenResponse>(proto::REFRESH_TOKEN, request, Patience());
  if (!fresh) co_return Fail(std::move(fresh).error());
  proto::WriteGrant grant = place->grant;
  *grant.mutable_token() = fresh->token();
  co_return PlaceOf(place->index, std::move(grant), place->known_end);
}

// The same chunk under a grant that works, or the one behind it when somebody has sealed it.
Task<Result<RecordSession::PlacePtr>> RecordSession::Repair(PlacePtr place, Error cause) {
  PICKET_LOG(env_, kWarning, "appending to {}: chunk {} at version {}: {}", options_.path, ToString(place->chunk()),
             Version(place->grant.token().version()).ToString(), cause.ToString());
  if (cause.code == Code::kTokenExpired && patience_.failures() == 0) {
    patience_.Failed();
    auto refreshed = co_await Refresh(place);
    if (refreshed) co_return refreshed;
  }
  PICKET_CO_TRY(co_await Blame(place, cause));
  Error last = cause;
  for (Mono end = patience_.Failed(); env_.Now() < end; end = patience_.Failed()) {
    // A refusal for what the replica is: it may be sealed, and the master about to know it.
    const bool conflict = last.code == Code::kConflict;
    if (patience_.failures() > 1 || conflict) co_await patience_.BackOff(last);
    if (conflict) {
      auto sealed = co_await IsSealed(place);
      if (!sealed) co_return Fail(std::move(sealed).error());
      if (*sealed) co_return co_await Enter(place->index + 1);
    }
    PICKET_CO_TRY(Usable());
    proto::GrantRequest request;
    request.set_version(place->grant.token().version());
    request.set_acked_length(place->known_end);
    request.set_reason(cause.ToString());
    auto granted = co_await Grant(place->index, place->chunk(), std::move(request), place->known_end);
    if (granted) co_return granted;
    last = std::move(granted).error();
    if (last.code == Code::kNotEnoughReplicas) {
      failed_.clear();  // who failed may be better than nobody
    } else if (!NeedsNewToken(last.code) && last.code != Code::kConflict) {
      co_return Fail(std::move(last));
    }
  }
  co_return Fail(std::move(last));
}

Task<Status> RecordSession::Seal(PlacePtr place, uint64_t length) {
  proto::SealRequest request;
  *request.mutable_token() = place->grant.token();
  request.set_length(length);
  request.set_sync(options_.sync);
  request.set_target_incarnation(place->grant.chain(0).incarnation());
  auto channel = channels_.Get(place->endpoint());
  auto sealed = co_await channel->Call<proto::SealResponse>(proto::SEAL, request, ChunkStream::kSyncTimeout);
  if (!sealed) co_return Fail(std::move(sealed).error());
  proto::CommitSealRequest commit;
  Sign(&commit);
  commit.set_chunk(place->chunk().value);
  commit.set_version(place->grant.token().version());
  commit.set_length(length);
  commit.set_digest(sealed->digest());
  *commit.mutable_sealed_servers() = sealed->sealed_servers();  // the master compares them with the members
  commit.set_durable(options_.sync);
  auto committed =
      co_await master_->Mutate<proto::CommitSealResponse>(proto::COMMIT_SEAL, std::move(commit), Patience());
  if (!committed) co_return Fail(std::move(committed).error());
  Progressed();
  co_return Status();
}

// Seals a full chunk, or finds it sealed, and goes on in the next one.
Task<Result<RecordSession::PlacePtr>> RecordSession::Finish(PlacePtr place, uint64_t length) {
  const ChunkId chunk = place->chunk();
  while (true) {
    PICKET_CO_TRY(Usable());
    Status sealed = co_await Seal(place, length);
    if (sealed) co_return co_await Enter(place->index + 1);
    auto known = co_await IsSealed(place);
    if (!known) co_return Fail(std::move(known).error());
    if (*known) co_return co_await Enter(place->index + 1);
    auto repaired = co_await Repair(place, std::move(sealed).error());
    if (!repaired || (*repaired)->chunk() != chunk) co_return repaired;
    place = std::move(*repaired);
  }
}

}  // namespace picket
