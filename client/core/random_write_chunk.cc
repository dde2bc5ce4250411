// The open chunk of a RandomWriteSession: begun, gone on with after a failure, sealed.
#include <algorithm>

#include "client/core/random_write_session.h"
#include "client/core/refresh_token.h"
#include "client/core/write_failure.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket {
// ---- beginning -------------------------------------------------------------------------------------

Task<Status> RandomWriteSession::Reach(uint64_t index) {
  if (stream_ && index_ == index) co_return Status();
  PICKET_CO_TRY(co_await LeaveChunk(false));
  index_ = index;
  co_return co_await BeginChunk();
}

// The chunk that is there, opened again with all its bytes, or a new one in the hole.
Task<Result<proto::WriteGrant>> RandomWriteSession::AskForChunk(const proto::MutationId* mutation,
                                                                const std::optional<proto::ChunkLocation>* there,
                                                                std::vector<ServerId> avoided, Mono deadline) {
  if (*there) {
    proto::GrantRequest request;
    *request.mutable_mutation() = *mutation;
    Sign(&request);
    request.set_chunk((*there)->chunk());
    request.set_version((*there)->version());
    request.set_acked_length((*there)->length());
    request.set_reason("write at an offset");
    request.set_reopen(true);
    co_return co_await master_->Read<proto::WriteGrant>(proto::GRANT, request, deadline);
  }
  proto::AddChunkRequest request;
  *request.mutable_mutation() = *mutation;
  Sign(&request);
  request.set_index(index_);
  for (const ServerId server : avoided) request.add_exclude_servers(server.value);
  co_return co_await master_->Read<proto::WriteGrant>(proto::ADD_CHUNK, request, deadline);
}

Task<Status> RandomWriteSession::BeginChunk() {
  const Mono begun = env_.Now();
  proto::GetFileRequest look;
  look.set_inode(opened_.status.inode());
  look.set_first_index(index_);
  look.set_limit(1);
  auto file = co_await master_->Read<proto::GetFileResponse>(proto::GET_FILE, look, begun + options_.patience);
  if (!file) co_return Fail(std::move(file).error());
  std::optional<proto::ChunkLocation> there;
  if (file->chunks_size() > 0 && file->chunks(0).index() == index_) there = file->chunks(0);

  // One chunk, whatever it takes: an attempt that failed late may have made it.
  const auto mutation = co_await master_->NewMutation();
  while (true) {
    PICKET_CO_TRY(Usable());
    const auto avoided = health_.AllAvoided(env_.Now());
    auto grant = co_await AskForChunk(&mutation.id(), &there, avoided, begun + options_.patience);
    PICKET_CO_TRY(Usable());
    if (grant) {
      acked_ = sent_end_ = there ? there->length() : 0;
      patience_.Progressed();
      co_return co_await OpenStream(std::move(*grant), acked_);
    }
    Error error = std::move(grant).error();
    const Mono end = patience_.Failed();
    if (error.code == Code::kNotEnoughReplicas) {
      // Better a server that failed lately than none.
      if (!avoided.empty()) {
        health_.Forgive();
        continue;
      }
      if (env_.Now() >= begun + WriteSession::kPlacementPatience) co_return Fail(std::move(error));
    } else if (error.server != 0 && !IsFenced(error.code)) {
      health_.Disappointed(ServerId(error.server), env_.Now());
    } else if (!NeedsNewToken(error.code)) {
      co_return Fail(std::move(error));
    }
    if (env_.Now() >= end) co_return Fail(std::move(error));
    co_await patience_.BackOff(error);
  }
}

Task<Status> RandomWriteSession::OpenStream(proto::WriteGrant grant, uint64_t acked) {
  const std::string chunk = ToHex(grant.token().chunk());
  if (grant.chain_size() == 0 || (grant.chunk_size() != 0 && grant.chunk_size() != chunk_size_)) {
    co_return Fail(Code::kInternal,
                   "the master's grant of chunk " + chunk + " has no replicas or another chunk size");
  }
  const uint64_t length = grant.length();
  if ((length < acked || length > sent_end_) && !PICKET_MUTANT(client_random_grant)) {
    co_return Fail(Code::kIntegrity, "chunk " + chunk + " goes on from " + std::to_string(length) + " bytes, but " +
                                         std::to_string(acked) + " were acknowledged and " +
                                         std::to_string(sent_end_) + " sent");
  }
  stream_ = std::make_shared<ChunkStream>(env_, std::move(grant), options_.sync, news_);
  failed_.clear();
  acked_ = length;
  sync_serial_ = 0;
  // All of the set have what was appended below L; overwrites they may have or not.
  sent_ = 0;
  tail_ = length;
  std::deque<Op> again;
  for (Op& op : ops_) {
    op.serial = 0;
    if (!op.overwrite && op.packet.end() <= length) continue;
    if (!op.overwrite && op.packet.offset < length) {
      auto rest = TailOf(op.packet, length);
      if (!rest) co_return Fail(std::move(rest).error());
      op.packet = std::move(*rest);
    }
    tail_ = std::max(tail_, op.packet.end());
    if (op.overwrite && PICKET_MUTANT(client_resend_overwrites)) continue;
    again.push_back(std::move(op));
  }
  ops_ = std::move(again);
  co_await ChunkStream::Connect(stream_);
  co_return Status();
}

// ---- going on after a failure ----------------------------------------------------------------------

