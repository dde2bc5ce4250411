// CONCAT: the chunks of the sources move to the end of the target, in one batch; no byte is copied, and the
// sources cease to exist. What a reader of the target sees is its old end and all of theirs, or neither.
//
// 1. All are closed files, named once, of one chunk size and replication; the target and every source but the
//    last end at a chunk boundary. A refusal names the file that breaks a rule, and the rule.
// 2. A chunk keeps its id, versions and replicas; its record names the target from then on.
// Runs on the master's executor.
#pragma once

#include <vector>

#include "common/rpc/server.h"
#include "master/change.h"
#include "master/chunk_table.h"
#include "master/namespace.h"
#include "master/open_files.h"
#include "master/purge_queue.h"
#include "master/session_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class Concat {
 public:
  Concat(Env& env, Changes changes, Namespace& names, SessionTable& sessions, OpenFiles& files, PurgeQueue& purge,
         ChunkTable& chunks)
      : env_(env),
        changes_(changes),
        names_(names),
        sessions_(sessions),
        files_(files),
        purge_(purge),
        chunks_(chunks) {}

  // Before server->Start.
  void Register(RpcServer* server);

  static constexpr size_t kMaxChunks = 10'000;   // that move in one batch
  static constexpr size_t kMaxSources = 1'000;

 private:
  Result<proto::ConcatResponse> Change(const proto::ConcatRequest& request, Batch* batch);
  // A closed file outside the trash.
  Result<Entry> File(const Path& path) const;
  Status CheckSource(const Path& path, const Entry& source, const Path& target_path, const Entry& target) const;

  Env& env_;
  const Changes changes_;
  Namespace& names_;
  SessionTable& sessions_;
  OpenFiles& files_;
  PurgeQueue& purge_;
  ChunkTable& chunks_;
};

}  // namespace picket
