// Makes the replicas of a chunk equal, under a version of its own (design §2.3): what the plan keeps is the
// content, the source cuts itself to it first, the others take from it what they lack, new ones everything.
//
// 1. The content and the mark change in one step at each replica, from exactly the mark of the round before;
//    an order that replaces bytes is never executed at a version under which bytes were acknowledged (F2).
// 2. If one answer is missing the attempt is void: nothing of its number is committed.
// Runs on the master's executor.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "common/env/env.h"
#include "master/attempt.h"
#include "master/grant_plan.h"
#include "master/orders.h"
#include "master/placement.h"
#include "master/promises.h"
#include "master/server_table.h"

namespace picket {

// One member of a set about to be committed.
struct Agreed {
  ServerId server;
  Incarnation incarnation;
  InstanceId instance;
  Mono received;       // when its last answer came
  bool clean = false;
};
struct Formed {
  Attempt attempt;
  uint64_t length = 0;
  std::vector<Agreed> set;
};

// Servers that failed during a grant, and how.
using Failures = std::map<ServerId, Error>;

class Reconciler {
 public:
  Reconciler(Env& env, ServerTable& servers, Orders& orders, Attempts& attempts, Nanos order_timeout)
      : env_(env), servers_(servers), orders_(orders), attempts_(attempts), order_timeout_(order_timeout) {}

  // Mints the next number of the attempt and carries out `plan` (a kReconcile one) under it. An empty set: it
  // failed, and `failures` names who is to be left out of the next one. Ends the round.
  Task<Result<Formed>> MakeEqual(std::shared_ptr<Round> round, GrantPlan plan, std::vector<ServerId> left_out,
                                 Failures* failures);
  // Servers that could take a new replica, the best first.
  std::vector<ServerId> JoinerCandidates(const Round& round, const std::vector<ServerId>& left_out, size_t count,
                                         uint64_t chunk_bytes) const;

 private:
  Task<Result<Agreed>> Fill(Attempt attempt, Version from, Agreed member, proto::ReconcileSet set);

  Env& env_;
  ServerTable& servers_;
  Orders& orders_;
  Attempts& attempts_;
  const Nanos order_timeout_;
};

}  // namespace picket
