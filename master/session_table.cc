#include "master/session_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"
#include "master/keys.h"

namespace picket {
namespace {

Nanos Millis(uint32_t ms) { return std::chrono::milliseconds(ms); }

constexpr size_t kLoadPage = 1000;

}  // namespace

SessionTable::SessionTable(Env& env, MetaStore& store, Options options)
    : env_(env), store_(store), options_(options) {
  store_.OnFailure([this] {
    if (auto loaded = Load(); !loaded) PICKET_LOG(env_, kError, "write sessions: {}", loaded.error().ToString());
  });
}

Status SessionTable::Load() {
  sessions_.clear();
  const Mono now = env_.Now();
  std::string after;
  for (;;) {
    auto rows = store_.Scan(keys::kSessions, after, kLoadPage);
    if (!rows) return Fail(rows.error());
    for (const MetaRow& row : *rows) {
      record::Session r;
      const InodeId inode(keys::LastNumber(row.key));
      if (!r.ParseFromString(row.value)) {
        return Fail(Code::kCorrupt, "the write session of inode " + ToString(inode) + " does not parse");
      }
      sessions_[inode] = Session{inode, Generation(r.generation()), ClientId(r.holder()), Millis(r.soft_limit_ms()),
                                 Millis(r.hard_limit_ms()), now};
    }
    if (rows->size() < kLoadPage) return {};
    after = rows->back().key;
  }
}

std::optional<SessionTable::Session> SessionTable::Find(InodeId inode) const {
  auto it = sessions_.find(inode);
  if (it == sessions_.end()) return std::nullopt;
  return it->second;
}

SessionTable::Session SessionTable::Open(Batch* batch, InodeId inode, ClientId holder) {
  PICKET_CHECK(!sessions_.contains(inode));
  PICKET_CHECK(last_generation_ < std::numeric_limits<uint32_t>::max());  // the next start has a new epoch
  const Generation generation(store_.epoch().number, ++last_generation_);
  record::Session r;
  r.set_generation(generation.value);
  r.set_holder(holder.value);
  r.set_soft_limit_ms(options_.soft_limit_ms);
  r.set_hard_limit_ms(options_.hard_limit_ms);
  batch->Put(keys::Session(inode), r);
  const Session session{inode, generation, holder, Millis(options_.soft_limit_ms), Millis(options_.hard_limit_ms),
                        env_.Now()};
  sessions_[inode] = session;
  ProtocolEvent event;
  event.kind = ProtocolEvent::Kind::kGenerationMinted;
  event.generation = generation;
  event.value = inode.value;
  env_.Trace(event);
  return session;
}

void SessionTable::Drop(Batch* batch, InodeId inode) {
  if (sessions_.erase(inode) > 0) batch->Remove(keys::Session(inode));
}

Status SessionTable::CheckWriter(InodeId inode, Generation generation, ClientId holder) const {
  auto row = store_.GetAs<record::Inode>(keys::Inode(inode));
  if (!row) return Fail(row.error());
  if (!*row) {
    return Fail(Error(Code::kNotFound, fmt::format("file {} does not exist any more", ToString(inode)))
                    .WithTokens(generation.value, 0)
                    .WithNextStep("the file was deleted or abandoned: stop writing"));
  }
  auto it = sessions_.find(inode);
  const std::string owner = it == sessions_.end() ? std::string() : ToString(it->second.holder);
  const Generation mark((*row)->generation());
  if (generation < mark && !PICKET_MUTANT(fence_generation_master)) {
    return Fail(Error(Code::kStaleGeneration,
                      fmt::format("the write session {} of file {} was fenced by session {}", generation.ToString(),
                                  ToString(inode), mark.ToString()))
                    .WithTokens(generation.value, mark.value)
                    .WithHolder(owner)
                    .WithNextStep("another writer took over: open the file again"));
  }
  const auto not_holder = [&](std::string message, std::string next_step) {
    return Fail(Error(Code::kNotLeaseHolder, std::move(message))
                    .WithTokens(generation.value, mark.value)
                    .WithHolder(owner)
                    .WithNextStep(std::move(next_step)));
  };
  if (it == sessions_.end()) {
    return not_holder(fmt::format("the write session {} of file {} is over: the file was closed or deleted",
                                  generation.ToString(), ToString(inode)),
                      "open the file again to write");
  }
  if (generation != it->second.generation && !PICKET_MUTANT(fence_generation_master)) {
    return not_holder(fmt::format("file {} has no write session {}; session {} is open", ToString(inode),
                                  generation.ToString(), it->second.generation.ToString()),
                      "open the file again to write");
  }
  if (holder != it->second.holder && !PICKET_MUTANT(session_holder)) {
    return not_holder(fmt::format("the write session {} of file {} belongs to client {}, not to client {}",
                                  generation.ToString(), ToString(inode), owner, ToString(holder)),
                      "only its holder writes, closes or abandons the file");
  }
  return {};
}

bool SessionTable::Renew(InodeId inode, Generation generation, ClientId holder) {
  auto it = sessions_.find(inode);
  if (it == sessions_.end() || it->second.generation != generation || it->second.holder != holder) return false;
  it->second.renewed = env_.Now();
  return true;
}

std::vector<SessionTable::Session> SessionTable::Expired(Limit which, size_t limit) const {
  const Mono now = env_.Now();
  std::vector<Session> expired;
  for (const auto& [inode, session] : sessions_) {
    const Nanos allowed = which == Limit::kSoft ? session.soft_limit : session.hard_limit;
    if (now - session.renewed >= allowed) expired.push_back(session);
  }
  std::ranges::sort(expired, [](const Session& a, const Session& b) {
    return std::pair(a.renewed, a.inode) < std::pair(b.renewed, b.inode);
  });
  if (expired.size() > limit) expired.resize(limit);
  return expired;
}

}  // namespace picket
