// A chunkserver's heartbeat: it lives, what it has room for, what changed, the primary leases it wants extended
// because it takes mutations, and what it would like to let go for good (consent.h). Beats of a session are
// numbered: a late one is answered, and undoes nothing that a newer one told.
// Runs on the master's executor.
#pragma once

#include "common/env/env.h"
#include "common/rpc/server.h"
#include "master/chunk_report.h"
#include "master/chunk_table.h"
#include "master/chunk_view.h"
#include "master/lease_table.h"
#include "master/server_table.h"
#include "master/serving.h"
#include "master/token_keys.h"
#include "proto/chunkserver_master.pb.h"

namespace picket {

class HeartbeatService {
 public:
  HeartbeatService(Env& env, MetaStore& store, ChunkTable& chunks, ServerTable& servers, LeaseTable& leases,
                   ChunkReports& reports, Serving& serving, const TokenKeys& keys, const ChunkView& view)
      : env_(env),
        store_(store),
        chunks_(chunks),
        servers_(servers),
        leases_(leases),
        reports_(reports),
        serving_(serving),
        keys_(keys),
        view_(view) {}

  // Before server->Start.
  void Register(RpcServer* server);
  // kNotFound: not the session of a registered server; it registers again.
  Result<proto::HeartbeatResponse> Beat(const proto::HeartbeatRequest& request);

 private:
  Task<Result<proto::HeartbeatResponse>> Serve(proto::HeartbeatRequest request);
  // The lease of a committed version without an attempt under way, asked for by one of its members.
  bool MayExtend(const Server& server, ChunkId chunk, Version version) const;
  // What of the offered may go.
  void Consent(const proto::HeartbeatRequest& request, proto::HeartbeatResponse* response) const;

  Env& env_;
  MetaStore& store_;
  ChunkTable& chunks_;
  ServerTable& servers_;
  LeaseTable& leases_;
  ChunkReports& reports_;
  Serving& serving_;
  const TokenKeys& keys_;
  const ChunkView& view_;
};

}  // namespace picket
