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

uint32_t InMillis(Nanos n) { return static_cast<uint32_t>(n / 1ms); }

SessionTable::Session FromRecord(InodeId inode, const record::Session& r, Mono now) {
  SessionTable::Session s;
  s.inode = inode;
  s.generation = Generation(r.generation());
  s.mode = r.mode() == 0 ? proto::EXCLUSIVE : static_cast<proto::SessionMode>(r.mode());
  s.holders.push_back({ClientId(r.holder()), r.writer_id(), now});
  for (const record::Holder& other : r.others()) s.holders.push_back({ClientId(other.client()), other.writer_id(), now});
  s.soft_limit = Millis(r.soft_limit_ms());
  s.hard_limit = Millis(r.hard_limit_ms());
  s.lock = r.lock();
  s.lock_delay = Millis(r.lock_delay_ms());
  s.open_chunk = ChunkId(r.open_chunk());
  s.recovering = r.recovering();
  s.stalled_holder = ClientId(r.stalled_holder());
  s.reason = r.reason();
  s.created = r.created();
  return s;
}

record::Session ToRecord(const SessionTable::Session& s) {
  record::Session r;
  r.set_generation(s.generation.value);
  r.set_mode(s.mode);
  r.set_holder(s.holder().value);
  r.set_writer_id(s.holders[0].writer_id);
  for (size_t i = 1; i < s.holders.size(); ++i) {
    record::Holder* other = r.add_others();
    other->set_client(s.holders[i].client.value);
    other->set_writer_id(s.holders[i].writer_id);
  }
  r.set_soft_limit_ms(InMillis(s.soft_limit));
  r.set_hard_limit_ms(InMillis(s.hard_limit));
  r.set_lock(s.lock);
  r.set_lock_delay_ms(InMillis(s.lock_delay));
  r.set_open_chunk(s.open_chunk.value);
  r.set_recovering(s.recovering);
  r.set_stalled_holder(s.stalled_holder.value);
  r.set_reason(s.reason);
  r.set_created(s.created);
  return r;
}

}  // namespace

SessionTable::SessionTable(Env& env, MetaStore& store, Options options)
    : env_(env), store_(store), options_(options) {
  store_.OnFailure([this] {
    if (auto loaded = Load(); !loaded) PICKET_LOG(env_, kError, "write sessions: {}", loaded.error().ToString());
  });
}

Status SessionTable::Load() {
  sessions_.clear();
  of_writer_.clear();
  delays_.clear();
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
      Keep(FromRecord(inode, r, now));
    }
    if (rows->size() < kLoadPage) break;
    after = rows->back().key;
  }
  after.clear();
  for (;;) {
    auto rows = store_.Scan(keys::kLockDelays, after, kLoadPage);
    if (!rows) return Fail(rows.error());
    for (const MetaRow& row : *rows) {
      record::LockDelay r;
      const InodeId inode(keys::LastNumber(row.key));
      if (!r.ParseFromString(row.value)) {
        return Fail(Code::kCorrupt, "the lock-delay of inode " + ToString(inode) + " does not parse");
      }
      delays_[inode] = Delayed{Millis(r.delay_ms()), now};
    }
    if (rows->size() < kLoadPage) return {};
    after = rows->back().key;
  }
}

Mono SessionTable::Session::renewed() const {
  Mono newest;
  for (const Holder& holder : holders) newest = std::max(newest, holder.renewed);
  return newest;
}

bool SessionTable::Session::Holds(ClientId client) const {
  return std::ranges::find(holders, client, &Holder::client) != holders.end();
}

bool SessionTable::Session::IsOf(std::string_view writer_id) const {
  return !writer_id.empty() && !holders.empty() &&
         std::ranges::all_of(holders, [&](const Holder& h) { return h.writer_id == writer_id; });
}

std::optional<SessionTable::Session> SessionTable::Find(InodeId inode) const {
  auto it = sessions_.find(inode);
  if (it == sessions_.end()) return std::nullopt;
  return it->second;
}

std::vector<SessionTable::Session> SessionTable::List(InodeId after, size_t limit) const {
  std::vector<Session> out;
  for (auto it = sessions_.upper_bound(after); it != sessions_.end() && out.size() < limit; ++it) out.push_back(it->second);
  return out;
}

