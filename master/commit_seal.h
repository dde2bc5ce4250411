// COMMIT_SEAL: the writer has sealed every member of a chunk; its length and digest become durable, the
// members are dropped, and with `close` the file is closed in the same batch.
//
// Accepted only at minted == current == the writer's version, from the file's writer, naming exactly the
// members (D9, D10); all of it checked inside the batch (F8).
// Runs on the master's executor.
#pragma once

#include "common/env/env.h"
#include "master/answer_table.h"
#include "master/attempt.h"
#include "master/chunk_table.h"
#include "master/lease_table.h"
#include "master/location_map.h"
#include "master/namespace.h"
#include "master/open_files.h"
#include "master/server_table.h"
#include "master/session_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class CommitSeal {
 public:
  CommitSeal(Env& env, MetaStore& store, AnswerTable& answers, Namespace& names, SessionTable& sessions,
             OpenFiles& files, ChunkTable& chunks, Attempts& attempts, ServerTable& servers, LocationMap& locations, LeaseTable& leases)
      : env_(env),
        store_(store),
        answers_(answers),
        names_(names),
        sessions_(sessions),
        files_(files),
        chunks_(chunks),
        attempts_(attempts),
        servers_(servers),
        locations_(locations),
        leases_(leases) {}

  // kStaleVersion, kSuperseded (an attempt is newer than what was committed), kConflict (not the members,
  // already sealed), kInvalidArgument (length).
  Task<Result<proto::CommitSealResponse>> Run(proto::CommitSealRequest request);

 private:
  Result<record::Chunk> Check(const proto::CommitSealRequest& request) const;
  Result<proto::CommitSealResponse> Change(const proto::CommitSealRequest& request, const record::Chunk& record,
                                           Batch* batch);
  void NoteSealed(const proto::CommitSealRequest& request, const record::Chunk& before);

  Env& env_;
  MetaStore& store_;
  AnswerTable& answers_;
  Namespace& names_;
  SessionTable& sessions_;
  OpenFiles& files_;
  ChunkTable& chunks_;
  Attempts& attempts_;
  ServerTable& servers_;
  LocationMap& locations_;
  LeaseTable& leases_;
};

}  // namespace picket
