// The decision of a grant attempt: from what the members of a chunk answered, what to do next. Pure
// (design §2.3–2.4); grant.cc asks, sends and commits.
//
// 1. Only members are looked at (F1). A clean member is one whose server has not restarted since the
//    set was committed; an unclean one is no source while a clean one answers (F4).
// 2. The common length is the longest prefix, by block CRC, that all clean answering members have
//    applied, not what they know to be acknowledged (F6, D13). An ack needs every member of the set,
//    so every acknowledged byte is below it, whichever members answered.
// 3. Where bytes were overwritten, clean members may differ below the common length by what was not
//    acknowledged: the shortest one's content is the content (D13, F10).
// 4. Differing answers, an unclean replica or a joiner are made equal under a version of their own (F2).
// 5. A sealed chunk that is opened again goes on from exactly what was sealed: whoever answers something else
//    takes no part. What was sealed never gets shorter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/block.h"
#include "common/base/ids.h"
#include "master/common_prefix.h"

namespace picket {

struct GrantSituation {
  std::vector<MemberAnswer> members;
  size_t min_replicas = 1;       // 1 for a one-replica file, else min_write_replicas
  size_t joiner_candidates = 0;  // servers that could take a new replica
  uint64_t writer_acked = 0;
  uint64_t sealed_length = 0;    // at the chunk's last committed seal
  // The record is sealed, with this digest: the content tells a good replica, whatever boot of its server.
  std::optional<uint32_t> sealed_digest;
  bool patient = false;          // there is time to wait for those who have not answered
};

struct GrantPlan {
  enum class Step {
    kCommit,     // the answers are equal and clean: `set` at the attempt's version
    kReconcile,  // make `set` (and `joiners` new replicas) equal under a version of its own
    kWait,       // for `waiting_for`
    kNotEnough,  // fewer replicas than the minimum, and nobody to join
    kIntegrity,  // acknowledged bytes are missing
  };
  Step step = Step::kWait;
  std::vector<size_t> set;   // indexes into members
  size_t joiners = 0;
  size_t source = 0;         // index: has exactly the content below
  uint64_t length = 0;       // L
  std::vector<uint32_t> block_crcs;
  std::vector<ServerId> waiting_for;
  // kIntegrity: clean replicas contradict what was acknowledged. False: all members lost power, and what
  // was acknowledged without a sync may lawfully be gone.
  bool contradiction = false;
  std::string why;
};

GrantPlan PlanGrant(const GrantSituation& situation);

}  // namespace picket
