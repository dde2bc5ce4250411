#include "master/grant.h"

#include <algorithm>
#include <tuple>

#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket {
namespace {

using State = MemberAnswer::State;

// A caller is answered that long before its deadline, so that it hears the reason.
constexpr Nanos kAnswerMargin = 500ms;

bool Contains(const std::vector<ServerId>& servers, ServerId id) { return std::ranges::find(servers, id) != servers.end(); }

std::string Names(const std::vector<ServerId>& servers) {
  std::string out;
  for (ServerId id : servers) out += (out.empty() ? "" : ", ") + ToString(id);
  return out;
}

}  // namespace

Granter::Granter(Env& env, MetaStore& store, ChunkTable& chunks, ServerTable& servers, LocationMap& locations,
                 LeaseTable& leases, Orders& orders, Attempts& attempts, LeaseGiver& giver, Options options)
    : env_(env),
      store_(store),
      chunks_(chunks),
      servers_(servers),
      locations_(locations),
      leases_(leases),
      orders_(orders),
      attempts_(attempts),
      giver_(giver),
      options_(options),
      promises_(env, servers, orders, attempts, options.promises),
      reconciler_(env, servers, orders, attempts, options.promises.order_timeout) {}

Task<Result<proto::WriteGrant>> Granter::Grant(Ask asked) {
  const auto ask = std::make_shared<const Ask>(std::move(asked));
  PICKET_LOG(env_, kInfo, "chunk {}: a grant for {}, failed: {} ({})", ToString(ask->writer.chunk),
             ToString(ask->writer.holder), ask->failed.empty() ? "none" : Names(ask->failed), ask->reason);
  std::vector<ServerId> left_out = ask->failed;
  for (int i = 0; i < kMaxRounds; ++i) {
    auto outcome = co_await RunRound(ask, left_out);
    if (!outcome) co_return Fail(outcome.error());
    if (outcome->grant) co_return std::move(*outcome->grant);
    // A number is never used again: what failed is void, the next round has a new one.
    for (ServerId id : outcome->failed) {
      if (!Contains(left_out, id)) left_out.push_back(id);
    }
    if (env_.Now() + kAnswerMargin >= ask->deadline) break;
  }
  Error error(Code::kUnavailable, "chunk " + ToString(ask->writer.chunk) + ": its servers keep failing during the grant: " +
                                      Names(left_out));
  error.retry_after_ms = 1000;
  co_return Fail(std::move(error));
}

Task<Result<Granter::Outcome>> Granter::RunRound(std::shared_ptr<const Ask> ask, std::vector<ServerId> left_out) {
  auto attempt = co_await attempts_.Begin(ask->writer);
  if (!attempt) co_return Fail(attempt.error());
  auto record = attempts_.Check(*attempt);
  if (!record) co_return Fail(record.error());
  const size_t min_replicas = std::min(options_.min_write_replicas, record->replication());

  struct Ender {  // late answers find nobody
    std::shared_ptr<Round> round;
    ~Ender() { round->over = true; }
  };
  const Ender ender{promises_.Open(*attempt, *record, left_out)};
  const std::shared_ptr<Round>& round = ender.round;
  promises_.Ask(round, false);
  auto plan = co_await AwaitPlan(ask, round, min_replicas, left_out);
  if (!plan) co_return Fail(plan.error());
  if (plan->step == GrantPlan::Step::kIntegrity) {
    auto stopped = co_await Stop(*attempt, *plan);
    co_return Fail(stopped.error());
  }
  if (plan->step == GrantPlan::Step::kNotEnough) co_return Fail(NotEnough(*round, plan->why));

  auto cleared = co_await AwaitOldLease(ask, round);
  if (!cleared) co_return Fail(cleared.error());
  Outcome outcome;
  if (!*cleared) co_return outcome;

  Formed formed;
  formed.attempt = *attempt;
  formed.length = plan->length;
  if (plan->step == GrantPlan::Step::kCommit) {
    for (size_t i : plan->set) {
      const Seat& seat = round->seats[i];
      formed.set.push_back(Agreed{seat.answer.server, seat.incarnation, seat.instance, seat.received, true});
    }
  } else {
    auto reconciled = co_await reconciler_.MakeEqual(round, std::move(*plan), left_out, &outcome.failed);
    if (!reconciled) co_return Fail(reconciled.error());
    formed = std::move(*reconciled);
    if (formed.set.empty()) co_return outcome;
  }

  const Attempt committed = formed.attempt;
  const std::vector<Agreed> set = formed.set;
  auto grant = co_await Commit(ask, std::move(formed));
  if (!grant) co_return Fail(grant.error());
  const ServerId primary(grant->chain(0).server());
  const Mono answered = std::ranges::find(set, primary, &Agreed::server)->received;
  auto given = co_await giver_.Give(committed, *grant, answered);
  if (!given) {
    auto still = attempts_.Check(committed);
    if (!still) co_return Fail(still.error());
    PICKET_LOG(env_, kWarning, "chunk {}: primary {} did not take its lease: {}", ToString(ask->writer.chunk),
               ToString(primary), given.error().ToString());
    co_return outcome;  // asked again under a new number, the same server too
  }
  outcome.grant = std::make_shared<proto::WriteGrant>(std::move(*grant));
  co_return outcome;
}

