#include "client/core/write_session.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace picket {

WriteSession::WriteSession(Env& env, std::shared_ptr<MasterClient> master, std::shared_ptr<SessionKeeper> keeper,
                           proto::CreateResponse created, WriteSessionOptions options)
    : env_(env),
      master_(std::move(master)),
      keeper_(std::move(keeper)),
      created_(std::move(created)),
      options_(std::move(options)),
      chunk_size_(created_.status().chunk_size()),
      news_(std::make_shared<Signal>(env)) {
  if (created_.live_servers() < created_.status().replication()) {
    warnings_.push_back(std::to_string(created_.live_servers()) + " live servers for a goal of " +
                        std::to_string(created_.status().replication()) + " replicas");
  }
}

void WriteSession::Start() {
  keeper_->Add(InodeId(created_.status().inode()), Generation(created_.generation()),
               std::chrono::milliseconds(created_.soft_limit_ms()), [weak = weak_from_this()] {
                 if (auto self = weak.lock()) self->Lost();
               });
  env_.Spawn(Move(shared_from_this()));
}

void WriteSession::Detach() {
  if (!closed_ && !error_) error_ = Error(Code::kInvalidArgument, options_.path + ": the writer was given up");
  ended_ = true;
  keeper_->Remove(InodeId(created_.status().inode()));
  if (stream_) stream_->Stop();
  news_->NotifyAll();
}

// ---- endings ---------------------------------------------------------------------------------------

void WriteSession::GiveUp(Error error) {
  if (ended_) return;
  if (IsFenced(error.code)) keeper_->Remove(InodeId(created_.status().inode()));
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
  keeper_->Remove(InodeId(created_.status().inode()));
  news_->NotifyAll();
}

void WriteSession::Lost() {
  // A session that the closing request has just ended is not known any more either.
  if (finishing_) return;
  GiveUp(Error(Code::kStaleGeneration, "the master ended this write session")
             .WithTokens(created_.generation(), 0)
             .WithNextStep("somebody else may have the file now; look at it before you write it again"));
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

Task<Status> WriteSession::Write(std::shared_ptr<WriteSession> self, Buffer data) {
  PICKET_CO_TRY(self->Usable());
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
  self->Detach();
  proto::AbandonRequest request;
  self->Sign(&request);
  auto answer = co_await self->master_->Mutate<proto::AbandonResponse>(proto::ABANDON, std::move(request),
                                                                       self->env_.Now() + self->options_.patience);
  if (!answer) co_return Fail(std::move(answer).error());
  co_return Status();
}

}  // namespace picket
