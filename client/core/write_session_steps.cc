// The moving task of a WriteSession: decides the next step from the state alone, takes it, looks again.
#include <algorithm>

#include "client/core/refresh_token.h"
#include "client/core/write_failure.h"
#include "client/core/write_session.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket {
Task<> WriteSession::Move(std::shared_ptr<WriteSession> self) {
  while (!self->ended_) {
    self->Absorb();
    const Step step = self->NextStep();
    if (step != Step::kWait) {
      auto done = co_await self->Act(step);
      if (!done) {
        Error error = std::move(done).error();
        if (LosesSession(error.code)) error = co_await self->Explained(std::move(error));
        self->GiveUp(std::move(error));
      }
    } else {
      co_await self->news_->Wait();
    }
  }
  if (self->stream_) self->stream_->Stop();
}

WriteSession::Step WriteSession::NextStep() const {
  if (!stream_) {
    if (!queue_.empty()) return Step::kBegin;
    if (SyncWanted() && !unsynced_.empty()) return Step::kSyncSealed;
    return closing_ ? Step::kFinish : Step::kWait;
  }
  if (stream_->expired() && stream_->in_flight() > 0) return Step::kWait;
  if (stream_->broken()) return Step::kRecover;
  const bool all_sent = sent_ == queue_.size() || queue_[sent_].index != index_;
  if (!all_sent) return stream_->room() ? Step::kSend : Step::kWait;
  const bool drained = stream_->in_flight() == 0;
  if (drained && (ChunkFull() || (closing_ && queue_.empty()))) return Step::kSeal;
  if (SyncWanted()) {
    if (!unsynced_.empty()) return Step::kSyncSealed;
    if (stream_->sync_asked() < stream_->end() && stream_->room()) return Step::kSync;
  }
  return Step::kWait;
}

Task<Status> WriteSession::Act(Step step) {
  switch (step) {
    case Step::kWait: break;
    case Step::kSend: SendNext(); break;
    case Step::kSync: stream_->SendSync(); break;
    case Step::kBegin: co_return co_await BeginChunk();
    case Step::kRecover: co_return co_await Recover();
    case Step::kSeal: co_return co_await Seal();
    case Step::kSyncSealed: co_return co_await SyncSealed();
    case Step::kFinish: co_return co_await Finish();
  }
  co_return Status();
}

// Takes in what the stream has learned: acknowledged packets leave the queue.
void WriteSession::Absorb() {
  if (!stream_) return;
  const uint64_t acked = stream_->acked();
  while (!queue_.empty() && queue_.front().index == index_ && queue_.front().packet.end() <= acked) {
    queue_.pop_front();
    if (sent_ > 0) --sent_;
  }
  bool news = false;
  if (ChunkStart() + acked > acked_) {
    acked_ = ChunkStart() + acked;
    const auto& token = stream_->grant().token();
    env_.Trace({.kind = ProtocolEvent::Kind::kAcknowledged,
                .server = stream_->primary(),
                .chunk = ChunkId(token.chunk()),
                .version = Version(token.version()),
                .generation = Generation(token.generation()),
                .length = acked});
    patience_.Progressed();
    news = true;
  }
  if (unsynced_.empty() && stream_->synced() > 0 && ChunkStart() + stream_->synced() > synced_) {
    synced_ = ChunkStart() + stream_->synced();
    news = true;
  }
  if (news) news_->NotifyAll();
}

void WriteSession::SendNext() {
  const Packet& packet = queue_[sent_].packet;
  const bool sync = SyncWanted() && unsynced_.empty() && ChunkStart() + packet.end() >= sync_target_;
  stream_->Send(packet, sync);
  ++sent_;
  sent_end_ = std::max(sent_end_, packet.end());
}

// ---- a chunk's life --------------------------------------------------------------------------------