Generation SessionTable::NewGeneration(InodeId inode) {
  PICKET_CHECK(last_generation_ < std::numeric_limits<uint32_t>::max());  // the next start has a new epoch
  const Generation generation(store_.epoch().number, ++last_generation_);
  ProtocolEvent event;
  event.kind = ProtocolEvent::Kind::kGenerationMinted;
  event.generation = generation;
  event.value = inode.value;
  env_.Trace(event);
  return generation;
}

void SessionTable::Put(Batch* batch, const Session& session) {
  batch->Put(keys::Session(session.inode), ToRecord(session));
  Keep(session);
}

void SessionTable::Keep(const Session& session) {
  Erase(session.inode);
  if (session.IsOf(session.holders[0].writer_id)) of_writer_[session.holders[0].writer_id].insert(session.inode);
  sessions_[session.inode] = session;
}

void SessionTable::Erase(InodeId inode) {
  auto it = sessions_.find(inode);
  if (it == sessions_.end()) return;
  if (auto of = of_writer_.find(it->second.holders[0].writer_id); of != of_writer_.end()) {
    of->second.erase(inode);
    if (of->second.empty()) of_writer_.erase(of);
  }
  sessions_.erase(it);
}

std::vector<SessionTable::Session> SessionTable::OfWriter(std::string_view writer_id) const {
  std::vector<Session> out;
  auto of = of_writer_.find(writer_id);
  if (of == of_writer_.end()) return out;
  for (InodeId inode : of->second) out.push_back(sessions_.at(inode));
  return out;
}

// Of a limit that is not given: the table's, fitted to the one that is.
proto::SessionLimits SessionTable::LimitsOf(const proto::SessionLimits& asked) const {
  proto::SessionLimits limits = asked;
  if (asked.soft_ms() == 0) {
    limits.set_soft_ms(asked.hard_ms() == 0 ? options_.soft_limit_ms : std::min(options_.soft_limit_ms, asked.hard_ms()));
  }
  if (asked.hard_ms() == 0) limits.set_hard_ms(std::max(options_.hard_limit_ms, limits.soft_ms()));
  return limits;
}

Status SessionTable::CheckSpec(const Spec& spec) const {
  if (spec.holder == ClientId() || spec.holder == kRecoveryHolder) {
    return Fail(Code::kInvalidArgument, fmt::format("client {} cannot hold a write session", ToString(spec.holder)));
  }
  if (spec.writer_id.size() > kMaxWriterIdBytes) {
    return Fail(Code::kInvalidArgument, fmt::format("the writer id has {} bytes; the limit is {}", spec.writer_id.size(),
                                                    kMaxWriterIdBytes));
  }
  if (spec.lock_delay_ms > kMaxLockDelayMs) {
    return Fail(Code::kInvalidArgument,
                fmt::format("a lock-delay of {} ms is above {} ms", spec.lock_delay_ms, kMaxLockDelayMs));
  }
  const proto::SessionLimits limits = LimitsOf(spec.limits);
  if (limits.soft_ms() >= kMinLimitMs && limits.soft_ms() <= limits.hard_ms() && limits.hard_ms() <= kMaxLimitMs) return {};
  return Fail(Error(Code::kInvalidArgument,
                    fmt::format("a write session cannot have a soft limit of {} ms and a hard limit of {} ms",
                                limits.soft_ms(), limits.hard_ms()))
                  .WithNextStep(fmt::format("choose {} ms <= soft limit <= hard limit <= {} ms", kMinLimitMs, kMaxLimitMs)));
}

SessionTable::Session SessionTable::Open(Batch* batch, const Spec& spec) {
  PICKET_CHECK(!sessions_.contains(spec.inode));
  const proto::SessionLimits limits = LimitsOf(spec.limits);
  Session session;
  session.inode = spec.inode;
  session.generation = NewGeneration(spec.inode);
  session.mode = spec.mode;
  session.holders.push_back(Holder{spec.holder, spec.writer_id, env_.Now()});
  session.soft_limit = Millis(limits.soft_ms());
  session.hard_limit = Millis(limits.hard_ms());
  session.lock = spec.lock;
  session.lock_delay = Millis(spec.lock_delay_ms != 0 ? spec.lock_delay_ms : options_.lock_delay_ms);
  session.created = spec.created;
  if (LockDelayLeft(spec.inode) == Nanos(0) && delays_.erase(spec.inode) > 0) batch->Remove(keys::LockDelay(spec.inode));
  Put(batch, session);
  return session;
}

