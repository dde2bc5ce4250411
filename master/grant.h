// Grants the primary lease of an open chunk: a new version on the members that answer, made equal where
// they differ, committed, then the lease (design §2). The decisions are grant_plan's; this asks, waits,
// sends and commits.
//
//   Begin (mint) → promises → [old lease over] → {commit | reconcile (mint) → commit} → lease → answer
//        ▲                                                      │ a member failed │
//        └──────────────────── a new number ────────────────────┴─────────────────┘
//
// 1. Only the attempt whose number is the newest does anything (attempt.h, F8).
// 2. `current` and `members` move in one durable batch, and only then is the lease given (F1).
// 3. The old primary has answered this attempt, was revoked, has restarted, or its lease is over, before
//    another set is committed (F19).
// Runs on the master's executor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/env/env.h"
#include "master/attempt.h"
#include "master/chunk_table.h"
#include "master/grant_plan.h"
#include "master/lease_giver.h"
#include "master/lease_table.h"
#include "master/location_map.h"
#include "master/promises.h"
#include "master/reconciler.h"
#include "master/server_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class Granter {
 public:
  struct Options {
    uint32_t min_write_replicas = 2;
    Nanos patience = 15s;  // for members, while too few have answered
    Nanos linger = 5s;     // for the others, once enough have
    Promises::Options promises;
  };
  Granter(Env& env, MetaStore& store, ChunkTable& chunks, ServerTable& servers, LocationMap& locations,
          LeaseTable& leases, Orders& orders, Attempts& attempts, LeaseGiver& giver, Options options);

  struct Ask {
    ChunkWriter writer;
    uint64_t acked_length = 0;
    std::vector<ServerId> failed;  // named by the writer
    std::string reason;            // for the log
    Mono deadline;                 // of the caller
    // Adds the answer's row to the committing batch; may run more than once, the last one holds.
    std::function<void(Batch*, const proto::WriteGrant&)> remember;
  };
  // kSuperseded, kWaitingFor (with retry_after_ms), kNotEnoughReplicas, kIntegrity, and the refusals of
  // Attempts::Admit. On success `current`, `members` and the answer are durable and the primary has its lease.
  Task<Result<proto::WriteGrant>> Grant(Ask ask);

 private:
  // What one round came to: a grant, or "again" with the servers that failed in it.
  struct Outcome {
    std::shared_ptr<proto::WriteGrant> grant;
    std::vector<ServerId> failed;
  };

  Task<Result<Outcome>> RunRound(std::shared_ptr<const Ask> ask, std::vector<ServerId> left_out);
  Task<Result<GrantPlan>> AwaitPlan(std::shared_ptr<const Ask> ask, std::shared_ptr<Round> round, size_t min_replicas,
                                    std::vector<ServerId> left_out);
  // True: go on with this round's answers. False: it took long, ask anew.
  Task<Result<bool>> AwaitOldLease(std::shared_ptr<const Ask> ask, std::shared_ptr<Round> round);
  Task<bool> Revoke(ChunkId chunk, Version version, ServerId server, Incarnation incarnation);
  Task<Result<proto::WriteGrant>> Commit(std::shared_ptr<const Ask> ask, Formed formed);
  Task<Status> Stop(Attempt attempt, GrantPlan plan);
  Error WaitingFor(const Attempt& attempt, const std::vector<ServerId>& servers, const std::string& why,
                   Nanos retry_after) const;
  Error NotEnough(const Round& round, const std::string& why) const;

  static constexpr int kMaxRounds = 6;

  Env& env_;
  MetaStore& store_;
  ChunkTable& chunks_;
  ServerTable& servers_;
  LocationMap& locations_;
  LeaseTable& leases_;
  Orders& orders_;
  Attempts& attempts_;
  LeaseGiver& giver_;
  const Options options_;
  Promises promises_;
  Reconciler reconciler_;
};

}  // namespace picket
