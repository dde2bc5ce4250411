// QUARANTINE: what waits in a chunkserver's quarantine, for an operator to see, to bring back, or to let go.
//
// 1. Everything goes through this master, by order: a server restores and purges for nobody else.
// 2. What is the last hope of a chunk is named; without force only what nobody will miss is purged (D16).
// 3. A restored replica is judged as any other that is reported: it may count, or be collected again.
// Runs on the master's executor.
#pragma once

#include <string>
#include <vector>

#include "common/env/env.h"
#include "common/rpc/server.h"
#include "master/change.h"
#include "master/chunk_table.h"
#include "master/chunk_view.h"
#include "master/location_map.h"
#include "master/namespace.h"
#include "master/orders.h"
#include "master/server_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class QuarantineService {
 public:
  QuarantineService(Changes changes, MetaStore& store, Namespace& names, ChunkTable& chunks, ChunkView& view,
                    ServerTable& servers, LocationMap& locations, Orders& orders)
      : changes_(changes),
        store_(store),
        names_(names),
        chunks_(chunks),
        view_(view),
        servers_(servers),
        locations_(locations),
        orders_(orders) {}

  // Before server->Start.
  void Register(RpcServer* server);
  // kNotFound: no such server has registered; what the server answers. An entry that the action did not touch
  // says why; one that is gone already counts as purged.
  Task<Result<proto::QuarantineResponse>> Serve(proto::QuarantineRequest request);

  static constexpr int kMaxPerCall = 1000;  // entries named in a request
  static constexpr Nanos kOrderTimeout = 30s;

 private:
  // Every entry that the server lists, with what this master knows of its chunk.
  Task<Result<std::vector<proto::QuarantineEntry>>> List(ServerId server);
  Status Annotate(proto::QuarantineEntry* entry) const;
  Task<Result<proto::QuarantineResponse>> Act(proto::QuarantineRequest request);
  Task<> Restore(ServerId server, std::vector<proto::QuarantineEntry*> entries);
  Task<Status> Purge(ServerId server, std::vector<proto::QuarantineEntry*> entries, bool force);
  Result<Incarnation> BootOf(ServerId server) const;

  Changes changes_;
  MetaStore& store_;
  Namespace& names_;
  ChunkTable& chunks_;
  ChunkView& view_;
  ServerTable& servers_;
  LocationMap& locations_;
  Orders& orders_;
};

}  // namespace picket
