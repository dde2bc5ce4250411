#include "master/grant.h"

#include <algorithm>
#include <tuple>

#include "common/base/mutation.h"
#include "common/env/sync.h"
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
      promises_(env, servers, orders, attempts, options.promises) {}

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
    auto reconciled = co_await Reconcile(round, std::move(*plan), left_out, &outcome.failed);
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
    situation.joiner_candidates = JoinerCandidates(*round, left_out, min_replicas, record->chunk_size()).size();
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

std::vector<ServerId> Granter::JoinerCandidates(const Round& round, const std::vector<ServerId>& left_out, size_t count,
                                                uint64_t chunk_bytes) const {
  PlacementRequest request;
  request.count = count;
  request.chunk_bytes = chunk_bytes;
  request.exclude = left_out;
  request.tie = round.attempt.to.value;
  for (const Seat& seat : round.seats) {
    request.exclude.push_back(seat.answer.server);
    const Server* server = servers_.Find(seat.answer.server);
    if (server != nullptr && seat.answer.state == State::kAnswered) request.racks.push_back(server->rack);
  }
  return Place(request, servers_.Candidates());
}

Task<Result<Granter::Agreed>> Granter::Fill(Attempt attempt, Version from, Agreed member, proto::ReconcileSet set) {
  const uint64_t length = set.length();
  const std::vector<uint32_t> crcs(set.block_crcs().begin(), set.block_crcs().end());
  if (!member.instance) {  // a joiner
    proto::CreateReplicaRequest create;
    create.set_chunk(attempt.writer.chunk.value);
    create.set_inode(attempt.writer.inode.value);
    create.set_version(from.value);
    create.set_generation(attempt.writer.generation.value);
    create.set_joiner(true);
    auto record = attempts_.Check(attempt);
    if (!record) co_return Fail(record.error());
    create.set_chunk_size(record->chunk_size());
    auto created = co_await orders_.Send<proto::CreateReplicaResponse>(
        proto::CREATE_REPLICA, member.server, member.incarnation, attempt.id, std::move(create),
        options_.promises.order_timeout);
    if (!created) co_return Fail(created.error());
    member.instance = InstanceId(created->instance());
    servers_.NoteCreation(member.server);
  }
  PICKET_CO_TRY(attempts_.Check(attempt));
  proto::AdvanceVersionRequest request;
  request.set_chunk(attempt.writer.chunk.value);
  request.set_from(from.value);
  request.set_to(attempt.to.value);
  request.set_generation(attempt.writer.generation.value);
  request.set_reopen(true);
  *request.mutable_set() = std::move(set);
  // Filling may move the whole chunk.
  auto response = co_await orders_.Send<proto::AdvanceVersionResponse>(proto::ADVANCE_VERSION, member.server,
                                                                       member.incarnation, attempt.id,
                                                                       std::move(request),
                                                                       3 * options_.promises.order_timeout);
  if (!response) co_return Fail(response.error());
  const std::vector<uint32_t> got(response->block_crcs().begin(), response->block_crcs().end());
  if (response->version() != attempt.to.value || response->length() != length || got != crcs ||
      response->incarnation() != member.incarnation.value) {
    Error error(Code::kCorrupt, "chunkserver " + ToString(member.server) + " is not equal after the reconciliation");
    error.server = member.server.value;
    co_return Fail(std::move(error));
  }
  member.instance = InstanceId(response->instance());
  member.received = env_.Now();
  co_return member;
}

Task<Result<Granter::Formed>> Granter::Reconcile(std::shared_ptr<Round> round, GrantPlan plan,
                                                 std::vector<ServerId> left_out, std::vector<ServerId>* failed) {
  const Version exactly = round->attempt.to;
  auto next = co_await attempts_.Next(round->attempt);
  if (!next) co_return Fail(next.error());
  round->over = true;
  Formed formed;
  formed.attempt = *next;
  formed.length = plan.length;

  const Seat& source = round->seats[plan.source];
  proto::ReconcileSet set;
  set.set_length(plan.length);
  for (uint32_t crc : plan.block_crcs) set.add_block_crcs(crc);
  const Server* source_server = servers_.Find(source.answer.server);
  if (source_server == nullptr || source_server->incarnation != source.incarnation) {
    failed->push_back(source.answer.server);
    co_return formed;
  }
  set.mutable_source()->set_server(source.answer.server.value);
  set.mutable_source()->set_host(source_server->endpoint.host);
  set.mutable_source()->set_port(source_server->endpoint.port);
  set.mutable_source()->set_incarnation(source.incarnation.value);
  set.set_source_version(formed.attempt.to.value);

  // The source first: the others then fill from content that is final.
  std::vector<Agreed> members;
  members.push_back(Agreed{source.answer.server, source.incarnation, source.instance, source.received, source.answer.clean});
  for (size_t i : plan.set) {
    const Seat& seat = round->seats[i];
    if (i == plan.source) continue;
    members.push_back(Agreed{seat.answer.server, seat.incarnation, seat.instance, seat.received, seat.answer.clean});
  }
  auto record = attempts_.Check(formed.attempt);
  if (!record) co_return Fail(record.error());
  if (plan.joiners > 0) {
    for (ServerId id : JoinerCandidates(*round, left_out, plan.joiners, record->chunk_size())) {
      members.push_back(Agreed{id, servers_.Find(id)->incarnation, InstanceId(), Mono(), false});
    }
  }
  PICKET_LOG(env_, kInfo, "chunk {}: {} replicas are made equal at {} bytes under version {}, {} of them new",
             ToString(formed.attempt.writer.chunk), members.size(), plan.length, formed.attempt.to.ToString(),
             plan.joiners);

  auto first = co_await Fill(formed.attempt, exactly, members[0], set);
  std::vector<Result<Agreed>> filled;
  filled.push_back(std::move(first));
  if (filled[0]) {
    std::vector<Task<Result<Agreed>>> fills;
    for (size_t i = 1; i < members.size(); ++i) fills.push_back(Fill(formed.attempt, exactly, members[i], set));
    auto rest = co_await WhenAll(&env_, std::move(fills));
    for (auto& r : rest) filled.push_back(std::move(r));
  }
  auto still = attempts_.Check(formed.attempt);
  if (!still) co_return Fail(still.error());
  // If one answer is missing the attempt is void (F2).
  bool complete = true;
  for (size_t i = 0; i < filled.size(); ++i) {
    if (filled[i]) continue;
    PICKET_LOG(env_, kWarning, "chunk {}: {} does not take part: {}", ToString(formed.attempt.writer.chunk),
               ToString(members[i].server), filled[i].error().ToString());
    complete = false;
    // A member that could not be reached is asked again, as it may come back with its bytes.
    if (i >= plan.set.size() || !IsUnreached(filled[i].error().code)) failed->push_back(members[i].server);
  }
  if (!complete) co_return formed;
  // In the order of the members, new ones last.
  for (auto& member : filled) formed.set.push_back(std::move(*member));
  co_return formed;
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
