#include "master/recovery_round.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/mutation.h"
#include "common/obs/log.h"
#include "master/promises.h"
#include "master/replica_judge.h"

namespace picket {
namespace {

using State = MemberAnswer::State;

// The server says that it has no usable replica of this chunk, or one that missed a committed version (F3).
bool IsGone(Code code) {
  return code == Code::kNotFound || code == Code::kCorrupt || code == Code::kReplicaBehind;
}

}  // namespace

size_t RecoveryRound::finished() const {
  return static_cast<size_t>(std::ranges::count_if(seats, [](const RecoverySeat& s) { return s.finished; }));
}

RecoveryRounds::RecoveryRounds(Env& env, ChunkTable& chunks, ServerTable& servers, LocationMap& locations,
                               MetaStore& store, Orders& orders, Attempts& attempts, Options options)
    : env_(env),
      activated_(env.Now()),
      chunks_(chunks),
      servers_(servers),
      locations_(locations),
      store_(store),
      orders_(orders),
      attempts_(attempts),
      options_(options) {}

std::shared_ptr<RecoveryRound> RecoveryRounds::Open(const Attempt& attempt, const record::Chunk& record,
                                                    std::optional<uint64_t> limit, const std::vector<ServerId>& slow) {
  auto round = std::make_shared<RecoveryRound>(env_);
  round->attempt = attempt;
  round->record = record;
  round->limit = limit;
  // Of equal members the first one is the source.
  for (bool last : {false, true}) {
    for (const record::Member& member : record.members()) {
      const ServerId id(member.server());
      const bool is_slow = std::ranges::find(slow, id) != slow.end();
      if (is_slow == last) AddSeat(round, id, Incarnation(member.incarnation()));
    }
  }
  return round;
}

void RecoveryRounds::AddSeat(const std::shared_ptr<RecoveryRound>& round, ServerId server, Incarnation committed) {
  const auto same = [&](const RecoverySeat& s) { return s.answer.server == server; };
  if (std::ranges::any_of(round->seats, same)) return;
  RecoverySeat& seat = round->seats.emplace_back();
  seat.answer.server = server;
  seat.committed = committed;
  env_.Spawn(RunSeat(this, round, round->seats.size() - 1));
}

void RecoveryRounds::AddReportedSeats(const std::shared_ptr<RecoveryRound>& round) {
  const bool all = PICKET_MUTANT(recovery_members_only);
  if (!round->record.sealed() && !all) return;
  for (const Replica& replica : std::vector(locations_.Of(round->attempt.writer.chunk))) {
    if (replica.leaving != Leaving::kNo) continue;
    const bool counted =
        JudgeReplica(&round->record, store_.activations(), FactsOf(replica, Incarnation())) == Worth::kCounted;
    // Above `current` the only marks are those of attempts after the seal, which ask such replicas alone.
    const bool between = replica.version.value > round->record.current() && replica.version <= round->attempt.to &&
                         (replica.state == proto::OPEN || replica.state == proto::RECOVERING ||
                          replica.state == proto::SEALED);
    if (counted || between || all) AddSeat(round, replica.server, Incarnation());
  }
}

bool RecoveryRounds::StillValid(const RecoveryRound& round) const {
  if (!round.committed) return attempts_.Check(round.attempt).has_value();
  const auto record = chunks_.Get(round.attempt.writer.chunk);
  return record && *record && (*record)->sealed() && (*record)->minted() == round.attempt.to.value;
}

Task<> RecoveryRounds::RunSeat(RecoveryRounds* self, std::shared_ptr<RecoveryRound> round, size_t i) {
  for (;;) {
    RecoverySeat& seat = round->seats[i];
    if (round->over || seat.finished || !self->StillValid(*round)) break;
    if (round->committed && self->env_.Now() - *round->committed >= self->options_.straggle) break;
    const Server* server = self->servers_.Find(seat.answer.server);
    const bool dead = server != nullptr ? self->servers_.LivenessOf(*server) == Liveness::kDead
                                        : self->env_.Now() - self->activated_ >= self->options_.dead_after;
    if (server == nullptr || dead) {
      seat.error = Error(Code::kUnavailable, dead ? "dead" : "not registered");
      if (seat.answer.state != State::kAnswered) seat.answer.state = dead ? State::kGone : State::kWaiting;
      round->changed.NotifyAll();
      co_await self->servers_.changed().WaitFor(1s);
      continue;
    }
    const Incarnation incarnation = server->incarnation;
    if (seat.answer.state != State::kAnswered) {
      const bool more = co_await self->Begin(round, i, incarnation);
      if (!more) break;
      continue;
    }
    const bool planned = round->plan && std::ranges::find(round->plan->set, i) != round->plan->set.end();
    // After the commit, whoever has answered late is finished too.
    if ((planned && (i == round->plan->source || round->seats[round->plan->source].finished)) || round->committed) {
      const bool more = co_await self->FinishSeat(round, i, incarnation);
      if (!more) break;
      continue;
    }
    co_await round->changed.WaitFor(1s);
  }
  round->changed.NotifyAll();
}

Task<bool> RecoveryRounds::Begin(std::shared_ptr<RecoveryRound> round, size_t i, Incarnation incarnation) {
  const ServerId id = round->seats[i].answer.server;
  proto::BeginRecoveryRequest request;
  request.set_chunk(round->attempt.writer.chunk.value);
  request.set_from(round->record.current());
  request.set_to(round->attempt.to.value);
  request.set_generation(round->attempt.writer.generation.value);
  if (round->limit) request.set_limit(*round->limit);
  if (PICKET_MUTANT(recovery_members_only)) request.set_from(0);
  auto response = co_await orders_.Send<proto::BeginRecoveryResponse>(
      proto::BEGIN_RECOVERY, id, incarnation, round->attempt.id, std::move(request), options_.order_timeout);
  if (round->over) co_return false;
  RecoverySeat& seat = round->seats[i];
  if (response) {
    Take(&seat, *round, incarnation, *response);
    round->changed.NotifyAll();
    if (seat.answer.state != State::kAnswered) co_await env_.Sleep(kRefusedPause);
    co_return true;
  }
  seat.error = response.error();
  const bool unreached = IsUnreached(seat.error.code);
  seat.answer.state = unreached ? State::kWaiting : IsGone(seat.error.code) ? State::kGone : State::kFailed;
  if (!unreached) {
    PICKET_LOG(env_, kWarning, "chunk {}: {} refuses the recovery under version {}: {}",
               ToString(round->attempt.writer.chunk), ToString(id), round->attempt.to.ToString(), seat.error.ToString());
  }
  round->changed.NotifyAll();
  // Who refuses may have a reason that passes.
  co_await env_.Sleep(unreached ? kRetryPause : kRefusedPause);
  co_return true;
}

void RecoveryRounds::Take(RecoverySeat* seat, const RecoveryRound& round, Incarnation asked,
                          const proto::BeginRecoveryResponse& response) const {
  const proto::AdvanceVersionResponse& promise = response.promise();
  const auto blocks = static_cast<uint64_t>(promise.block_crcs_size());
  if (promise.version() != round.attempt.to.value || promise.generation() != round.attempt.writer.generation.value ||
      promise.incarnation() != asked.value || blocks != BlocksIn(promise.length()) ||
      (round.limit && promise.length() > *round.limit)) {
    seat->answer.state = State::kFailed;
    seat->error = Error(Code::kInternal, "its answer is not one to this attempt");
    return;
  }
  seat->answer.state = promise.state() == proto::CORRUPT ? State::kGone : State::kAnswered;
  seat->answer.clean = (!seat->committed || promise.incarnation() == seat->committed.value) && !promise.partial();
  seat->answer.length = promise.length();
  seat->answer.block_crcs.assign(promise.block_crcs().begin(), promise.block_crcs().end());
  seat->answer.known_acked = promise.known_acked();
  seat->answer.overwritten = promise.overwritten();
  seat->answer.sealed_generation = Generation(response.sealed_generation());
  seat->incarnation = asked;
  seat->instance = InstanceId(promise.instance());
  seat->mark = Version(promise.mark_before());
  seat->error = Error();
}

bool RecoveryRounds::MoreMayReport() const {
  if (env_.Now() - activated_ < options_.dead_after) return true;
  return std::ranges::any_of(servers_.all(), [&](const auto& s) {
    return !s.second.reported && servers_.LivenessOf(s.second) != Liveness::kDead;
  });
}

RecoverySituation RecoveryRounds::SituationOf(const RecoveryRound& round, Mono begun, Mono* patient_until) const {
  RecoverySituation s;
  s.min_replicas = std::min(options_.min_write_replicas, std::max(round.record.replication(), 1u));
  s.floor = round.record.length();
  s.limit = round.limit;
  if (round.record.sealed()) {
    s.sealed_digest = round.record.digest();
    s.more_may_report = MoreMayReport();
  }
  for (const RecoverySeat& seat : round.seats) s.members.push_back(seat.answer);
  *patient_until = begun + options_.linger;
  s.patient = env_.Now() < *patient_until;
  return s;
}

Task<Result<RecoveryPlan>> RecoveryRounds::Gather(std::shared_ptr<RecoveryRound> round) {
  const Mono begun = env_.Now();
  for (;;) {
    PICKET_CO_TRY(attempts_.Check(round->attempt));
    AddReportedSeats(round);
    Mono patient_until;
    RecoveryPlan plan = PlanRecovery(SituationOf(*round, begun, &patient_until));
    if (plan.step != RecoveryPlan::Step::kWait) {
      round->waiting_for.clear();
      co_return plan;
    }
    round->waiting_for = WaitingFor(*round, plan);
    const Nanos left = patient_until - env_.Now();
    co_await round->changed.WaitFor(left > Nanos(0) ? left : Nanos(1s));
  }
}

std::string RecoveryRounds::WaitingFor(const RecoveryRound& round, const RecoveryPlan& plan) const {
  std::string out;
  for (const RecoverySeat& seat : round.seats) {
    if (std::ranges::find(plan.waiting_for, seat.answer.server) == plan.waiting_for.end()) continue;
    out += (out.empty() ? "" : ", ") + fmt::format("server {}: {}", ToString(seat.answer.server),
                                                   seat.error.message.empty() ? "asked" : seat.error.message);
  }
  if (out.empty()) out = "servers that may still report a replica";
  return out + " (" + plan.why + ")";
}

Task<bool> RecoveryRounds::FinishSeat(std::shared_ptr<RecoveryRound> round, size_t i, Incarnation incarnation) {
  const RecoveryPlan& plan = *round->plan;
  const ServerId id = round->seats[i].answer.server;
  const ServerId source = round->seats[plan.source].answer.server;
  proto::FinishRecoveryRequest request;
  request.set_chunk(round->attempt.writer.chunk.value);
  request.set_version(round->attempt.to.value);
  request.set_generation(round->attempt.writer.generation.value);
  request.set_digest(plan.digest);
  request.set_truncation(round->limit.has_value());
  proto::ReconcileSet& set = *request.mutable_set();
  set.set_length(plan.length);
  for (uint32_t crc : plan.block_crcs) set.add_block_crcs(crc);
  set.set_source_version(round->attempt.to.value);
  set.mutable_source()->set_server(source.value);
  if (const Server* server = servers_.Find(source)) {
    set.mutable_source()->set_host(server->endpoint.host);
    set.mutable_source()->set_port(server->endpoint.port);
    set.mutable_source()->set_incarnation(server->incarnation.value);
  }
  auto response = co_await orders_.Send<proto::FinishRecoveryResponse>(
      proto::FINISH_RECOVERY, id, incarnation, round->attempt.id, std::move(request), options_.fill_timeout);
  RecoverySeat& seat = round->seats[i];
  if (response) {
    seat.finished = true;
    seat.incarnation = incarnation;
    seat.instance = InstanceId(response->instance());
    co_return false;
  }
  seat.error = response.error();
  if (!IsUnreached(seat.error.code)) {
    PICKET_LOG(env_, kWarning, "chunk {}: {} does not finish the recovery under version {}: {}",
               ToString(round->attempt.writer.chunk), ToString(id), round->attempt.to.ToString(), seat.error.ToString());
    seat.given_up = ++seat.refusals >= kFinishRefusals;
  }
  const bool given_up = seat.given_up;
  round->changed.NotifyAll();
  co_await env_.Sleep(given_up ? kRefusedPause : kRetryPause);
  co_return true;
}

Task<Status> RecoveryRounds::Finish(std::shared_ptr<RecoveryRound> round, RecoveryPlan plan) {
  const size_t wanted = std::min(plan.set.size(), static_cast<size_t>(std::min(
                                     options_.min_write_replicas, std::max(round->record.replication(), 1u))));
  round->plan = std::move(plan);
  round->changed.NotifyAll();
  const Mono begun = env_.Now();
  std::optional<Mono> enough;  // since when
  for (;;) {
    auto still = attempts_.Check(round->attempt);
    if (!still && !PICKET_MUTANT(recovery_commit_checks)) co_return Fail(still.error());
    const RecoverySeat& source = round->seats[round->plan->source];
    const Mono now = env_.Now();
    if (source.finished) {
      if (round->finished() >= wanted && !enough) enough = now;
      const bool settled = std::ranges::all_of(round->plan->set, [&](size_t i) {
        return round->seats[i].finished || round->seats[i].given_up;
      });
      if (settled || (enough && now - *enough >= options_.linger) || now - begun >= options_.fill_timeout) co_return Status();
    } else if (source.given_up || now - begun >= options_.order_timeout) {
      Error error(Code::kUnavailable, fmt::format("chunk {}: server {} does not finish: {}",
                                                  ToString(round->attempt.writer.chunk), ToString(source.answer.server),
                                                  source.error.message.empty() ? "no answer" : source.error.message));
      error.server = source.answer.server.value;
      co_return Fail(std::move(error));
    }
    co_await round->changed.WaitFor(enough ? std::max<Nanos>(*enough + options_.linger - now, 1ms) : Nanos(1s));
  }
}

}  // namespace picket
