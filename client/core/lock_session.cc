#include "client/core/lock_session.h"

#include <algorithm>

#include "common/base/mutation.h"

namespace picket {
namespace {

bool Held(Code code) { return code == Code::kLeaseConflict || code == Code::kLockDelayed; }

}  // namespace

LockSession::LockSession(Env& env, std::shared_ptr<MasterClient> master, proto::OpenResponse opened, Mono asked)
    : env_(env), master_(std::move(master)), opened_(std::move(opened)), valid_until_(asked + Valid()), changed_(env) {}

Nanos LockSession::Valid() const {
  const Nanos soft = std::chrono::milliseconds(opened_.soft_limit_ms());
  return soft - soft * kMarginPercent / 100;
}

Task<Result<std::shared_ptr<LockSession>>> LockSession::Acquire(Env* env, std::shared_ptr<MasterClient> master,
                                                                proto::OpenRequest request, Nanos wait,
                                                                Nanos timeout) {
  const Mono end = env->Now() + wait;
  while (true) {
    const Mono asked = env->Now();
    auto opened = co_await master->Mutate<proto::OpenResponse>(proto::OPEN_FILE, request, asked + timeout);
    if (opened) {
      std::shared_ptr<LockSession> lock(new LockSession(*env, master, std::move(*opened), asked));
      env->Spawn(Renew(lock));
      co_return lock;
    }
    if (!Held(opened.error().code) || env->Now() >= end) co_return Fail(std::move(opened).error());
    Nanos pause = kLongestPause;
    if (opened.error().retry_after_ms > 0) {
      pause = std::min<Nanos>(pause, std::chrono::milliseconds(opened.error().retry_after_ms));
    }
    co_await env->Sleep(std::min<Nanos>(pause, end - env->Now()));
  }
}

Task<> LockSession::Renew(std::shared_ptr<LockSession> self) {
  const Nanos period = std::max<Nanos>(std::chrono::milliseconds(self->opened_.soft_limit_ms()) / 3, 10ms);
  Mono sent = self->valid_until_ - self->Valid();
  while (!self->ended_) {
    if (self->env_.Now() >= self->valid_until_ && !PICKET_MUTANT(lock_local_end)) {
      self->Lose(Error(Code::kStaleGeneration, self->sequencer().path() +
                                                   ": the lock could not be renewed before it ended: the master did not "
                                                   "answer, or this process stood still")
                     .WithNextStep("stop using what it protects, and take it anew"));
      co_return;
    }
    if (self->env_.Now() < sent + period) {
      co_await self->changed_.WaitFor(sent + period - self->env_.Now());
      continue;
    }
    sent = self->env_.Now();
    proto::RenewRequest request;
    request.set_holder(self->master_->client().value);
    auto* session = request.add_sessions();
    session->set_inode(self->opened_.status().inode());
    session->set_generation(self->opened_.generation());
    auto answer = co_await self->master_->Read<proto::RenewResponse>(proto::RENEW, request,
                                                                     std::min(sent + period, self->valid_until_));
    if (self->ended_ || !answer) continue;
    if (answer->lost_inodes_size() > 0) {
      self->Lose(Error(Code::kStaleGeneration, self->sequencer().path() + ": the master gave the lock to another holder, "
                                                                          "or ended it")
                     .WithTokens(self->opened_.generation(), 0)
                     .WithNextStep("stop using what it protects, and take it anew"));
      co_return;
    }
    self->valid_until_ = sent + self->Valid();
  }
}

Task<Status> LockSession::Release(std::shared_ptr<LockSession> self, Nanos timeout) {
  if (self->lost_) co_return Fail(*self->lost_);
  if (self->ended_) co_return Status();
  self->End();
  proto::ReleaseRequest request;
  request.set_inode(self->opened_.status().inode());
  request.set_generation(self->opened_.generation());
  request.set_holder(self->master_->client().value);
  auto released = co_await self->master_->Mutate<proto::ReleaseResponse>(proto::RELEASE, std::move(request),
                                                                         self->env_.Now() + timeout);
  if (!released) co_return Fail(std::move(released).error());
  co_return Status();
}

void LockSession::Lose(Error error) {
  lost_ = std::move(error);
  End();
}

void LockSession::End() {
  ended_ = true;
  changed_.NotifyAll();
}

}  // namespace picket
