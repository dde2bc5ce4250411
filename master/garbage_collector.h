// Has the replicas of garbage chunks deleted, in the background (delete_orders), and forgets the chunks.
//
// 1. The record goes when no server is known to have a replica, and every live server has reported and
//    was heard from since the chunk was seen as garbage for long enough that a late create shows.
// 2. Replicas of other chunks, and of none, are the stale collector's.
// Runs on the master's executor.
#pragma once

#include <map>
#include <vector>

#include "common/env/env.h"
#include "master/chunk_table.h"
#include "master/delete_orders.h"
#include "master/lease_table.h"
#include "master/location_map.h"
#include "master/server_table.h"
#include "master/serving.h"

namespace picket {

class GarbageCollector {
 public:
  struct Options {
    Nanos interval = 2s;
    // A chunk is garbage for at least that long before its record goes: more than a create order and two
    // heartbeats take.
    Nanos settle = 20s;
    // After an activation no record goes for that long: servers that were away come back with replicas.
    Nanos dead_after = 60s;
  };
  GarbageCollector(Env& env, MetaStore& store, ChunkTable& chunks, ServerTable& servers, LocationMap& locations,
                   LeaseTable& leases, DeleteOrders& deletes, const Serving& serving, Options options)
      : env_(env),
        activated_(env.Now()),
        store_(store),
        chunks_(chunks),
        servers_(servers),
        locations_(locations),
        leases_(leases),
        deletes_(deletes),
        serving_(serving),
        options_(options) {}

  // Runs as long as the master may delete.
  Task<> Run();
  // One pass over the garbage: orders what is due, forgets what is gone.
  Task<Status> Pass();

  static constexpr size_t kStep = 256;  // garbage chunks looked at between two turns

 private:
  // What is due of one chunk; true when its record may go.
  bool Look(const ChunkRow& garbage, std::vector<Victim>* due);
  bool EveryoneHeardSince(Mono when) const;
  Task<Status> Forget(std::vector<ChunkId> gone);

  Env& env_;
  const Mono activated_;
  MetaStore& store_;
  ChunkTable& chunks_;
  ServerTable& servers_;
  LocationMap& locations_;
  LeaseTable& leases_;
  DeleteOrders& deletes_;
  const Serving& serving_;
  const Options options_;
  std::map<ChunkId, Mono> first_seen_;  // of the garbage there is
};

}  // namespace picket
