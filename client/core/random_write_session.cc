#include "client/core/random_write_session.h"

#include <algorithm>
#include <cstring>

#include "client/core/session_loss.h"
#include "client/core/write_failure.h"

namespace picket {

RandomWriteSession::RandomWriteSession(Env& env, std::shared_ptr<MasterClient> master,
                                       std::shared_ptr<SessionKeeper> keeper, OpenedSession opened,
                                       WriteSessionOptions options)
    : env_(env),
      master_(std::move(master)),
      keeper_(std::move(keeper)),
      opened_(std::move(opened)),
      options_(std::move(options)),
      chunk_size_(opened_.status.chunk_size()),
      news_(std::make_shared<Signal>(env)) {
  if (opened_.live_servers < opened_.status.replication()) {
    warnings_.push_back(std::to_string(opened_.live_servers) + " live servers for a goal of " +
                        std::to_string(opened_.status.replication()) + " replicas");
  }
}

void RandomWriteSession::Start() {
  keeper_->Add(InodeId(opened_.status.inode()), Generation(opened_.generation),
               std::chrono::milliseconds(opened_.soft_limit_ms),
               [&env = env_, weak = weak_from_this()] { env.Spawn(Lost(weak)); });
}

void RandomWriteSession::Detach() {
  if (closed_ || error_) return;
  error_ = Error(Code::kInvalidArgument, options_.path + ": the writer was given up");
  keeper_->Remove(InodeId(opened_.status.inode()), Generation(opened_.generation));
  if (stream_) stream_->Stop();
}

// ---- endings ---------------------------------------------------------------------------------------

Status RandomWriteSession::Usable() const {
  if (error_) return Fail(*error_);
  if (closed_) return Fail(Code::kInvalidArgument, options_.path + ": the writer is closed");
  return {};
}

void RandomWriteSession::GiveUp(Error error) {
  if (error_ || closed_) return;
  if (LosesSession(error.code)) keeper_->Remove(InodeId(opened_.status.inode()), Generation(opened_.generation));
  error.message = "writing " + options_.path + ": " + error.message;
  error_ = std::move(error);
  if (stream_) stream_->Stop();
  news_->NotifyAll();
}

// What the caller is told: a failure ends the session, and a lost one is explained.
Task<Status> RandomWriteSession::Ended(std::shared_ptr<RandomWriteSession> self, Status outcome) {
  if (outcome) co_return outcome;
  Error error = std::move(outcome).error();
  if (!self->error_) {
    if (LosesSession(error.code)) {
      error = co_await ExplainLoss(&self->env_, self->master_, InodeId(self->opened_.status.inode()),
                                   Generation(self->opened_.generation), std::move(error));
    }
    self->GiveUp(std::move(error));
  }
  co_return Fail(*self->error_);
}

Task<> RandomWriteSession::Lost(std::weak_ptr<RandomWriteSession> weak) {
  auto self = weak.lock();
  // A session that the closing request has just ended is not known any more either.
  if (!self || self->error_ || self->closed_ || self->finishing_) co_return;
  Error error(Code::kStaleGeneration, "the master ended this write session");
  auto explained = co_await ExplainLoss(&self->env_, self->master_, InodeId(self->opened_.status.inode()),
                                        Generation(self->opened_.generation), std::move(error));
  if (!self->finishing_) self->GiveUp(std::move(explained));
}

// ---- packets ---------------------------------------------------------------------------------------

// Takes in what the stream has learned.
void RandomWriteSession::Absorb() {
  if (!stream_) return;
  while (sent_ > 0 && ops_.front().serial <= stream_->acked_serial()) {
    ops_.pop_front();
    --sent_;
    patience_.Progressed();
  }
  if (stream_->acked() > acked_) {
    acked_ = stream_->acked();
    const auto& token = stream_->grant().token();
    env_.Trace({.kind = ProtocolEvent::Kind::kAcknowledged,
                .server = stream_->primary(),
                .chunk = ChunkId(token.chunk()),
                .version = Version(token.version()),
                .generation = Generation(token.generation()),
                .length = acked_});
  }
  if (sync_serial_ != 0 && stream_->synced_serial() >= sync_serial_) {
    sync_serial_ = 0;
    dirty_ = sync_wanted_ = false;
  }
}

void RandomWriteSession::SendNext() {
  Op& op = ops_[sent_];
  if (op.overwrite) {
    stream_->Overwrite(op.packet, false);
  } else {
    stream_->Send(op.packet, false);
  }
  op.serial = stream_->serial();
  ++sent_;
  dirty_ = true;
  sent_end_ = std::max(sent_end_, op.packet.end());
}

Task<Status> RandomWriteSession::Drive(std::shared_ptr<RandomWriteSession> self, Condition done) {
  while (true) {
    self->Absorb();
    if (self->error_) co_return Fail(*self->error_);
    if (done(*self)) co_return Status();
    if (self->stream_->expired() && self->stream_->in_flight() > 0) {
      co_await self->news_->Wait();
    } else if (self->stream_->broken()) {
      PICKET_CO_TRY(co_await self->Recover());
    } else if (!self->AllSent() && self->stream_->room()) {
      self->SendNext();
    } else if (self->sync_wanted_ && self->ops_.empty() && self->sync_serial_ == 0) {
      self->stream_->SendSync();
      self->sync_serial_ = self->stream_->serial();
    } else {
      co_await self->news_->Wait();
    }
  }
}

// Bytes of the open chunk, from a position at or below its planned end.
Task<Status> RandomWriteSession::Put(std::shared_ptr<RandomWriteSession> self, uint64_t at, Buffer data) {
  while (!data.empty()) {
    uint64_t size = std::min<uint64_t>(data.size(), PacketRoom(at, self->chunk_size_));
    const bool overwrite = at < self->tail_;
    if (overwrite) size = std::min(size, self->tail_ - at);
    self->ops_.push_back({MakePacket(at, data.Slice(0, size)), overwrite});
    at += size;
    self->tail_ = std::max(self->tail_, at);
    data = data.Slice(size, data.size() - size);
    PICKET_CO_TRY(co_await Drive(self, [](const RandomWriteSession& s) { return s.AllSent(); }));
  }
  co_return Status();
}

// ---- the caller's side -----------------------------------------------------------------------------

Task<Status> RandomWriteSession::WriteAt(std::shared_ptr<RandomWriteSession> self, uint64_t offset, Buffer data) {
  PICKET_CO_TRY(self->Usable());
  // Refused before anything is begun: the writer stays good for other writes, and for its close.
  if (offset > kMaxFileBytes || data.size() > kMaxFileBytes - offset) {
    co_return Fail(Code::kInvalidArgument,
                   self->options_.path + ": no file goes on beyond " + std::to_string(kMaxFileBytes) + " bytes");
  }
  while (!data.empty()) {
    const uint64_t at = offset % self->chunk_size_;
    const uint64_t size = std::min<uint64_t>(data.size(), self->chunk_size_ - at);
    Status done = co_await self->Reach(offset / self->chunk_size_);
    while (done && self->tail_ < at) {
      const uint64_t room = std::min(at - self->tail_, PacketRoom(self->tail_, self->chunk_size_));
      Buffer zeros = self->env_.Allocate(room);
      std::memset(zeros.data(), 0, room);
      done = co_await Put(self, self->tail_, std::move(zeros));
    }
    if (done) done = co_await Put(self, at, data.Slice(0, size));
    if (!done) co_return co_await Ended(self, std::move(done));
    self->written_ += size;
    offset += size;
    data = data.Slice(size, data.size() - size);
  }
  co_return Status();
}

Task<Status> RandomWriteSession::Flush(std::shared_ptr<RandomWriteSession> self) {
  PICKET_CO_TRY(self->Usable());
  Status done = co_await Drive(self, [](const RandomWriteSession& s) { return s.Flushed(); });
  co_return co_await Ended(self, std::move(done));
}

Task<Status> RandomWriteSession::Sync(std::shared_ptr<RandomWriteSession> self) {
  PICKET_CO_TRY(self->Usable());
  self->sync_wanted_ = self->dirty_;
  Status done = co_await Drive(self, [](const RandomWriteSession& s) { return s.Flushed() && !s.sync_wanted_; });
  co_return co_await Ended(self, std::move(done));
}

Task<Result<proto::FileStatus>> RandomWriteSession::Close(std::shared_ptr<RandomWriteSession> self) {
  if (self->closed_) co_return *self->closed_;
  PICKET_CO_TRY(self->Usable());
  Status done = co_await self->LeaveChunk(true);
  PICKET_CO_TRY(co_await Ended(self, std::move(done)));
  self->keeper_->Remove(InodeId(self->opened_.status.inode()), Generation(self->opened_.generation));
  co_return *self->closed_;
}

}  // namespace picket
