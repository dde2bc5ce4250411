#include "master/grant.h"

#include <algorithm>
#include <tuple>

#include "common/base/mutation.h"
#include "common/obs/log.h"
#include "master/replica_judge.h"

namespace picket {
namespace {

using State = MemberAnswer::State;

// A caller is answered that long before its deadline, so that it hears the reason.
constexpr Nanos kAnswerMargin = 500ms;
constexpr Nanos kReportPoll = 100ms;

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

std::vector<ServerId> Granter::Work::LeftOut() const {
  std::vector<ServerId> out = ask.failed;
  for (const auto& [server, error] : failures) {
    if (!Contains(out, server)) out.push_back(server);
  }
  return out;
}

Task<Result<proto::WriteGrant>> Granter::Grant(Ask ask) {
  const auto work = std::make_shared<Work>(Work{std::move(ask), {}});
  const std::string chunk = ToString(work->ask.writer.chunk);
  PICKET_LOG(env_, kInfo, "chunk {}: a grant for {}, failed: {} ({})", chunk, ToString(work->ask.writer.holder),
             work->ask.failed.empty() ? "none" : Names(work->ask.failed), work->ask.reason);
  if (work->ask.reopen) co_await AwaitReports(work);
  for (int i = 0; i < kMaxRounds; ++i) {
    // A number is never used again: what failed is void, the next round has a new one.
    auto outcome = co_await RunRound(work);
    if (!outcome) co_return Fail(outcome.error());
    if (*outcome) co_return std::move(**outcome);
    if (env_.Now() + kAnswerMargin >= work->ask.deadline) break;
  }
  Error error(Code::kUnavailable, "chunk " + chunk + ": its servers keep failing during the grant: " +
                                      Names(work->LeftOut()));
  error.retry_after_ms = 1000;
  co_return Fail(std::move(error));
}

Task<> Granter::AwaitReports(std::shared_ptr<Work> work) {
  const Mono limit = std::min(servers_.complete_by(), work->ask.deadline - kAnswerMargin);
  while (env_.Now() < limit) {
    auto record = attempts_.AdmitReopen(work->ask.writer);
    if (!record || !record->sealed()) co_return;
    const auto known = static_cast<uint32_t>(Participants(work->ask.writer.chunk, *record).size());
    if (known >= record->replication()) co_return;
    co_await env_.Sleep(std::min(limit - env_.Now(), kReportPoll));
  }
}

std::vector<record::Member> Granter::Participants(ChunkId chunk, const record::Chunk& record) const {
  std::vector<record::Member> out;
  if (!record.sealed()) {
    out.assign(record.members().begin(), record.members().end());
    if (!PICKET_MUTANT(grant_members_only)) return out;
  }
  for (const Replica& replica : locations_.Of(chunk)) {
    const Server* server = servers_.Find(replica.server);
    if (server == nullptr || std::ranges::find(out, replica.server.value, &record::Member::server) != out.end()) continue;
    const Worth worth = JudgeReplica(&record, store_.activations(), FactsOf(replica, server->incarnation));
    const bool counts = worth == Worth::kCounted || worth == Worth::kBetween || !record.sealed();
    if (!counts && !PICKET_MUTANT(reopen_counted_only)) continue;
    record::Member& member = out.emplace_back();
    member.set_server(replica.server.value);
    member.set_incarnation(server->incarnation.value);
  }
  return out;
}

Task<Result<Granter::Outcome>> Granter::RunRound(std::shared_ptr<Work> work) {
  auto attempt = co_await attempts_.Begin(work->ask.writer, work->ask.reopen);
  if (!attempt) co_return Fail(attempt.error());
  auto record = attempts_.Check(*attempt);
  if (!record) co_return Fail(record.error());

  struct Ender {  // late answers find nobody
    std::shared_ptr<Round> round;
    ~Ender() { round->over = true; }
  };
  const Ender ender{promises_.Open(*attempt, Version(record->current()),
                                   Participants(work->ask.writer.chunk, *record), work->LeftOut())};
  const std::shared_ptr<Round>& round = ender.round;
  promises_.Ask(round, false);
  auto plan = co_await AwaitPlan(work, round);
  if (!plan) co_return Fail(plan.error());
  if (plan->step == GrantPlan::Step::kIntegrity) {
    auto stopped = co_await Stop(*attempt, *plan);
    co_return Fail(stopped.error());
  }
  if (plan->step == GrantPlan::Step::kNotEnough) co_return Fail(NotEnough(*work, *round, *plan));

  auto cleared = co_await AwaitOldLease(work, round);
  if (!cleared) co_return Fail(cleared.error());
  if (!*cleared) co_return Outcome();

  Formed formed;
  formed.attempt = *attempt;
  formed.length = plan->length;
  if (plan->step == GrantPlan::Step::kCommit) {
    for (size_t i : plan->set) {
      const Seat& seat = round->seats[i];
      formed.set.push_back(Agreed{seat.answer.server, seat.incarnation, seat.instance, seat.received, true});
    }
  } else {
    auto reconciled = co_await reconciler_.MakeEqual(round, std::move(*plan), work->LeftOut(), &work->failures);
    if (!reconciled) co_return Fail(reconciled.error());
    formed = std::move(*reconciled);
    if (formed.set.empty()) co_return Outcome();
  }

  const Attempt committed = formed.attempt;
  const std::vector<Agreed> set = formed.set;
  auto grant = co_await Commit(work, std::move(formed));
  if (!grant) co_return Fail(grant.error());
  const ServerId primary(grant->chain(0).server());
  const Mono answered = std::ranges::find(set, primary, &Agreed::server)->received;
  auto given = co_await giver_.Give(committed, *grant, answered);
  if (!given) {
    auto still = attempts_.Check(committed);
    if (!still) co_return Fail(still.error());
    PICKET_LOG(env_, kWarning, "chunk {}: primary {} did not take its lease: {}", ToString(work->ask.writer.chunk),
               ToString(primary), given.error().ToString());
    co_return Outcome();  // asked again under a new number, the same server too
  }
  co_return Outcome(std::move(*grant));
}

Task<Result<GrantPlan>> Granter::AwaitPlan(std::shared_ptr<Work> work, std::shared_ptr<Round> round) {
  const Mono begin = env_.Now();
  const Mono limit = work->ask.deadline - kAnswerMargin;
  for (;;) {
    auto record = attempts_.Check(round->attempt);
    if (!record) co_return Fail(record.error());
    GrantSituation situation;
    situation.min_replicas = std::min(options_.min_write_replicas, record->replication());
    situation.writer_acked = work->ask.acked_length;
    situation.sealed_length = record->length();
    if (record->sealed()) situation.sealed_digest = record->digest();
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
    const Mono patient_until = begin + (answered >= situation.min_replicas ? options_.linger : options_.patience);
    situation.patient = env_.Now() < std::min(patient_until, limit);
    situation.joiner_candidates =
        reconciler_.JoinerCandidates(*round, work->LeftOut(), situation.min_replicas, record->chunk_size()).size();
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

Task<Result<bool>> Granter::AwaitOldLease(std::shared_ptr<Work> work, std::shared_ptr<Round> round) {
  const Mono begin = env_.Now();
  const ChunkId chunk = work->ask.writer.chunk;
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
    const Mono limit = work->ask.deadline - kAnswerMargin;
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

Task<Result<proto::WriteGrant>> Granter::Commit(std::shared_ptr<Work> work, Formed formed) {
  const ChunkWriter& writer = work->ask.writer;
  // From the check to Stage without a wait: this is "inside the batch" (F8).
  auto record = attempts_.Check(formed.attempt);
  if (!record) co_return Fail(record.error());
  // The primary first: the present one where it can stay, else one that kept running.
  const ServerId before(record->members().empty() ? 0 : record->members(0).server());
  const auto rank = [&](const Agreed& a) { return std::tuple(!a.clean, a.server != before, a.server); };
  std::ranges::sort(formed.set, {}, rank);
  record->set_current(formed.attempt.to.value);
  record->set_sealed(false);  // its length stays: never less than what was sealed
  record->clear_digest();
  record->clear_members();
  for (const Agreed& a : formed.set) {
    record::Member* member = record->add_members();
    member->set_server(a.server.value);
    member->set_incarnation(a.incarnation.value);
  }
  proto::WriteGrant grant = giver_.ToGrant(writer, *record, formed.length);
  grant.set_revision(store_.next_revision());
  Batch batch;
  chunks_.Put(&batch, writer.chunk, *record);
  if (work->ask.remember) work->ask.remember(&batch, grant);
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  TraceChunk(env_, ProtocolEvent::Kind::kVersionCommitted, writer.chunk, *record, formed.set.size());
  leases_.Void(writer.chunk);  // of the version before: its holder was seen off

  for (const Agreed& a : formed.set) {
    const Server* server = servers_.Find(a.server);
    if (server == nullptr || server->incarnation != a.incarnation) continue;
    Replica replica;
    replica.server = a.server;
    replica.session = server->session;
    replica.version = formed.attempt.to;
    replica.generation = writer.generation;
    replica.state = proto::OPEN;
    replica.length = formed.length;
    replica.instance = a.instance;
    locations_.Update(writer.chunk, replica);
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

Error Granter::NotEnough(const Work& work, const Round& round, const GrantPlan& plan) const {
  std::string missing;
  const auto name = [&missing](ServerId server, const std::string& reason) {
    missing += (missing.empty() ? "" : ", ") + ToString(server) + " (" + reason + ")";
  };
  const auto text = [](const Error& error) { return std::string(CodeName(error.code)) + ": " + error.message; };
  Failures failures = work.failures;
  for (size_t i = 0; i < round.seats.size(); ++i) {
    const Seat& seat = round.seats[i];
    const auto before = failures.extract(seat.answer.server);
    if (std::ranges::find(plan.set, i) != plan.set.end()) continue;
    name(seat.answer.server, seat.answer.state == State::kAnswered ? "its bytes are not those that were sealed"
                             : !seat.error.message.empty()         ? text(seat.error)
                             : !before.empty()                     ? text(before.mapped())
                                                                   : "named failed by the writer");
  }
  for (const auto& [server, error] : failures) name(server, text(error));
  auto record = chunks_.Get(round.attempt.writer.chunk);
  const std::string full = record && *record ? DescribeUnfit((*record)->chunk_size(), servers_.Candidates()) : "";
  Error error(Code::kNotEnoughReplicas, "chunk " + ToString(round.attempt.writer.chunk) + ": " + plan.why +
                                            (missing.empty() ? "" : "; missing: " + missing) +
                                            (full.empty() ? "" : "; no room: " + full));
  error.retry_after_ms = 2000;
  return std::move(error).WithNextStep("start more chunkservers ('picket admin report' shows which live), then go on");
}

}  // namespace picket
