// What becomes of the replicas of one chunk that are ahead of this history, when an operator says "adopt"
// (design §7, D14). Pure; adopt_service.cc carries it out.
//
// 1. Only the newest of them are taken over: those at the highest version. The others stay ahead, until they
//    are discarded.
// 2. Of a chunk that is sealed here they must be sealed, agree in length and digest, and be no shorter than
//    what was sealed here: that is a floor (I31).
// 3. Of an open one they become its members, unclean: lease recovery finds the content, from the longest
//    verified one (F4), once each has answered or is dead.
// 4. The record vouches for their version from then on. The next number that is minted is above it, because
//    the epoch is.
#pragma once

#include <string>
#include <vector>

#include "master/location_map.h"
#include "proto/records.pb.h"

namespace picket {

struct Adoption {
  bool possible = false;
  std::string why;       // not
  Version version;       // that is taken over
  record::Chunk record;  // as it is then
  // Whether this one of the replicas ahead is taken over.
  bool Takes(const Replica& replica) const { return possible && replica.version == version; }
};

// `record` null: there is none. `ahead`: every replica of the chunk that is, at least one; each server once.
// `epoch`: of this master.
Adoption PlanAdoption(const record::Chunk* record, const std::vector<Replica>& ahead, uint32_t epoch);

}  // namespace picket
