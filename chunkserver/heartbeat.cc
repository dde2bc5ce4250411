#include "chunkserver/heartbeat.h"

#include "common/obs/log.h"
#include "common/rpc/retry.h"

namespace picket::cs {
namespace {

// The master could not be reached, or did not answer: the session may well live on.
bool IsSilence(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kConnectionLost;
}

RetryPolicy Pauses() {
  RetryPolicy policy;
  policy.initial = Heartbeat::kFirstPause;
  policy.max = Heartbeat::kLongestPause;
  return policy;
}

}  // namespace

void Heartbeat::Complain(const Error& e) {
  // A connection's error tells nothing new each time; another code does.
  const std::string reason(CodeName(e.code));
  if (reason == complaint_) return;
  complaint_ = reason;
  const std::string text = "master " + master_.endpoint().ToString() + ": " + e.ToString() +
                           "; what is here is served meanwhile, and trying goes on";
  if (IsSilence(e.code)) {
    env_.Log(LogLevel::kWarning, text);
  } else {
    env_.Log(LogLevel::kError, text);  // an operator has to look
  }
}

Task<> Heartbeat::Run() {
  for (int failures = 0; !stopped_;) {
    auto session = co_await registrar_.Register();
    if (stopped_) co_return;
    if (session) {
      failures = 0;
      complaint_.clear();
      registered_ = true;
      PICKET_LOG(env_, kInfo, "registered with master {} (epoch {})", master_.endpoint().ToString(),
                 state_.mark().epoch.number);
      const Error lost = co_await BeatUntilLost(*session);
      registered_ = false;
      if (stopped_) co_return;
      PICKET_LOG(env_, kInfo, "master {}: {}; registering again", master_.endpoint().ToString(), lost.ToString());
      continue;
    }
    const Error& e = session.error();
    Complain(e);
    const Nanos pause = NextDelay(Pauses(), ++failures, env_.Random(), std::chrono::milliseconds(e.retry_after_ms));
    (void)co_await stopping_.WaitFor(pause);
  }
}

Task<> Heartbeat::AwaitBeat(Nanos pause) {
  const Mono begun = env_.Now();
  while (!stopped_) {
    const Mono due = begun + (soon_ ? std::min(pause, kSoonest) : pause);
    if (env_.Now() >= due) break;
    (void)co_await stopping_.WaitFor(due - env_.Now());
  }
  soon_ = false;
}

Task<Error> Heartbeat::BeatUntilLost(MasterSession session) {
  int silent = 0;
  while (true) {
    // Beats of many servers are spread by what each adds or takes away.
    const auto tenth = static_cast<uint64_t>(session.heartbeat.count()) / 10;
    Nanos pause = session.heartbeat - Nanos(static_cast<int64_t>(env_.Random() % (tenth + 1)));
    if (silent > 0) pause = std::min(pause, NextDelay(Pauses(), silent, env_.Random()));
    co_await AwaitBeat(pause);
    if (stopped_) co_return Error(Code::kUnavailable, "stopping");
    auto answer = co_await BeatOnce(&session);
    if (stopped_) co_return Error(Code::kUnavailable, "stopping");
    if (!answer) {
      if (!IsSilence(answer.error().code)) co_return std::move(answer).error();
      ++silent;
      Complain(answer.error());
      continue;
    }
    if (silent > 0) PICKET_LOG(env_, kInfo, "master {} answers again", master_.endpoint().ToString());
    silent = 0;
    complaint_.clear();
    const Epoch epoch{answer->epoch().number(), answer->epoch().nonce()};
    if (epoch != state_.mark().epoch) {
      co_return Error(Code::kStaleEpoch, "its epoch is " + std::to_string(epoch.number) + ", the one known here is " +
                                             std::to_string(state_.mark().epoch.number));
    }
    state_.SeeRevision(epoch, answer->revision());
    if (answer->has_keys()) {
      if (Status learned = verifier_.Learn(answer->keys()); !learned) co_return learned.error();
    }
    if (answer->report_again()) {
      if (Status reported = co_await registrar_.ReportAll(session.number); !reported) co_return reported.error();
    }
  }
}

Task<Result<proto::HeartbeatResponse>> Heartbeat::BeatOnce(const MasterSession* session) {
  proto::HeartbeatRequest beat;
  beat.set_server(self_.server.value);
  beat.set_session(session->number);
  beat.set_key_ring(verifier_.ring_number());
  *beat.mutable_space() = co_await registrar_.Space();
  const auto extensions = leases_.TakeExtensions();
  for (const auto& e : extensions) *beat.add_extensions() = e;
  ChangeLog::Changes changes = changes_.Take(kMaxChanges);
  for (ChunkId chunk : changes.changed) {
    ReplicaPtr replica = store_.Find(chunk);
    if (!replica || replica->marks().state == ReplicaState::kNone) continue;
    *beat.add_changed() = store_.Report(*replica, self_.incarnation);
  }
  for (ChunkId chunk : changes.removed) beat.add_removed(chunk.value);
  const std::set<ChunkId> tombstones = tombstones_.Offer();
  for (ChunkId chunk : tombstones) {
    ReplicaPtr replica = store_.Find(chunk);
    auto* offered = beat.add_tombstones();
    offered->set_chunk(chunk.value);
    offered->set_version(replica->marks().version.value);
  }
  for (const auto& [name, entry] : store_.quarantine().expired()) {
    if (static_cast<size_t>(beat.expired_quarantine_size()) == kMaxExpired) break;
    auto* offered = beat.add_expired_quarantine();
    offered->set_name(name);
    offered->set_chunk(entry.chunk.value);
    offered->set_version(entry.slot->version.value);
  }
  beat.set_beat(++beats_);
  const Mono sent = env_.Now();
  const Nanos timeout = std::clamp<Nanos>(session->heartbeat, 1s, Registrar::kCallTimeout);
  auto answer = co_await master_.Call<proto::HeartbeatResponse>(proto::HEARTBEAT, beat, timeout);
  if (!answer) {
    leases_.PutBack(extensions);
    changes_.PutBack(std::move(changes));
    co_return answer;
  }
  for (const auto& e : answer->extended()) {
    leases_.Extend(ChunkId(e.chunk()), Version(e.version()), sent, std::chrono::milliseconds(answer->lease_ms()));
  }
  // Only what this beat offered: nothing else was judged.
  for (uint64_t chunk : answer->forget()) {
    if (!tombstones.contains(ChunkId(chunk))) continue;
    if (Status gone = co_await tombstones_.Forget(ChunkId(chunk)); !gone) {
      PICKET_LOG(env_, kWarning, "chunk {}: its tombstone stays: {}", ToHex(chunk), gone.error().ToString());
    }
  }
  for (const std::string& name : answer->purge_quarantine()) {
    if (!store_.quarantine().expired().contains(name)) continue;
    auto removed = co_await store_.Purge(name);
    if (removed) {
      PICKET_LOG(env_, kInfo, "{} left the quarantine: its time is over, and the master agrees", name);
    } else {
      PICKET_LOG(env_, kWarning, "{} stays in quarantine: {}", name, removed.error().ToString());
    }
  }
  co_return answer;
}

}  // namespace picket::cs
