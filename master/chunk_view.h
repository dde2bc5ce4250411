// A chunk as clients see it: record, replicas with what they are worth, primary. Pure reading of the tables.
// Runs on the master's executor.
#pragma once

#include "common/env/env.h"
#include "master/chunk_table.h"
#include "master/lease_table.h"
#include "master/location_map.h"
#include "master/meta_store.h"
#include "master/replica_judge.h"
#include "master/server_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class ChunkView {
 public:
  ChunkView(Env& env, MetaStore& store, ServerTable& servers, LocationMap& locations, LeaseTable& leases)
      : env_(env), store_(store), servers_(servers), locations_(locations), leases_(leases) {}

  // The replicas that readers may be sent to: the primary first, then live servers, then suspect ones, each by
  // id. With `all_replicas` also those that nobody may read and those of dead servers, last.
  proto::ChunkLocation Describe(const ChunkRow& chunk, bool all_replicas) const;
  // Readers may be sent to one of its replicas at least.
  bool CanBeRead(const ChunkRow& chunk) const;
  // Replicas that count and whose server is not dead.
  size_t CountGood(const ChunkRow& chunk) const;
  Worth Judge(const record::Chunk* record, const Replica& replica) const;

 private:
  std::vector<proto::ReplicaLocation> Replicas(const ChunkRow& chunk) const;

  Env& env_;
  MetaStore& store_;
  ServerTable& servers_;
  LocationMap& locations_;
  LeaseTable& leases_;
};

}  // namespace picket
