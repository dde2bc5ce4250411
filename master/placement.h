// Where the replicas of a new chunk go. Pure: candidates in, servers out (GFS §4.1, §4.2).
//
// 1. Servers are distinct; racks are used as evenly as the candidates allow.
// 2. A server that could not take the whole chunk takes none.
// 3. Among racks used alike the emptier disk goes first; recent creations count as used space, because
//    heavy writing follows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace picket {

struct PlacementCandidate {
  ServerId server;
  std::string rack;
  bool live = false;             // suspect and dead servers take no new replica
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;       // beyond what the server keeps in reserve
  uint32_t recent_creations = 0;  // placed lately; decays
};

struct PlacementRequest {
  size_t count = 0;
  uint64_t chunk_bytes = 0;
  std::vector<ServerId> exclude;      // never these
  std::vector<std::string> racks;     // of the replicas that the chunk already has
  uint64_t tie = 0;                   // random: spreads the choice among equals
};

// Why live servers could not take a chunk of that size, each with its reason: for the message of a refusal.
std::string DescribeUnfit(uint64_t chunk_bytes, const std::vector<PlacementCandidate>& candidates);

// At most `count` servers, best first; fewer when there are not that many fit ones.
std::vector<ServerId> Place(const PlacementRequest& request, const std::vector<PlacementCandidate>& candidates);

}  // namespace picket
