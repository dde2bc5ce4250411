// Asks the members of a chunk for their promise under an attempt's version (design §2.2) and collects what
// they answer. Answers are matched by attempt and version; late ones are ignored (D2).
// Runs on the master's executor.
#pragma once

#include <memory>
#include <vector>

#include "common/env/env.h"
#include "common/env/sync.h"
#include "master/attempt.h"
#include "master/grant_plan.h"
#include "master/orders.h"
#include "master/server_table.h"

namespace picket {

// One member's seat in a round of promises.
struct Seat {
  MemberAnswer answer;
  Incarnation committed;    // in `members`, or as the participant is known
  Incarnation incarnation;  // that answered
  InstanceId instance;
  Mono received;            // when its last answer came
  bool asked = false;
  Error error;              // the last one it gave
};

// Shared between the attempt and the calls that are out.
struct Round {
  explicit Round(Env& env) : changed(env) {}
  Attempt attempt;
  Version from;
  bool over = false;  // nobody listens any more
  std::vector<Seat> seats;
  Signal changed;
};

// An order's error that says nothing against the replica: the server was not reached, or another boot of it
// was (kConflict); it registers again and is asked again.
bool IsUnreached(Code code);

class Promises {
 public:
  struct Options {
    Nanos order_timeout = 10s;
    Nanos dead_after = 60s;  // an unregistered member counts as dead that long after the activation
  };
  Promises(Env& env, ServerTable& servers, Orders& orders, Attempts& attempts, Options options)
      : env_(env), activated_(env.Now()), servers_(servers), orders_(orders), attempts_(attempts), options_(options) {}

  // A round from version `from` on with a seat per participant; `left_out` are not asked yet.
  std::shared_ptr<Round> Open(const Attempt& attempt, Version from, const std::vector<record::Member>& participants,
                              const std::vector<ServerId>& left_out) const;
  // Asks every seat not asked yet, those left out too when `all`. Each is asked until it answers, refuses
  // for good or the round is over; Round::changed tells.
  void Ask(const std::shared_ptr<Round>& round, bool all);

 private:
  static Task<> AskSeat(Promises* self, std::shared_ptr<Round> round, size_t i);
  void Take(Seat* seat, const Round& round, Incarnation asked, proto::AdvanceVersionResponse response) const;

  Env& env_;
  const Mono activated_;
  ServerTable& servers_;
  Orders& orders_;
  Attempts& attempts_;
  const Options options_;
};

}  // namespace picket
