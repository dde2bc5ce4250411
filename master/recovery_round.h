// One attempt at recovering a chunk, as far as servers are concerned: BEGIN_RECOVERY to the participants, what
// they answered, and FINISH_RECOVERY to those that the plan names. Each participant has a task of its own:
//
//   asked until it answers or refuses ─▶ [plan] ─▶ the source finishes ─▶ the others finish ─▶ [commit]
//                                                                              │ still not finished:
//                                                                              └─ tried on for a while (D8)
//
// 1. BEGIN goes to the members only; of a chunk whose record is still sealed, to the replicas that the
//    servers' reports show as counted or between two committed sets (F1, F3).
// 2. Before each order the attempt is checked; after the commit: that the record is still as committed (F8).
// 3. A server that restarts between its answer and its order keeps its promise, which is durable (F5).
// Runs on the master's executor.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/env/env.h"
#include "common/env/sync.h"
#include "master/attempt.h"
#include "master/chunk_table.h"
#include "master/location_map.h"
#include "master/orders.h"
#include "master/recovery_plan.h"
#include "master/server_table.h"
#include "proto/chunkserver_master.pb.h"

namespace picket {

struct RecoverySeat {
  MemberAnswer answer;
  Incarnation committed;       // in `members`; 0: the record is sealed, and the content decides
  Incarnation incarnation;     // that answered
  InstanceId instance;
  Version mark;                // before this attempt
  bool finished = false;
  int refusals = 0;            // to finish
  bool given_up = false;       // not waited for any more; still asked
  Error error;                 // the last one it gave
};

// Shared between the job and the tasks of its participants.
struct RecoveryRound {
  explicit RecoveryRound(Env& env) : changed(env) {}
  Attempt attempt;
  record::Chunk record;            // as the fencing batch left it
  std::optional<uint64_t> limit;   // of a truncation
  std::vector<RecoverySeat> seats;
  std::optional<RecoveryPlan> plan;  // being finished
  std::optional<Mono> committed;
  bool over = false;               // nobody listens any more
  std::string waiting_for;
  Signal changed;

  size_t finished() const;
};

class RecoveryRounds {
 public:
  struct Options {
    uint32_t min_write_replicas = 2;
    Nanos order_timeout = 10s;
    Nanos fill_timeout = 30s;   // of a FINISH: it may move the whole chunk
    Nanos dead_after = 60s;     // a member that has not registered since the activation counts as dead
    Nanos linger = 200ms;       // for those about to answer, once enough have
    Nanos straggle = 60s;       // participants are finished that long after the commit
  };
  RecoveryRounds(Env& env, ChunkTable& chunks, ServerTable& servers, LocationMap& locations, MetaStore& store,
                 Orders& orders, Attempts& attempts, Options options);

  // `slow`: did not finish as the source of an attempt before; not the source again where another can be.
  std::shared_ptr<RecoveryRound> Open(const Attempt& attempt, const record::Chunk& record,
                                      std::optional<uint64_t> limit, const std::vector<ServerId>& slow);
  // Asks, and waits as long as it takes, until there is something to do: kFinish, kDrop or kIntegrity. The
  // refusal of Attempts::Check.
  Task<Result<RecoveryPlan>> Gather(std::shared_ptr<RecoveryRound> round);
  // Orders the plan's participants to finish. On return the source has, and the others too unless they take
  // long. kUnavailable: the source has not, and the attempt is void.
  Task<Status> Finish(std::shared_ptr<RecoveryRound> round, RecoveryPlan plan);

 private:
  static Task<> RunSeat(RecoveryRounds* self, std::shared_ptr<RecoveryRound> round, size_t i);
  // One step of a seat's task each; false: it has ended.
  Task<bool> Begin(std::shared_ptr<RecoveryRound> round, size_t i, Incarnation incarnation);
  Task<bool> FinishSeat(std::shared_ptr<RecoveryRound> round, size_t i, Incarnation incarnation);
  void AddSeat(const std::shared_ptr<RecoveryRound>& round, ServerId server, Incarnation committed);
  void AddReportedSeats(const std::shared_ptr<RecoveryRound>& round);
  void Take(RecoverySeat* seat, const RecoveryRound& round, Incarnation asked,
            const proto::BeginRecoveryResponse& response) const;
  bool StillValid(const RecoveryRound& round) const;
  bool MoreMayReport() const;
  RecoverySituation SituationOf(const RecoveryRound& round, Mono begun, Mono* patient_until) const;
  std::string WaitingFor(const RecoveryRound& round, const RecoveryPlan& plan) const;

  static constexpr Nanos kRetryPause = 250ms;
  static constexpr Nanos kRefusedPause = 5s;
  static constexpr int kFinishRefusals = 3;

  Env& env_;
  const Mono activated_;
  ChunkTable& chunks_;
  ServerTable& servers_;
  LocationMap& locations_;
  MetaStore& store_;
  Orders& orders_;
  Attempts& attempts_;
  const Options options_;
};

}  // namespace picket