SessionTable::Session SessionTable::Join(Batch* batch, const Spec& spec) {
  auto it = sessions_.find(spec.inode);
  PICKET_CHECK(it != sessions_.end() && it->second.shared() && it->second.mode == spec.mode && !it->second.recovering);
  Session session = it->second;
  std::erase_if(session.holders, [&](const Holder& h) {
    return h.client == spec.holder || (!spec.writer_id.empty() && h.writer_id == spec.writer_id);
  });
  session.holders.push_back(Holder{spec.holder, spec.writer_id, env_.Now()});
  Put(batch, session);
  return session;
}

bool SessionTable::Leave(Batch* batch, InodeId inode, ClientId holder, bool delayed) {
  auto it = sessions_.find(inode);
  if (it == sessions_.end() || !it->second.Holds(holder)) return false;
  if (it->second.holders.size() == 1) {
    Drop(batch, inode, delayed);
    return true;
  }
  Session session = it->second;
  if (delayed) Delay(batch, session);
  std::erase_if(session.holders, [&](const Holder& h) { return h.client == holder; });
  Put(batch, session);
  return true;
}

SessionTable::Session SessionTable::BeginRecovery(Batch* batch, InodeId inode, std::string reason) {
  auto it = sessions_.find(inode);
  PICKET_CHECK(it != sessions_.end());
  Session session = it->second;
  session.generation = NewGeneration(inode);
  if (!session.recovering) session.stalled_holder = session.holder();
  session.recovering = true;
  session.reason = std::move(reason);
  session.holders.assign(1, Holder{kRecoveryHolder, "", env_.Now()});
  Put(batch, session);
  return session;
}

void SessionTable::SetOpenChunk(Batch* batch, InodeId inode, ChunkId chunk) {
  auto it = sessions_.find(inode);
  PICKET_CHECK(it != sessions_.end());
  if (it->second.open_chunk == chunk) return;
  Session session = it->second;
  session.open_chunk = chunk;
  Put(batch, session);
}

void SessionTable::Drop(Batch* batch, InodeId inode, bool delayed) {
  auto it = sessions_.find(inode);
  if (it == sessions_.end()) return;
  if (delayed) Delay(batch, it->second);
  Erase(inode);
  batch->Remove(keys::Session(inode));
}

void SessionTable::Delay(Batch* batch, const Session& session) {
  if (!session.lock || session.lock_delay <= LockDelayLeft(session.inode)) return;
  record::LockDelay r;
  r.set_delay_ms(InMillis(session.lock_delay));
  r.set_generation(session.generation.value);
  batch->Put(keys::LockDelay(session.inode), r);
  delays_[session.inode] = Delayed{session.lock_delay, env_.Now()};
}

void SessionTable::Forget(Batch* batch, InodeId inode) {
  Drop(batch, inode);
  if (delays_.erase(inode) > 0) batch->Remove(keys::LockDelay(inode));
}

Nanos SessionTable::LockDelayLeft(InodeId inode) const {
  auto it = delays_.find(inode);
  if (it == delays_.end()) return Nanos(0);
  return std::max(Nanos(0), it->second.delay - (env_.Now() - it->second.begun));
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
  const std::string owner = it == sessions_.end() ? std::string() : ToString(it->second.holder());
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
  if (!it->second.Holds(holder) && !PICKET_MUTANT(session_holder)) {
    return not_holder(fmt::format("the write session {} of file {} belongs to client {}, not to client {}",
                                  generation.ToString(), ToString(inode), owner, ToString(holder)),
                      "only its holder writes, closes or abandons the file");
  }
  return {};
}

bool SessionTable::Renew(InodeId inode, Generation generation, ClientId holder) {
  auto it = sessions_.find(inode);
  if (it == sessions_.end() || it->second.generation != generation) return false;
  auto holding = std::ranges::find(it->second.holders, holder, &Holder::client);
  if (holding == it->second.holders.end()) return false;
  holding->renewed = env_.Now();
  return true;
}

std::vector<SessionTable::Session> SessionTable::Expired(Limit which, size_t limit) const {
  const Mono now = env_.Now();
  std::vector<Session> expired;
  for (const auto& [inode, session] : sessions_) {
    const Nanos allowed = which == Limit::kSoft ? session.soft_limit : session.hard_limit;
    if (now - session.renewed() >= allowed) expired.push_back(session);
  }
  std::ranges::sort(expired, [](const Session& a, const Session& b) {
    return std::pair(a.renewed(), a.inode) < std::pair(b.renewed(), b.inode);
  });
  if (expired.size() > limit) expired.resize(limit);
  return expired;
}

}  // namespace picket
