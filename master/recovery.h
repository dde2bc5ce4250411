// Lease recovery (design §4): a file whose writer stalled is agreed on, sealed and closed, or handed to a
// claimant. One job per file; who asks while it runs waits for its end.
//
//   fence: G', v' minted, the master is the holder, one synced batch
//     → BEGIN_RECOVERY to the members → plan (recovery_plan.h) → FINISH_RECOVERY
//     → one batch: chunk sealed, file closed, and the claimant's session where there is one
//        ▲                                                          │ something failed
//        └────────────── a fresh G' and v' at each repeat ──────────┘
//
// 1. From the first batch on the old writer is refused: by the master at once, by each replica as the
//    order reaches it.
// 2. Only the attempt whose number is the newest does anything (attempt.h, F8).
// 3. All or nothing per chunk: what is in memory changes only after the journal has it (HDFS-17861).
// 4. A crash anywhere and a restart lead to the same end: the session says that it is being recovered.
// 5. Dropped is an empty chunk only, and only on the word of a clean member (F20); with nobody to say it
//    the file stays open, and Show tells what it waits for.
// Runs on the master's executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/env.h"
#include "common/env/sync.h"
#include "master/attempt.h"
#include "master/chunk_table.h"
#include "master/grant.h"
#include "master/namespace.h"
#include "master/open_files.h"
#include "master/session_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class Recoverer {
 public:
  struct Options {
    uint32_t min_write_replicas = 2;
    Nanos scan_interval = 2s;   // for sessions past their hard limit, and those left by a crash
    Nanos retry = 2s;           // after an attempt that could not be brought to its end
    Nanos order_timeout = 10s;
    Nanos dead_after = 60s;     // a member that has not registered since the activation counts as dead
  };
  Recoverer(Env& env, MetaStore& store, Namespace& names, SessionTable& sessions, OpenFiles& files, ChunkTable& chunks,
            ServerTable& servers, LocationMap& locations, LeaseTable& leases, Orders& orders, Attempts& attempts,
            const Serving& serving, Options options);

  // Goes into the batch that closes the file, after the session is dropped: a claimant opens its own there, of
  // a new generation. Runs at most once with effect; may be called again if the store refused the batch.
  using Then = std::function<Status(Batch*, Entry* closed)>;
  struct Ask {
    InodeId inode;
    std::string reason;                    // "claimed by client …", "hard limit", "asked by …"
    std::optional<uint64_t> truncate_to;   // of the file; the session is the truncation's own
    Then then;
    Mono deadline;                         // the job goes on after it, this call does not
  };
  // Returns the closed file when it is closed (and `then` is committed, if this call began the job); a file
  // without a session is success. kWaitingFor at the deadline, naming servers and reasons.
  Task<Result<Entry>> Recover(Ask ask);
  // Returns when the old writer is fenced, durably: the job goes on by itself.
  Task<Result<Generation>> Begin(Ask ask);

  // What a job is doing, into the fields of LeaseInfo from `recovering` on. False: none runs.
  bool Describe(InodeId inode, proto::LeaseInfo* out) const;

  // Recovers, as long as the master serves, what is past its hard limit and what a crash left in recovery;
  // drops holders of shared sessions that stopped renewing, and locks that ran out.
  Task<> Run();

 private:
  struct Job;
  static Task<> RunJob(Recoverer* self, std::shared_ptr<Job> job);

  Env& env_;
  MetaStore& store_;
  Namespace& names_;
  SessionTable& sessions_;
  OpenFiles& files_;
  ChunkTable& chunks_;
  ServerTable& servers_;
  LocationMap& locations_;
  LeaseTable& leases_;
  Orders& orders_;
  Attempts& attempts_;
  const Serving& serving_;
  const Options options_;
  std::map<InodeId, std::shared_ptr<Job>> jobs_;
};

}  // namespace picket