Task<Result<GrantPlan>> Granter::AwaitPlan(std::shared_ptr<const Ask> ask, std::shared_ptr<Round> round,
                                           size_t min_replicas, std::vector<ServerId> left_out) {
  const Mono begin = env_.Now();
  const Mono limit = ask->deadline - kAnswerMargin;
  for (;;) {
    auto record = attempts_.Check(round->attempt);
    if (!record) co_return Fail(record.error());
    GrantSituation situation;
    situation.min_replicas = min_replicas;
    situation.writer_acked = ask->acked_length;
    size_t answered = 0;
    bool any_clean = false;
    bool any_waiting = false;
    for (const Seat& seat : round->seats) {
      situation.members.push_back(seat.answer);
      any_waiting = any_waiting || seat.answer.state == State::kWaiting;
      if (seat.answer.state != State::kAnswered) continue;
      ++answered;
      any_clean = any_clean || seat.answer.clean;
    }
    const Mono patient_until = begin + (answered >= min_replicas ? options_.linger : options_.patience);
    situation.patient = env_.Now() < std::min(patient_until, limit);
    situation.joiner_candidates = reconciler_.JoinerCandidates(*round, left_out, min_replicas, record->chunk_size()).size();
    GrantPlan plan = PlanGrant(situation);
    if (plan.step != GrantPlan::Step::kWait) co_return plan;
    if (!any_clean && (!any_waiting || env_.Now() >= begin + options_.linger)) {
      // Whoever the writer could not reach may be the one that still has everything (F4).
      promises_.Ask(round, true);
    }
    if (env_.Now() >= limit) {
      co_return Fail(WaitingFor(round->attempt, plan.waiting_for, plan.why, 2s));
    }
    const Mono next = any_clean ? std::min(patient_until, limit) : std::min(limit, env_.Now() + options_.linger);
    co_await round->changed.WaitFor(std::max(next - env_.Now(), Nanos(1ms)));
  }
}

Task<bool> Granter::Revoke(ChunkId chunk, Version version, ServerId server, Incarnation incarnation) {
  proto::RevokeLeaseRequest request;
  request.set_chunk(chunk.value);
  request.set_version(version.value);
  auto response = co_await orders_.Send<proto::RevokeLeaseResponse>(proto::REVOKE_LEASE, server, incarnation,
                                                                    orders_.NewAttempt(), std::move(request), 2s);
  co_return response.has_value();
}

Task<Result<bool>> Granter::AwaitOldLease(std::shared_ptr<const Ask> ask, std::shared_ptr<Round> round) {
  const Mono begin = env_.Now();
  const ChunkId chunk = ask->writer.chunk;
  std::vector<ServerId> revoked;
  for (;;) {
    auto record = attempts_.Check(round->attempt);
    if (!record) co_return Fail(record.error());
    // Who may still serve as the primary of the version before, and until when.
    std::vector<record::Member> holders;
    Mono until = env_.Now();
    if (auto lease = leases_.Find(chunk)) {
      record::Member& holder = holders.emplace_back();
      holder.set_server(lease->primary.value);
      holder.set_incarnation(lease->incarnation.value);
      until = lease->end;
    } else if (auto unknown = leases_.UnknownUntil(chunk, Version(record->current()), store_.epoch().number)) {
      holders.assign(record->members().begin(), record->members().end());
      until = *unknown;
    }
    std::erase_if(holders, [&](const record::Member& holder) {
      const ServerId id(holder.server());
      const Server* server = servers_.Find(id);
      const bool answered = std::ranges::any_of(round->seats, [&](const Seat& seat) {
        return seat.answer.server == id && seat.answer.state == State::kAnswered;
      });
      return answered || Contains(revoked, id) ||
             (server != nullptr && server->incarnation.value != holder.incarnation());
    });
    if (holders.empty() || PICKET_MUTANT(lease_wait)) {
      // What was promised long ago would give a primary a lease that is nearly over.
      co_return env_.Now() - begin < leases_.period() / 4;
    }
    const size_t revoked_before = revoked.size();
    for (const record::Member& holder : holders) {
      PICKET_CO_TRY(attempts_.Check(round->attempt));
      const bool released = co_await Revoke(chunk, Version(record->current()), ServerId(holder.server()),
                                            Incarnation(holder.incarnation()));
      if (released) revoked.push_back(ServerId(holder.server()));
    }
    if (revoked.size() > revoked_before) continue;
    const Mono now = env_.Now();
    const Mono limit = ask->deadline - kAnswerMargin;
    if (now >= limit) {
      std::vector<ServerId> names;
      for (const record::Member& holder : holders) names.push_back(ServerId(holder.server()));
      co_return Fail(WaitingFor(round->attempt, names, "its primary lease may still run",
                                std::clamp<Nanos>(until - now, 100ms, 5s)));
    }
    // Whoever registers or answers late may end the wait.
    co_await servers_.changed().WaitFor(std::clamp<Nanos>(std::min(until, limit) - now, 1ms, 2s));
  }
}

