// COMMIT_SEAL: the writer has sealed every member of a chunk; its length and digest become durable, the
// members are dropped, and with `close` the file is closed in the same batch.
//
// 1. Accepted only at minted == current == the writer's version, from a holder of the file's session, naming
//    exactly the members (D9, D10); all of it checked inside the batch (F8).
// 2. Of several appenders each may commit the seal of the chunk that is full: the same content again, at the
//    same version, is success and changes nothing.
// 3. Never below the length of an earlier seal.
// Runs on the master's executor.
#pragma once

#include "common/env/env.h"
#include "master/attempt.h"
#include "master/change.h"
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
  CommitSeal(Env& env, Changes changes, Namespace& names, SessionTable& sessions, OpenFiles& files, ChunkTable& chunks,
             Attempts& attempts, ServerTable& servers, LocationMap& locations, LeaseTable& leases)
      : env_(env),
        changes_(changes),
        names_(names),
        sessions_(sessions),
        files_(files),
        chunks_(chunks),
        attempts_(attempts),
        servers_(servers),
        locations_(locations),
        leases_(leases) {}

  // kStaleVersion, kSuperseded (an attempt is newer than what was committed), kConflict (not the members,
  // sealed with other content, a close while others hold the file), kIntegrity (below an earlier seal),
  // kInvalidArgument (length).
  Task<Result<proto::CommitSealResponse>> Run(proto::CommitSealRequest request);

 private:
  struct Before {
    record::Chunk record;
    bool sealed = false;  // with this very content, by another holder
  };
  Result<Before> Check(const proto::CommitSealRequest& request) const;
  Status CheckMembersAndLength(const proto::CommitSealRequest& request, const record::Chunk& record) const;
  Result<proto::CommitSealResponse> Change(const proto::CommitSealRequest& request, const Before& before, Batch* batch);
  void NoteSealed(const proto::CommitSealRequest& request, const record::Chunk& before);

  Env& env_;
  const Changes changes_;
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
