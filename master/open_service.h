// OPEN_FILE and RELEASE: write sessions on files that exist (client_master.proto). Who may have one is
// session_claim.h's to say.
//
// 1. A session is opened in one batch with its answer: a file that nobody holds; one more holder; in place of
//    a session under which nothing is unsealed. Where a chunk is open, the file is recovered first, and the
//    claimant's session opens in the batch that closes it (design §4.5).
// 2. Opening changes nothing that users see of a file's content: its mod_revision stays.
// 3. The pending content of an overwrite has no name: opening the path opens the old file.
// 4. A lock that was not released keeps others from the lock for its lock-delay; its own writer comes back at
//    once. Sessions that write wait for no lock-delay: their bytes are fenced.
// Runs on the master's executor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/env/env.h"
#include "common/rpc/server.h"
#include "master/change.h"
#include "master/chunk_table.h"
#include "master/namespace.h"
#include "master/open_files.h"
#include "master/recovery.h"
#include "master/session_claim.h"
#include "master/session_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class OpenService {
 public:
  struct Options {
    // Recoverer::Recover.
    std::function<Task<Result<Entry>>(Recoverer::Ask)> recover;
    // A chunk as clients see it; without: not told.
    std::function<proto::ChunkLocation(const ChunkRow&)> describe;
    // The signed proof of holding a lock; without: not told.
    std::function<proto::Sequencer(const std::string& path, const SessionTable::Session&, ClientId holder)> sequencer;
    std::function<uint32_t()> live_servers;
    uint32_t min_write_replicas = 2;
    uint32_t default_replication = 3;
    uint64_t default_chunk_size = 64 << 20;
  };
  OpenService(Env& env, MetaStore& store, Changes changes, Namespace& names, SessionTable& sessions, OpenFiles& files,
              ChunkTable& chunks, Options options);

  // Before server->Start.
  void Register(RpcServer* server);

  // kLeaseConflict, kLockDelayed (both with retry_after_ms), kConflict, kWaitingFor (a recovery that is not at
  // its end by the deadline: the same request waits on), and what the path is not.
  Task<Result<proto::OpenResponse>> Open(proto::OpenRequest request, Mono deadline);
  // Returns when the session is over, of the last record appender when the file is closed. What CheckWriter
  // refuses; kInvalidArgument: the session of a single writer, which closes.
  Task<Result<proto::ReleaseResponse>> Release(proto::ReleaseRequest request, Mono deadline);

  static constexpr Nanos kAnswerMargin = 500ms;  // of the caller's time, kept for the answer

 private:
  // What one look at the file comes to.
  struct Step {
    Batch batch;
    std::optional<SessionTable::Session> opened;
    std::optional<Entry> entry;
    std::string recover;            // not empty: the file is recovered first, for this reason
    bool await = false;             // it is being recovered
    bool own_writer = false;
    std::optional<Error> refusal;   // after the batch
  };
  Result<SessionTable::Spec> SpecOf(const proto::OpenRequest& request) const;
  Result<Step> Look(const proto::OpenRequest& request, const Path& path, const SessionTable::Spec& spec);
  Result<Step> Make(const proto::OpenRequest& request, const Path& path, const SessionTable::Spec& spec);
  SessionTable::Session OpenIn(Batch* batch, SessionTable::Spec spec, Entry* entry);
  // Recovers for a claimant, or awaits a recovery: the answer, if its session was opened in the closing batch.
  Task<Result<std::optional<proto::OpenResponse>>> Claimed(proto::OpenRequest request, SessionTable::Spec spec,
                                                           Step step, Mono deadline);
  proto::OpenResponse Answer(const Entry& entry, const SessionTable::Session& session) const;
  // Adds what is true now.
  Task<Result<proto::OpenResponse>> Complete(proto::OpenRequest request, proto::OpenResponse response) const;
  Result<Step> LookAtRelease(const proto::ReleaseRequest& request);
  Task<Status> Ended(proto::ReleaseRequest request, Mono deadline) const;
  std::optional<Error> Delayed(const Path& path, InodeId inode) const;

  Env& env_;
  MetaStore& store_;
  const Changes changes_;
  Namespace& names_;
  SessionTable& sessions_;
  OpenFiles& files_;
  ChunkTable& chunks_;
  const Options options_;
};

}  // namespace picket
