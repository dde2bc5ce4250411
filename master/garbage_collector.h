// Has the replicas of garbage chunks deleted, in the background and at a bounded rate (F13).
//
// 1. An order names the exact version and instance of a replica that its server has reported in its present
//    session, after its full report; a server's word of this activation, never a memory of an earlier one.
// 2. From the moment an order may have left its victim counts as gone; garbage is counted for nothing
//    anyway, so nothing else follows from that.
// 3. The record goes when no server is known to have a replica, and every live server has reported and
//    was heard from since the chunk was seen as garbage for long enough that a late create shows.
// 4. Replicas of unknown chunks (orphans) are left alone.
// Runs on the master's executor.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/env/env.h"
#include "common/env/sync.h"
#include "master/chunk_table.h"
#include "master/lease_table.h"
#include "master/location_map.h"
#include "master/orders.h"
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
                   LeaseTable& leases, Orders& orders, const Serving& serving, Options options)
      : env_(env),
        activated_(env.Now()),
        store_(store),
        chunks_(chunks),
        servers_(servers),
        locations_(locations),
        leases_(leases),
        orders_(orders),
        serving_(serving),
        options_(options),
        ended_(env) {}

  // Runs as long as the master may delete.
  Task<> Run();
  // One pass over the garbage: orders what is due, forgets what is gone.
  Task<Status> Pass();

  static constexpr size_t kStep = 256;             // garbage chunks looked at between two turns
  static constexpr size_t kMaxInFlight = 64;
  static constexpr size_t kMaxInFlightPerServer = 8;

 private:
  struct Victim {
    ChunkId chunk;
    Replica replica;
    Incarnation incarnation;
  };
  // What is due of one chunk; true when its record may go.
  bool Look(const ChunkRow& garbage, std::vector<Victim>* due);
  bool EveryoneHeardSince(Mono when) const;
  static Task<> Delete(GarbageCollector* self, Victim victim);
  Task<Status> Forget(std::vector<ChunkId> gone);

  Env& env_;
  const Mono activated_;
  MetaStore& store_;
  ChunkTable& chunks_;
  ServerTable& servers_;
  LocationMap& locations_;
  LeaseTable& leases_;
  Orders& orders_;
  const Serving& serving_;
  const Options options_;
  std::map<ChunkId, Mono> first_seen_;  // of the garbage there is
  std::set<std::pair<ChunkId, ServerId>> in_flight_;
  std::map<ServerId, size_t> in_flight_at_;
  Signal ended_;  // an order
};

}  // namespace picket
