// A WriteSession's sync that reaches back to chunks it sealed without one.
#include "client/core/refresh_token.h"
#include "client/core/write_failure.h"
#include "client/core/write_session.h"

namespace picket {

Task<Status> WriteSession::SyncSealedAt(Env* env, Unsynced chunk, proto::Hop hop) {
  proto::SealRequest request;
  *request.mutable_token() = std::move(chunk.token);
  request.set_length(chunk.length);
  request.set_sync(true);
  request.set_target_incarnation(hop.incarnation());
  Channel channel(*env, Endpoint(hop.host(), static_cast<uint16_t>(hop.port())));
  auto sealed = co_await channel.Call<proto::SealResponse>(proto::SEAL, request, ChunkStream::kSyncTimeout);
  if (!sealed) co_return Fail(std::move(sealed).error());
  co_return Status();
}

// At each replica itself: a sealed chunk's primary need not hold its lease any more, and a server that
// restarted since is asked in its present boot.
Task<Status> WriteSession::TrySyncSealed(Unsynced chunk, Mono deadline) {
  proto::GetFileRequest request;
  request.set_inode(opened_.status.inode());
  request.set_first_index(chunk.index);
  request.set_limit(1);
  auto file = co_await master_->Read<proto::GetFileResponse>(proto::GET_FILE, request, deadline);
  if (!file) co_return Fail(std::move(file).error());
  std::vector<Task<Status>> seals;
  for (const auto& location : file->chunks()) {
    if (location.chunk() != chunk.token.chunk()) continue;
    for (const auto& replica : location.replicas()) {
      if (replica.counted()) seals.push_back(SyncSealedAt(&env_, chunk, replica.hop()));
    }
  }
  if (seals.empty()) {
    co_return Fail(Code::kUnavailable, "no live server has a replica of chunk " + ToHex(chunk.token.chunk()));
  }
  for (auto& sealed : co_await WhenAll(&env_, std::move(seals))) {
    if (!sealed) co_return Fail(std::move(sealed).error());
  }
  co_return Status();
}

// A sync that reaches back to chunks that were sealed without one: the seal is asked for again.
Task<Status> WriteSession::SyncSealed() {
  const Mono end = patience_.Failed();
  auto synced = co_await TrySyncSealed(unsynced_.front(), end);
  if (ended_) co_return Status();
  if (!synced) {
    if (synced.error().code == Code::kTokenExpired) {
      auto token = co_await RefreshToken(master_, unsynced_.front().token, end);
      if (ended_) co_return Status();
      if (!token) co_return Fail(std::move(token).error());
      unsynced_.front().token = std::move(*token);
    }
    if (JudgeWriteFailure(synced.error(), ServerId(), false).verdict == WriteVerdict::kFinal || env_.Now() >= end) {
      co_return Fail(std::move(synced).error());
    }
    co_await patience_.BackOff(synced.error());
    co_return Status();
  }
  patience_.Progressed();
  unsynced_.pop_front();
  if (unsynced_.empty()) {
    synced_ = std::max(synced_, ChunkStart());
    news_->NotifyAll();
  }
  co_return Status();
}

}  // namespace picket
