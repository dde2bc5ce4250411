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
// 3. A sealed chunk that its session opens again (`reopen`) is granted to the replicas that count; the record
//    stays sealed, and its bytes readable, until the batch of 2. An attempt that dies leaves marks between
//    the two sets: the next one, or a recovery, starts from those.
// 4. The old primary has answered this attempt, was revoked, has restarted, or its lease is over, before
//    another set is committed (F19).
// Runs on the master's executor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
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
    bool reopen = false;           // a sealed chunk too
    // Adds the answer's row to the committing batch; may run more than once, the last one holds.
    std::function<void(Batch*, const proto::WriteGrant&)> remember;
  };
  // kSuperseded, kWaitingFor (with retry_after_ms), kNotEnoughReplicas, kIntegrity, and the refusals of
  // Attempts::Admit. On success `current`, `members` and the answer are durable and the primary has its lease.
  Task<Result<proto::WriteGrant>> Grant(Ask ask);

 private:
  // One grant in progress.
  struct Work {
    Ask ask;
    Failures failures;  // of all rounds so far

    std::vector<ServerId> LeftOut() const;  // they, and those named by the writer
  };
  // What one round came to: a grant, or none and a reason to go on with another one.
  using Outcome = std::optional<proto::WriteGrant>;

  Task<Result<Outcome>> RunRound(std::shared_ptr<Work> work);
  // Before a sealed chunk is opened again: soon after the start, its replicas may not all be reported.
  Task<> AwaitReports(std::shared_ptr<Work> work);
  // Who is asked: the members; of a sealed chunk the replicas that count or are between two sets.
  std::vector<record::Member> Participants(ChunkId chunk, const record::Chunk& record) const;
  Task<Result<GrantPlan>> AwaitPlan(std::shared_ptr<Work> work, std::shared_ptr<Round> round);
  // True: go on with this round's answers. False: it took long, ask anew.
  Task<Result<bool>> AwaitOldLease(std::shared_ptr<Work> work, std::shared_ptr<Round> round);
  Task<bool> Revoke(ChunkId chunk, Version version, ServerId server, Incarnation incarnation);
  Task<Result<proto::WriteGrant>> Commit(std::shared_ptr<Work> work, Formed formed);
  Task<Status> Stop(Attempt attempt, GrantPlan plan);
  Error WaitingFor(const Attempt& attempt, const std::vector<ServerId>& servers, const std::string& why,
                   Nanos retry_after) const;
  Error NotEnough(const Work& work, const Round& round, const GrantPlan& plan) const;

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
