#include "client/core/session_keeper.h"

#include "proto/client_master.pb.h"

#include <algorithm>

namespace picket {

SessionKeeper::SessionKeeper(Env& env, std::shared_ptr<MasterClient> master)
    : env_(env), master_(std::move(master)), changed_(env) {}

void SessionKeeper::Add(InodeId inode, Generation generation, Nanos soft_limit, std::function<void()> lost) {
  sessions_[inode] = {generation, soft_limit, std::move(lost)};
  changed_.NotifyAll();
  if (running_) return;
  running_ = true;
  env_.Spawn(Run(shared_from_this()));
}

void SessionKeeper::Remove(InodeId inode, Generation generation) {
  const auto it = sessions_.find(inode);
  if (it == sessions_.end() || it->second.generation != generation) return;
  sessions_.erase(it);
  if (sessions_.empty()) changed_.NotifyAll();
}

Nanos SessionKeeper::Period() const {
  Nanos shortest = Nanos::max();
  for (const auto& [inode, session] : sessions_) shortest = std::min(shortest, session.soft_limit);
  return std::max<Nanos>(shortest / 3, 10ms);
}

Task<> SessionKeeper::Run(std::shared_ptr<SessionKeeper> self) {
  Mono last = self->env_.Now();
  while (!self->sessions_.empty()) {
    const Mono next = last + self->Period();
    if (self->env_.Now() < next) {
      co_await self->changed_.WaitFor(next - self->env_.Now());
      continue;
    }
    last = self->env_.Now();
    proto::RenewRequest request;
    request.set_holder(self->master_->client().value);
    std::map<InodeId, Generation> asked;
    for (const auto& [inode, session] : self->sessions_) {
      auto* entry = request.add_sessions();
      entry->set_inode(inode.value);
      entry->set_generation(session.generation.value);
      asked.emplace(inode, session.generation);
    }
    auto answer = co_await self->master_->Read<proto::RenewResponse>(proto::RENEW, request,
                                                                     last + self->Period());
    if (!answer) continue;
    for (const uint64_t value : answer->lost_inodes()) {
      const InodeId inode(value);
      auto it = self->sessions_.find(inode);
      // A session that was opened after the question is not what the answer is about.
      if (it == self->sessions_.end() || it->second.generation != asked[inode]) continue;
      auto lost = std::move(it->second.lost);
      self->sessions_.erase(it);
      lost();
    }
  }
  self->running_ = false;
}

}  // namespace picket
