#include "master/promises.h"

#include <algorithm>

#include "common/obs/log.h"

namespace picket {
namespace {

using State = MemberAnswer::State;

// Between two tries of a member that cannot be reached.
constexpr Nanos kRetryPause = 250ms;
// A member that could not be reached this often in a row is left out unless it answers after all.
constexpr int kUnreachableMax = 3;

// The member says that it has no usable replica of this chunk any more.
bool IsGone(Code code) {
  return code == Code::kNotFound || code == Code::kCorrupt || code == Code::kReplicaBehind;
}

}  // namespace

bool IsUnreached(Code code) {
  return code == Code::kUnavailable || code == Code::kConnectionLost || code == Code::kDeadlineExceeded ||
         code == Code::kConflict;
}

std::shared_ptr<Round> Promises::Open(const Attempt& attempt, Version from,
                                      const std::vector<record::Member>& participants,
                                      const std::vector<ServerId>& left_out) const {
  auto round = std::make_shared<Round>(env_);
  round->attempt = attempt;
  round->from = from;
  for (const record::Member& member : participants) {
    Seat& seat = round->seats.emplace_back();
    seat.answer.server = ServerId(member.server());
    seat.committed = Incarnation(member.incarnation());
    if (std::ranges::find(left_out, seat.answer.server) != left_out.end()) seat.answer.state = State::kFailed;
  }
  return round;
}

void Promises::Ask(const std::shared_ptr<Round>& round, bool all) {
  for (size_t i = 0; i < round->seats.size(); ++i) {
    Seat& seat = round->seats[i];
    if (seat.asked || (seat.answer.state == State::kFailed && !all)) continue;
    seat.asked = true;
    seat.answer.state = State::kWaiting;
    env_.Spawn(AskSeat(this, round, i));
  }
}

Task<> Promises::AskSeat(Promises* self, std::shared_ptr<Round> round, size_t i) {
  const ServerId id = round->seats[i].answer.server;
  Version from = round->from;
  int unreachable = 0;
  while (!round->over) {
    Seat& seat = round->seats[i];
    const Server* server = self->servers_.Find(id);
    const bool dead = server != nullptr ? self->servers_.LivenessOf(*server) == Liveness::kDead
                                        : self->env_.Now() - self->activated_ >= self->options_.dead_after;
    if (dead) {
      seat.answer.state = State::kGone;
      seat.error = Error(Code::kUnavailable, "dead");
      round->changed.NotifyAll();
      co_return;
    }
    if (server == nullptr) {
      seat.error = Error(Code::kUnavailable, "not registered");
      co_await self->servers_.changed().WaitFor(1s);
      continue;
    }
    if (!self->attempts_.Check(round->attempt)) {
      round->changed.NotifyAll();
      co_return;
    }
    const Incarnation incarnation = server->incarnation;
    proto::AdvanceVersionRequest request;
    request.set_chunk(round->attempt.writer.chunk.value);
    request.set_from(from.value);
    request.set_to(round->attempt.to.value);
    request.set_generation(round->attempt.writer.generation.value);
    // A seal that is not committed is provisional: the writer goes on (F11).
    request.set_reopen(true);
    auto response = co_await self->orders_.Send<proto::AdvanceVersionResponse>(
        proto::ADVANCE_VERSION, id, incarnation, round->attempt.id, std::move(request), self->options_.order_timeout);
    if (round->over) co_return;
    Seat& after = round->seats[i];
    if (response) {
      self->Take(&after, *round, incarnation, std::move(*response));
      round->changed.NotifyAll();
      co_return;
    }
    after.error = response.error();
    const Code code = after.error.code;
    const Version mark(after.error.mark);
    if (code == Code::kStaleVersion && mark > from && mark < round->attempt.to) {
      from = mark;  // an attempt that was not committed raised it: its promise stands on that mark
      continue;
    }
    if (IsUnreached(code)) {
      if (++unreachable >= kUnreachableMax || code == Code::kDeadlineExceeded) after.answer.state = State::kFailed;
      round->changed.NotifyAll();
      co_await self->env_.Sleep(kRetryPause);
      continue;
    }
    after.answer.state = IsGone(code) ? State::kGone : State::kFailed;
    PICKET_LOG(self->env_, kWarning, "chunk {}: member {} refuses version {}: {}",
               ToString(round->attempt.writer.chunk), ToString(id), round->attempt.to.ToString(),
               after.error.ToString());
    round->changed.NotifyAll();
    co_return;
  }
}

void Promises::Take(Seat* seat, const Round& round, Incarnation asked, proto::AdvanceVersionResponse response) const {
  const uint64_t blocks = BlocksIn(response.length());
  if (response.version() != round.attempt.to.value || response.incarnation() != asked.value ||
      static_cast<uint64_t>(response.block_crcs_size()) != blocks) {
    seat->answer.state = State::kFailed;
    seat->error = Error(Code::kInternal, "its answer is not one to this attempt");
    return;
  }
  seat->answer.state = response.state() == proto::CORRUPT ? State::kGone : State::kAnswered;
  seat->answer.clean = response.incarnation() == seat->committed.value && !response.partial();
  seat->answer.length = response.length();
  seat->answer.block_crcs.assign(response.block_crcs().begin(), response.block_crcs().end());
  seat->answer.known_acked = response.known_acked();
  seat->answer.overwritten = response.overwritten();
  seat->incarnation = asked;
  seat->instance = InstanceId(response.instance());
  seat->received = env_.Now();
}

}  // namespace picket