Task<Status> RandomWriteSession::Refresh() {
  const auto stream = stream_;
  const Error cause = *stream->broken();
  const Mono end = patience_.Failed();
  // Expired again: the primary has not heard of the new key yet.
  if (patience_.failures() > 1) co_await patience_.BackOff(cause);
  PICKET_CO_TRY(Usable());
  if (env_.Now() >= end) co_return Fail(cause);
  auto token = co_await RefreshToken(master_, stream->grant().token(), end);
  PICKET_CO_TRY(Usable());
  if (!token) {
    if (!NeedsNewToken(token.error().code)) co_return Fail(std::move(token).error());
    stream->Break(std::move(token).error());
    co_return Status();
  }
  Absorb();
  stream->Renew(std::move(*token));
  sent_ = 0;
  sync_serial_ = 0;
  co_return Status();
}

Task<Status> RandomWriteSession::Recover() {
  if (stream_->expired()) co_return co_await Refresh();
  const auto old = stream_;
  const Error cause = *old->broken();
  WriteFailure failure = JudgeWriteFailure(cause, old->primary(), patience_.failures() > 0);
  if (failure.verdict == WriteVerdict::kFinal) co_return Fail(cause);
  old->Stop();
  if (failure.verdict == WriteVerdict::kProbe) {
    const bool alive = co_await Answers(&env_, old->primary_endpoint());
    if (!alive) failure = {WriteVerdict::kBlame, old->primary()};
  }
  if (failure.verdict == WriteVerdict::kBlame) {
    failed_.insert(failure.blamed);
    health_.Disappointed(failure.blamed, env_.Now());
  }
  const auto& token = old->grant().token();
  PICKET_LOG(env_, kWarning, "writing {}: chunk {} at version {} broke with {} packets not acknowledged: {}",
             options_.path, ToHex(token.chunk()), Version(token.version()).ToString(), ops_.size(), cause.ToString());
  Error last = cause;
  for (Mono end = patience_.Failed(); env_.Now() < end; end = patience_.Failed()) {
    if (patience_.failures() > 1) co_await patience_.BackOff(last);
    PICKET_CO_TRY(Usable());
    if (env_.Now() >= end) break;
    proto::GrantRequest request;
    Sign(&request);
    request.set_chunk(token.chunk());
    request.set_version(token.version());
    request.set_acked_length(acked_);
    for (const ServerId server : failed_) request.add_failed_servers(server.value);
    request.set_reason(cause.ToString());
    auto grant = co_await master_->Mutate<proto::WriteGrant>(proto::GRANT, std::move(request), end);
    PICKET_CO_TRY(Usable());
    if (grant) co_return co_await OpenStream(std::move(*grant), acked_);
    last = std::move(grant).error();
    if (last.code == Code::kNotEnoughReplicas) {
      failed_.clear();  // who failed may be better than nobody
    } else if (!NeedsNewToken(last.code)) {
      co_return Fail(std::move(last));
    }
  }
  co_return Fail(std::move(last));
}

// ---- the end ---------------------------------------------------------------------------------------

Task<Status> RandomWriteSession::LeaveChunk(bool close) {
  const auto self = shared_from_this();
  while (stream_) {
    PICKET_CO_TRY(co_await Drive(self, [](const RandomWriteSession& s) { return s.Flushed(); }));
    PICKET_CO_TRY(co_await SealAndCommit(close));
  }
  if (!close || closed_) co_return Status();
  proto::CloseRequest request;
  Sign(&request);
  request.set_mtime_ns(options_.mtime_ns);
  finishing_ = true;
  auto closed = co_await master_->Mutate<proto::CloseResponse>(proto::CLOSE, std::move(request),
                                                               env_.Now() + options_.patience);
  finishing_ = false;
  if (!closed) co_return Fail(std::move(closed).error());
  closed_ = std::move(*closed->mutable_status());
  co_return Status();
}

// Leaves no stream behind, or a broken one.
Task<Status> RandomWriteSession::SealAndCommit(bool close) {
  const auto stream = stream_;
  // A sync that is asked for later reaches no chunk but the open one.
  const bool sync = options_.sync || !close;
  auto sealed = co_await ChunkStream::Seal(stream, sync);
  PICKET_CO_TRY(Usable());
  if (!sealed) {
    stream->Break(std::move(sealed).error());
    co_return Status();
  }
  proto::CommitSealRequest request;
  Sign(&request);
  request.set_chunk(stream->grant().token().chunk());
  request.set_version(stream->grant().token().version());
  request.set_length(stream->end());
  request.set_digest(sealed->digest());
  *request.mutable_sealed_servers() = sealed->sealed_servers();
  request.set_durable(sync);
  request.set_close(close);
  if (close) request.set_mtime_ns(options_.mtime_ns);
  finishing_ = close;
  auto committed = co_await master_->Mutate<proto::CommitSealResponse>(proto::COMMIT_SEAL, std::move(request),
                                                                       env_.Now() + options_.patience);
  finishing_ = false;
  PICKET_CO_TRY(Usable());
  if (!committed) {
    if (!NeedsNewToken(committed.error().code)) co_return Fail(std::move(committed).error());
    stream->Break(std::move(committed).error());
    co_return Status();
  }
  patience_.Progressed();
  stream->Stop();
  stream_.reset();
  dirty_ = sync_wanted_ = false;
  if (close) closed_ = std::move(*committed->mutable_status());
  co_return Status();
}

}  // namespace picket