// A new chunk at the end of the file, or the last one opened again, with all its bytes.
Task<Result<proto::WriteGrant>> WriteSession::AskForChunk(const proto::MutationId* mutation,
                                                          std::vector<ServerId> avoided, Mono deadline) {
  if (reopen_) {
    proto::GrantRequest request;
    *request.mutable_mutation() = *mutation;
    Sign(&request);
    request.set_chunk(reopen_->chunk());
    request.set_version(reopen_->version());
    request.set_acked_length(reopen_->length());
    request.set_reason("append");
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

Task<Status> WriteSession::BeginChunk() {
  const Mono begun = env_.Now();
  // One chunk, whatever it takes: an attempt that failed late may have made it.
  const auto mutation = co_await master_->NewMutation();
  while (!ended_) {
    const auto avoided = health_.AllAvoided(env_.Now());
    auto grant = co_await AskForChunk(&mutation.id(), avoided, begun + options_.patience);
    if (ended_) co_return Status();
    if (grant) {
      if (grant->chain_size() < static_cast<int>(opened_.status.replication()) && warnings_.empty()) {
        warnings_.push_back(std::to_string(grant->chain_size()) + " of " +
                            std::to_string(opened_.status.replication()) + " replicas could be placed");
      }
      sent_end_ = reopen_ ? reopen_->length() : 0;
      reopen_.reset();
      patience_.Progressed();
      co_return co_await OpenStream(std::move(*grant), sent_end_);
    }
    Error error = std::move(grant).error();
    const Mono end = patience_.Failed();
    if (error.code == Code::kNotEnoughReplicas) {
      // Better a server that failed lately than none.
      if (!avoided.empty()) {
        health_.Forgive();
        continue;
      }
      if (env_.Now() >= begun + kPlacementPatience) co_return Fail(std::move(error));
    } else if (error.server != 0 && !IsFenced(error.code)) {
      health_.Disappointed(ServerId(error.server), env_.Now());
    } else if (!NeedsNewToken(error.code)) {
      co_return Fail(std::move(error));
    }
    if (env_.Now() >= end) co_return Fail(std::move(error));
    co_await patience_.BackOff(error);
  }
  co_return Status();
}

Task<Status> WriteSession::OpenStream(proto::WriteGrant grant, uint64_t acked) {
  if (grant.chain_size() == 0 || (grant.chunk_size() != 0 && grant.chunk_size() != chunk_size_)) {
    co_return Fail(Code::kInternal, "the master's grant of chunk " + ToHex(grant.token().chunk()) +
                                                " has no replicas or another chunk size");
  }
  const uint64_t length = grant.length();
  if (length < acked && !PICKET_MUTANT(client_grant_below_acked)) {
    co_return Fail(Code::kIntegrity, "chunk " + ToHex(grant.token().chunk()) + " goes on from " +
                                                 std::to_string(length) + " bytes, but " + std::to_string(acked) +
                                                 " were acknowledged");
  }
  if (length > sent_end_ && !PICKET_MUTANT(client_grant_beyond_sent)) {
    co_return Fail(Code::kIntegrity, "chunk " + ToHex(grant.token().chunk()) + " is said to hold " +
                                                 std::to_string(length) + " bytes, of which this writer knows " +
                                                 std::to_string(sent_end_));
  }
  stream_ = std::make_shared<ChunkStream>(env_, std::move(grant), options_.sync, news_);
  sent_ = 0;
  failed_.clear();
  Absorb();
  if (!queue_.empty() && queue_.front().index == index_ && queue_.front().packet.offset < length) {
    auto tail = TailOf(queue_.front().packet, length);
    if (!tail) co_return Fail(std::move(tail).error());
    queue_.front().packet = std::move(*tail);
  }
  co_await ChunkStream::Connect(stream_);
  co_return Status();
}

Task<Status> WriteSession::Refresh() {
  const auto stream = stream_;
  const Error cause = *stream->broken();
  const Mono end = patience_.Failed();
  // Expired again: the primary has not heard of the new key yet.
  if (patience_.failures() > 1) co_await patience_.BackOff(cause);
  if (ended_) co_return Status();
  if (env_.Now() >= end) co_return Fail(cause);
  auto token = co_await RefreshToken(master_, stream->grant().token(), end);
  if (ended_) co_return Status();
  if (!token) {
    if (!NeedsNewToken(token.error().code)) co_return Fail(std::move(token).error());
    stream->Break(std::move(token).error());
    co_return Status();
  }
  stream->Renew(std::move(*token));
  sent_ = 0;
  co_return Status();
}

Task<Status> WriteSession::Recover() {
  if (stream_->expired()) co_return co_await Refresh();
  const Error cause = *stream_->broken();
  const auto old = stream_;
  WriteFailure failure = JudgeWriteFailure(cause, old->primary(), patience_.failures() > 0);
  if (failure.verdict == WriteVerdict::kFinal) co_return Fail(cause);
  old->Stop();
  if (failure.verdict == WriteVerdict::kProbe) {
    const bool alive = co_await Answers(&env_, old->primary_endpoint());
    if (ended_) co_return Status();
    if (!alive) failure = {WriteVerdict::kBlame, old->primary()};
  }
  if (failure.verdict == WriteVerdict::kBlame) {
    failed_.insert(failure.blamed);
    health_.Disappointed(failure.blamed, env_.Now());
  }
  PICKET_LOG(env_, kWarning, "writing {}: chunk {} at version {} broke at {} bytes acknowledged: {}", options_.path,
             ToHex(old->grant().token().chunk()), Version(old->grant().token().version()).ToString(), old->acked(),
             cause.ToString());
  Error last = cause;
  for (Mono end = patience_.Failed(); env_.Now() < end; end = patience_.Failed()) {
    if (patience_.failures() > 1) co_await patience_.BackOff(last);
    if (ended_) co_return Status();
    if (env_.Now() >= end) break;
    proto::GrantRequest request;
    Sign(&request);
    request.set_chunk(old->grant().token().chunk());
    request.set_version(old->grant().token().version());
    request.set_acked_length(old->acked());
    for (const ServerId server : failed_) request.add_failed_servers(server.value);
    request.set_reason(cause.ToString());
    auto grant = co_await master_->Mutate<proto::WriteGrant>(proto::GRANT, std::move(request), end);
    if (ended_) co_return Status();
    if (grant) {
      co_return co_await OpenStream(std::move(*grant), old->acked());
    }
    last = std::move(grant).error();
    if (last.code == Code::kNotEnoughReplicas) {
      failed_.clear();  // who failed may be better than nobody
    } else if (!NeedsNewToken(last.code)) {
      co_return Fail(std::move(last));
    }
  }
  co_return Fail(std::move(last));
}

Task<Status> WriteSession::Seal() {
  const auto stream = stream_;
  const bool last = closing_ && queue_.empty();
  const bool sync = options_.sync || SyncWanted();
  auto sealed = co_await ChunkStream::Seal(stream, sync);
  if (ended_) co_return Status();
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
  request.set_close(last);
  if (last) request.set_mtime_ns(options_.mtime_ns);
  finishing_ = last;
  auto committed = co_await master_->Mutate<proto::CommitSealResponse>(proto::COMMIT_SEAL, std::move(request),
                                                                       env_.Now() + options_.patience);
  finishing_ = false;
  if (ended_) co_return Status();
  if (!committed) {
    if (!NeedsNewToken(committed.error().code)) co_return Fail(std::move(committed).error());
    stream->Break(std::move(committed).error());
    co_return Status();
  }
  patience_.Progressed();
  stream->Stop();
  if (!sync) unsynced_.push_back({index_, stream->grant().token(), stream->end()});
  const uint64_t end = ChunkStart() + stream->end();
  ++index_;
  stream_.reset();
  if (unsynced_.empty()) {
    synced_ = end;
    news_->NotifyAll();
  }
  if (last) Ended(std::move(*committed->mutable_status()));
  co_return Status();
}

Task<Status> WriteSession::Finish() {
  proto::CloseRequest request;
  Sign(&request);
  request.set_mtime_ns(options_.mtime_ns);
  finishing_ = true;
  auto closed = co_await master_->Mutate<proto::CloseResponse>(proto::CLOSE, std::move(request),
                                                               env_.Now() + options_.patience);
  finishing_ = false;
  if (ended_) co_return Status();
  if (!closed) co_return Fail(std::move(closed).error());
  Ended(std::move(*closed->mutable_status()));
  co_return Status();
}

}  // namespace picket
