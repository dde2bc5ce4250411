// What the members of a chunk answered in an attempt, and the content that they have in common. Pure; used by
// grants (grant_plan.h) and recoveries (recovery_plan.h), which differ in whom they listen to.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/block.h"
#include "common/base/ids.h"

namespace picket {

// What is known of one member in an attempt.
struct MemberAnswer {
  enum class State {
    kWaiting,    // asked, or not reachable yet: may still answer
    kAnswered,   // promised: durable up to `length` (F5)
    kFailed,     // left out: named by the writer, or refused; may hold data
    kGone,       // declared dead, or has no usable replica any more
  };
  ServerId server;
  State state = State::kWaiting;
  bool clean = false;
  uint64_t length = 0;
  std::vector<uint32_t> block_crcs;  // of ⌈length / block⌉ blocks
  uint64_t known_acked = 0;
  bool overwritten = false;          // since the chunk was last sealed (D13)
  Generation sealed_generation;      // of a seal, committed or not (F11); 0 = not sealed
};

struct CommonContent {
  size_t source = 0;      // index: has exactly the content
  uint64_t length = 0;
  bool equal = true;      // the content is the whole of each: nothing to cut, nothing to fill
};

// The longest prefix, by block CRC, that all of `among` (indexes into `members`) have applied, and one that
// has it (F6, D13). Where only the last, partial block of the shortest differs in extent, its bytes decide: the
// others prove theirs against its CRC, or fetch it. Where bytes were overwritten, those below the shortest
// length may lawfully differ, by an overwrite that was not acknowledged: the shortest one's content is the
// content (F10). REQUIRES: `among` is not empty, and each of them has answered.
CommonContent FindCommonContent(const std::vector<MemberAnswer>& members, const std::vector<size_t>& among);

// The digest of a chunk whose blocks have these CRCs: CRC32C over the table of them, little-endian.
uint32_t DigestOfCrcs(const std::vector<uint32_t>& block_crcs);

}  // namespace picket
