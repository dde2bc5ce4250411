// Which chunkservers disappointed lately: a reader asks them last. A preference, never a verdict; it
// fades after kAvoidFor. Bounded. Pure: the caller brings the time.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "client/core/location_cache.h"
#include "common/base/ids.h"
#include "common/env/task.h"

namespace picket {

class ServerHealth {
 public:
  static constexpr Nanos kAvoidFor = 30s;
  static constexpr size_t kMaxServers = 1024;

  // It failed, or was too slow.
  void Disappointed(ServerId server, Mono now);
  void Served(ServerId server) { avoid_until_.erase(server); }
  bool Avoided(ServerId server, Mono now) const;
  std::vector<ServerId> AllAvoided(Mono now) const;
  void Forgive() { avoid_until_.clear(); }

  // The order in which to try: servers without a mark before those with one; in each group `preferred`
  // (0: none) first, then from a place that `spread` chooses, so that the readers of one chunk do not all
  // ask the same server.
  std::vector<ReplicaPlace> Order(const std::vector<ReplicaPlace>& replicas, ServerId preferred, uint64_t spread,
                                  Mono now) const;

 private:
  std::map<ServerId, Mono> avoid_until_;
};

}  // namespace picket
