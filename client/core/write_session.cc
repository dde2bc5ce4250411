#include "client/core/write_session.h"

#include <algorithm>
#include <cstring>

#include "client/core/session_loss.h"
#include "client/core/write_failure.h"
#include "common/base/check.h"

namespace picket {

OpenedSession OpenedSession::Of(proto::CreateResponse created) {
  OpenedSession opened;
  opened.status = std::move(*created.mutable_status());
  opened.generation = created.generation();
  opened.soft_limit_ms = created.soft_limit_ms();
  opened.live_servers = created.live_servers();
  opened.created = true;
  return opened;
}

OpenedSession OpenedSession::Of(proto::OpenResponse answer) {
  OpenedSession opened;
  opened.status = std::move(*answer.mutable_status());
  opened.generation = answer.generation();
  opened.soft_limit_ms = answer.soft_limit_ms();
  opened.live_servers = answer.live_servers();
  if (answer.has_last_chunk()) opened.last_chunk = std::move(*answer.mutable_last_chunk());
  return opened;
}

WriteSession::WriteSession(Env& env, std::shared_ptr<MasterClient> master, std::shared_ptr<SessionKeeper> keeper,
                           OpenedSession opened, WriteSessionOptions options)
    : env_(env),
      master_(std::move(master)),
      keeper_(std::move(keeper)),
      opened_(std::move(opened)),
      options_(std::move(options)),
      chunk_size_(opened_.status.chunk_size()),
      begin_(opened_.status.length()),
      news_(std::make_shared<Signal>(env)),
      index_(begin_ / chunk_size_) {
  if (opened_.live_servers < opened_.status.replication()) {
    warnings_.push_back(std::to_string(opened_.live_servers) + " live servers for a goal of " +
                        std::to_string(opened_.status.replication()) + " replicas");
  }
  const auto& last = opened_.last_chunk;
  if (last && last->index() == index_ && last->length() > 0) reopen_ = last;
  written_ = ChunkStart() + (reopen_ ? reopen_->length() : 0);
  acked_ = synced_ = written_;
}

void WriteSession::Start() {
  keeper_->Add(InodeId(opened_.status.inode()), Generation(opened_.generation),
               std::chrono::milliseconds(opened_.soft_limit_ms),
               [&env = env_, weak = weak_from_this()] { env.Spawn(Lost(weak)); });
  env_.Spawn(Move(shared_from_this()));
}

void WriteSession::Detach() {
  if (!closed_ && !error_) error_ = Error(Code::kInvalidArgument, options_.path + ": the writer was given up");
  ended_ = true;
  keeper_->Remove(InodeId(opened_.status.inode()), Generation(opened_.generation));
  if (stream_) stream_->Stop();
  news_->NotifyAll();
}

// ---- endings ---------------------------------------------------------------------------------------

void WriteSession::GiveUp(Error error) {
  if (ended_) return;
  if (LosesSession(error.code)) keeper_->Remove(InodeId(opened_.status.inode()), Generation(opened_.generation));
  error.message = "writing " + options_.path + ": " + error.message;
  error_ = std::move(error);
  ended_ = true;
  if (stream_) stream_->Stop();
  news_->NotifyAll();
}

void WriteSession::Ended(proto::FileStatus status) {
  if (ended_) return;
  closed_ = std::move(status);
  ended_ = true;
  keeper_->Remove(InodeId(opened_.status.inode()), Generation(opened_.generation));
  news_->NotifyAll();
}

Task<> WriteSession::Lost(std::weak_ptr<WriteSession> weak) {
  auto self = weak.lock();
  // A session that the closing request has just ended is not known any more either.
  if (!self || self->ended_ || self->finishing_) co_return;
  Error error(Code::kStaleGeneration, "the master ended this write session");
  auto explained = co_await self->Explained(std::move(error));
  if (!self->finishing_) self->GiveUp(std::move(explained));
}

Task<Error> WriteSession::Explained(Error error) {
  return ExplainLoss(&env_, master_, InodeId(opened_.status.inode()), Generation(opened_.generation), std::move(error));
}

// ---- the caller's side -----------------------------------------------------------------------------

Status WriteSession::Usable() const {
  if (error_) return Fail(*error_);
  if (closing_) return Fail(Code::kInvalidArgument, options_.path + ": the writer is closed");
  return {};
}

void WriteSession::Enqueue(Buffer data) {
  const uint64_t at = PacketStart();
  queue_.push_back({at / chunk_size_, MakePacket(at % chunk_size_, std::move(data))});
  news_->NotifyAll();
}

void WriteSession::CutPartial() {
  if (partial_size_ == 0) return;
  Buffer data = partial_.Slice(0, partial_size_);
  Enqueue(std::move(data));
  partial_ = Buffer();
  partial_size_ = 0;
}

Task<Status> WriteSession::Await(std::shared_ptr<WriteSession> self, bool (*done)(const WriteSession&, uint64_t),
                                 uint64_t target) {
  while (!self->error_ && !done(*self, target)) co_await self->news_->Wait();
  if (self->error_) co_return Fail(*self->error_);
  co_return Status();
}

// Puts the bytes into packets, after what is there.
Task<Status> WriteSession::Take(std::shared_ptr<WriteSession> self, Buffer data) {
  while (!data.empty()) {
    const uint64_t room = PacketRoom(self->PacketStart() % self->chunk_size_, self->chunk_size_);
    const size_t size = std::min<uint64_t>(data.size(), room - self->partial_size_);
    const bool fills = self->partial_size_ + size == room;
    if (fills) {
      PICKET_CO_TRY(co_await Await(
          self, [](const WriteSession& s, uint64_t) { return s.queue_.size() < kMaxQueued; }, 0));
    }
    const Buffer taken = data.Slice(0, size);
    data = data.Slice(size, data.size() - size);
    if (self->partial_size_ == 0) {
      // Nothing to join it with: no copy.
      self->partial_ = taken;
    } else {
      if (self->partial_.size() < room) {
        Buffer whole = self->env_.Allocate(room);
        std::memcpy(whole.data(), self->partial_.data(), self->partial_size_);
        self->partial_ = std::move(whole);
      }
      std::memcpy(self->partial_.data() + self->partial_size_, taken.data(), size);
    }
    self->partial_size_ += size;
    self->written_ += size;
    if (fills) self->CutPartial();
  }
  co_return Status();
}

// A hole at the end of the file, inside the chunk that the writer goes on with.
Task<Status> WriteSession::FillGap(std::shared_ptr<WriteSession> self) {
  while (self->written_ < self->begin_) {
    const uint64_t size = std::min(self->begin_ - self->written_, kMaxPacketSize);
    Buffer zeros = self->env_.Allocate(size);
    std::memset(zeros.data(), 0, size);
    PICKET_CO_TRY(co_await Take(self, std::move(zeros)));
  }
  co_return Status();
}

Task<Status> WriteSession::Write(std::shared_ptr<WriteSession> self, Buffer data) {
  PICKET_CO_TRY(self->Usable());
  if (data.empty()) co_return Status();
  PICKET_CO_TRY(co_await FillGap(self));
  co_return co_await Take(self, std::move(data));
}

Task<Status> WriteSession::Flush(std::shared_ptr<WriteSession> self) {
  PICKET_CO_TRY(self->Usable());
  self->CutPartial();
  co_return co_await Await(
      self, [](const WriteSession& s, uint64_t target) { return s.acked_ >= target; }, self->written_);
}

Task<Status> WriteSession::Sync(std::shared_ptr<WriteSession> self) {
  PICKET_CO_TRY(self->Usable());
  self->CutPartial();
  self->sync_target_ = self->written_;
  self->news_->NotifyAll();
  co_return co_await Await(
      self, [](const WriteSession& s, uint64_t target) { return s.synced_ >= target; }, self->written_);
}

Task<Result<proto::FileStatus>> WriteSession::Close(std::shared_ptr<WriteSession> self) {
  if (self->closed_) co_return *self->closed_;
  PICKET_CO_TRY(self->Usable());
  self->CutPartial();
  self->closing_ = true;
  self->news_->NotifyAll();
  PICKET_CO_TRY(
      co_await Await(self, [](const WriteSession& s, uint64_t) { return s.closed_.has_value(); }, 0));
  co_return *self->closed_;
}

Task<Status> WriteSession::Abandon(std::shared_ptr<WriteSession> self) {
  if (self->closed_) co_return Fail(Code::kInvalidArgument, self->options_.path + ": the file is closed already");
  if (!self->opened_.created) {
    co_return Fail(Error(Code::kInvalidArgument, self->options_.path + ": only a new file can be given up")
                       .WithNextStep("close the writer; what was appended stays"));
  }
  self->Detach();
  proto::AbandonRequest request;
  self->Sign(&request);
  auto answer = co_await self->master_->Mutate<proto::AbandonResponse>(proto::ABANDON, std::move(request),
                                                                       self->env_.Now() + self->options_.patience);
  if (!answer) co_return Fail(std::move(answer).error());
  co_return Status();
}

}  // namespace picket