Task<Result<proto::WriteGrant>> Granter::Commit(std::shared_ptr<const Ask> ask, Formed formed) {
  // From the check to Stage without a wait: this is "inside the batch" (F8).
  auto record = attempts_.Check(formed.attempt);
  if (!record) co_return Fail(record.error());
  // The primary first: the present one where it can stay, else one that kept running.
  const ServerId before(record->members().empty() ? 0 : record->members(0).server());
  const auto rank = [&](const Agreed& a) { return std::tuple(!a.clean, a.server != before, a.server); };
  std::ranges::sort(formed.set, {}, rank);
  record->set_current(formed.attempt.to.value);
  record->clear_members();
  for (const Agreed& a : formed.set) {
    record::Member* member = record->add_members();
    member->set_server(a.server.value);
    member->set_incarnation(a.incarnation.value);
  }
  proto::WriteGrant grant = giver_.ToGrant(ask->writer, *record, formed.length);
  grant.set_revision(store_.next_revision());
  Batch batch;
  chunks_.Put(&batch, ask->writer.chunk, *record);
  if (ask->remember) ask->remember(&batch, grant);
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  TraceChunk(env_, ProtocolEvent::Kind::kVersionCommitted, ask->writer.chunk, *record, formed.set.size());
  leases_.Void(ask->writer.chunk);  // of the version before: its holder was seen off

  for (const Agreed& a : formed.set) {
    const Server* server = servers_.Find(a.server);
    if (server == nullptr || server->incarnation != a.incarnation) continue;
    Replica replica;
    replica.server = a.server;
    replica.session = server->session;
    replica.version = formed.attempt.to;
    replica.generation = ask->writer.generation;
    replica.state = proto::OPEN;
    replica.length = formed.length;
    replica.instance = a.instance;
    locations_.Update(ask->writer.chunk, replica);
  }
  co_return grant;
}

Task<Status> Granter::Stop(Attempt attempt, GrantPlan plan) {
  const std::string name = "chunk " + ToString(attempt.writer.chunk);
  if (plan.contradiction) {
    auto record = attempts_.Check(attempt);
    if (!record) co_return Fail(record.error());
    record->set_integrity(true);
    Batch batch;
    chunks_.Put(&batch, attempt.writer.chunk, *record);
    auto committed = co_await store_.Commit(std::move(batch));
    if (!committed) co_return Fail(committed.error());
    PICKET_LOG(env_, kError, "INTEGRITY: {} is stopped: {}", name, plan.why);
  }
  co_return Fail(Error(Code::kIntegrity, name + ": " + plan.why)
                     .WithNextStep("keep every replica and inspect them with 'picket chunk show'; write the file anew"));
}

Error Granter::WaitingFor(const Attempt& attempt, const std::vector<ServerId>& servers, const std::string& why,
                          Nanos retry_after) const {
  Error error(Code::kWaitingFor, "chunk " + ToString(attempt.writer.chunk) + " waits for " + Names(servers) + ": " + why);
  if (!servers.empty()) error.server = servers[0].value;
  error.retry_after_ms = static_cast<uint32_t>(retry_after / 1ms);
  return error;
}

Error Granter::NotEnough(const Round& round, const std::string& why) const {
  std::string members;
  for (const Seat& seat : round.seats) {
    if (seat.answer.state == State::kAnswered) continue;
    members += (members.empty() ? "" : ", ") + ToString(seat.answer.server) + " (" +
               (seat.error.message.empty() ? "named failed by the writer" : seat.error.message) + ")";
  }
  Error error(Code::kNotEnoughReplicas,
              "chunk " + ToString(round.attempt.writer.chunk) + ": " + why + (members.empty() ? "" : "; missing: " + members));
  error.retry_after_ms = 2000;
  return std::move(error).WithNextStep("start more chunkservers ('picket admin report' shows which live), then go on");
}

}  // namespace picket
