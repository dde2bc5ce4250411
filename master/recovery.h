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
//    the file stays open, and Describe tells what it waits for.
// 6. A pending overwrite is abandoned: whoever asked for the new content was never told that it is there, and
//    the old content stays. A lock ends with its lock-delay.
// Runs on the master's executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/env.h"
#include "common/env/sync.h"
#include "master/attempt.h"
#include "master/chunk_table.h"
#include "master/chunk_view.h"
#include "master/lease_table.h"
#include "master/location_map.h"
#include "master/namespace.h"
#include "master/open_files.h"
#include "master/recovery_round.h"
#include "master/session_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class Recoverer {
 public:
  struct Options {
    Nanos scan_interval = 2s;   // for sessions past their limits, and those left by a crash
    Nanos retry = 2s;           // after an attempt that could not be brought to its end; doubled up to the next
    Nanos retry_most = 60s;
    size_t scanned_jobs = 64;   // so many under way and more are not begun unasked; those that wait do not count
    RecoveryRounds::Options rounds;
  };
  Recoverer(Env& env, MetaStore& store, Namespace& names, SessionTable& sessions, OpenFiles& files, ChunkTable& chunks,
            ServerTable& servers, LocationMap& locations, LeaseTable& leases, Orders& orders, Attempts& attempts,
            const ChunkView& view, const Serving& serving, Options options);

  // Goes into the batch that closes the file, after the session is dropped: a claimant opens its own there, of
  // a new generation. Runs at most once with effect; may be called again if the store refused the batch. When
  // it fails it has put nothing into the batch; the file is closed all the same, and Recover answers its error.
  using Then = std::function<Status(Batch*, Entry* closed)>;
  // Goes into the first batch that fences the writer.
  using Fenced = std::function<void(Batch*, const Entry&)>;
  struct Ask {
    InodeId inode;
    std::string reason;                    // "claimed by client …", "hard limit", "asked by …"
    // Of the file, whose chunks are all sealed; the session is the truncation's own. Durable in the inode from
    // the fencing batch on, if it is not already (inode.truncate_to).
    std::optional<uint64_t> truncate_to;
    Then then;
    Mono deadline;                         // the job goes on after it, this call does not
    Fenced fenced;
  };
  // Returns the closed file when it is closed (and `then` is committed, if this call began the job); a file
  // without a session is success. kWaitingFor at the deadline, naming servers and reasons; kNotFound: the file
  // was deleted.
  Task<Result<Entry>> Recover(Ask ask);
  // Returns when the old writer is fenced, durably: the job goes on by itself. The generation that fences it.
  Task<Result<Generation>> Begin(Ask ask);

  // What a job is doing, into the fields of LeaseInfo from `recovering` on. False: none runs.
  bool Describe(InodeId inode, proto::LeaseInfo* out) const;

  // Recovers, as long as the master serves, what is past its hard limit, past its soft limit with an open chunk
  // that nobody can read (its readers wait for nothing else), and what a crash left in recovery;
  // drops holders of shared sessions that stopped renewing, and locks that ran out.
  Task<> Run();

 private:
  struct Job {
    explicit Job(Env& env, Ask a) : ask(std::move(a)), changed(env) {}
    const Ask ask;
    Generation generation;   // that fences the writer; 0: not fenced yet
    uint32_t attempts = 0;
    std::string phase = "fencing";
    std::string failure;     // of the last attempt
    std::vector<ServerId> slow;  // sources that did not finish
    std::shared_ptr<RecoveryRound> round;
    bool waits() const { return !failure.empty() || (round != nullptr && !round->waiting_for.empty()); }

    std::optional<Result<Entry>> result;
    Status then;
    Signal changed;
  };
  // What there is to agree on in a file: its open chunk, or the one that a truncation cuts.
  struct Target {
    ChunkRow chunk;
    std::optional<uint64_t> limit;
  };
  struct Begun {
    Entry entry;
    std::optional<Attempt> attempt;
    record::Chunk record;
    std::optional<uint64_t> limit;
  };

  std::shared_ptr<Job> Start(Ask ask, bool* mine);
  static Task<> RunJob(Recoverer* self, std::shared_ptr<Job> job);
  // One attempt: fence, agree, finish, commit.
  Task<Result<Entry>> Attend(std::shared_ptr<Job> job);
  Task<Result<Begun>> Fence(std::shared_ptr<Job> job);
  Result<std::optional<Target>> FindTarget(const SessionTable::Session& session, const record::Inode& file) const;
  Task<Result<Entry>> Agree(std::shared_ptr<Job> job, Begun begun);
  Task<Result<Entry>> Commit(std::shared_ptr<Job> job, std::optional<RecoveryPlan> plan);
  // The parts of the closing batch. `entry` as the batch leaves it so far.
  Status SealChunk(Batch* batch, Entry* entry, const RecoveryRound& round, const RecoveryPlan& plan);
  Status Truncate(Batch* batch, Entry* entry);
  Task<Result<Entry>> Abandon(std::shared_ptr<Job> job);
  void NoteSealed(const RecoveryRound& round, const RecoveryPlan& plan);
  Task<Status> Stop(const RecoveryRound& round, std::string why);
  Error Waiting(const Job& job) const;
  void Scan();
  // Why the master recovers the session by itself; "": it does not.
  std::string ReasonToRecover(const SessionTable::Session& session) const;
  bool IsUnreadable(ChunkId chunk) const;
  Task<> DropHolder(InodeId inode, ClientId holder, bool delayed);

  Env& env_;
  MetaStore& store_;
  Namespace& names_;
  SessionTable& sessions_;
  OpenFiles& files_;
  ChunkTable& chunks_;
  ServerTable& servers_;
  LocationMap& locations_;
  LeaseTable& leases_;
  Attempts& attempts_;
  const ChunkView& view_;
  const Serving& serving_;
  const Options options_;
  RecoveryRounds rounds_;
  std::map<InodeId, std::shared_ptr<Job>> jobs_;
};

}  // namespace picket
