// Orders to delete a replica, at a bounded rate (design §5, F13).
//
// 1. An order names the exact version and instance of a replica that its server has reported in its present
//    session, after its full report; a server's word of this activation, never a memory of an earlier one.
// 2. From the moment an order may have left its victim counts as gone (location_map).
// 3. The bytes go to quarantine at the server.
// Runs on the master's executor.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/env/env.h"
#include "common/env/sync.h"
#include "master/location_map.h"
#include "master/orders.h"
#include "master/server_table.h"

namespace picket {

struct Victim {
  ChunkId chunk;
  Replica replica;
  Incarnation incarnation;  // of its server
};

class DeleteOrders {
 public:
  DeleteOrders(Env& env, ServerTable& servers, LocationMap& locations, Orders& orders)
      : env_(env), servers_(servers), locations_(locations), orders_(orders), ended_(env) {}

  // Live, and all its replicas reported in its present session.
  bool HasReported(const Replica& replica) const;
  // The replica as a victim, if it may be named in an order.
  std::optional<Victim> Name(ChunkId chunk, const Replica& replica) const;

  // Returns when one more order may leave to that server. Its victim is looked at again after it.
  Task<> Room(ServerId server);
  // Sends the order in the background, unless one is under way or its server says something else by now.
  void Start(const Victim& victim);
  // The same, to its end. kSuperseded when the server says something else by now.
  Task<Status> Delete(Victim victim);

  static constexpr size_t kMaxInFlight = 64;
  static constexpr size_t kMaxInFlightPerServer = 8;

 private:
  static Task<> Run(DeleteOrders* self, Victim victim);
  bool StillThere(const Victim& victim) const;

  Env& env_;
  ServerTable& servers_;
  LocationMap& locations_;
  Orders& orders_;
  std::set<std::pair<ChunkId, ServerId>> in_flight_;
  std::map<ServerId, size_t> in_flight_at_;
  Signal ended_;  // an order
};

}  // namespace picket
