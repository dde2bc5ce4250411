// ADOPT: an operator decides what becomes of another history that chunkservers have seen (design §7, F12, D14).
// Never automatic.
//
// 1. A master that stopped with HISTORY_LOST is told to serve all the same: durably, its next activation gets
//    an epoch above every mark that servers have shown to this process. It serves when it is started again; the
//    old epoch is over then at every server that registers. A server with a higher mark that shows up later
//    stops it again.
// 2. Of a master that serves, replicas ahead of its history are taken over as adopt_plan says, or discarded:
//    quarantined by exact version and instance. Those that can't be taken over say why, and stay as they are:
//    served to nobody, deleted by nobody.
// 3. dry_run says the same and does nothing.
// Runs on the master's executor.
#pragma once

#include <map>
#include <vector>

#include "common/env/env.h"
#include "common/rpc/server.h"
#include "master/adopt_plan.h"
#include "master/change.h"
#include "master/chunk_table.h"
#include "master/delete_orders.h"
#include "master/lease_table.h"
#include "master/location_map.h"
#include "master/namespace.h"
#include "master/registration.h"
#include "master/server_table.h"
#include "master/serving.h"
#include "proto/client_master.pb.h"

namespace picket {

class AdoptService {
 public:
  AdoptService(Env& env, Changes changes, MetaStore& store, Namespace& names, ChunkTable& chunks,
               ServerTable& servers, LocationMap& locations, LeaseTable& leases, DeleteOrders& deletes,
               const Registration& registration, const Serving& serving)
      : env_(env),
        changes_(changes),
        store_(store),
        names_(names),
        chunks_(chunks),
        servers_(servers),
        locations_(locations),
        leases_(leases),
        deletes_(deletes),
        registration_(registration),
        serving_(serving) {}

  // Before server->Start.
  void Register(RpcServer* server);
  Task<Result<proto::AdoptResponse>> Serve(proto::AdoptRequest request);

  static constexpr size_t kStep = 256;              // chunks looked at between two turns
  static constexpr size_t kMaxChunksPerCall = 5000;  // with replicas ahead; the call is repeated for more

 private:
  // The chunks that have replicas ahead, of those asked for.
  Task<Result<std::vector<ChunkId>>> FindAhead(std::vector<uint64_t> only);
  std::vector<Replica> AheadOf(ChunkId chunk, const record::Chunk* record) const;
  // One line of the answer for each replica ahead of the chunk, without the action.
  Result<std::vector<proto::AdoptResponse::Item>> Describe(ChunkId chunk, const record::Chunk* record,
                                                           const std::vector<Replica>& ahead) const;

  Task<Result<proto::AdoptResponse>> AdoptHistory(proto::AdoptRequest request);
  uint32_t EpochAboveMarks() const;
  // Plans for the chunk, into the answer and, unless it is null, the batch.
  Status AdoptChunk(ChunkId chunk, Batch* batch, proto::AdoptResponse* response);
  Task<Status> DiscardChunk(ChunkId chunk, bool dry_run, proto::AdoptResponse* response);

  Env& env_;
  Changes changes_;
  MetaStore& store_;
  Namespace& names_;
  ChunkTable& chunks_;
  ServerTable& servers_;
  LocationMap& locations_;
  LeaseTable& leases_;
  DeleteOrders& deletes_;
  const Registration& registration_;
  const Serving& serving_;
};

}  // namespace picket
