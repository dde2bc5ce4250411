// The decision of a recovery attempt: from what the participants answered to BEGIN_RECOVERY, what to do next.
// Pure (design §4.3); recovery_round.cc asks and orders, recovery.cc commits.
//
// 1. Only participants are looked at: the members of an open chunk; of one whose record is still sealed, the
//    replicas that count or are between two committed sets (F1, F3).
// 2. Clean members that are sealed under the highest sealing generation win, and must agree: a seal that was
//    not committed is provisional, but the newest attempt knew all that the earlier ones did (F11).
// 3. Else the content is what all clean answering members have in common (common_prefix.h): every
//    acknowledged byte is in it, whichever of them answered (F6, D13, F10). The others are made equal to it.
// 4. With enough clean members it goes on at once; with fewer the rest are waited for until they are dead
//    (D7). With none, all must have answered or be dead, and the longest is the source.
// 5. An empty chunk is dropped on the word of a clean member, or of every member (F20).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "master/common_prefix.h"

namespace picket {

struct RecoverySituation {
  std::vector<MemberAnswer> members;
  size_t min_replicas = 1;   // 1 for a one-replica file, else min_write_replicas
  uint64_t floor = 0;        // length of the chunk's last committed seal: never less
  // The record is still sealed, with this digest: replicas that do not have exactly that are left out.
  std::optional<uint32_t> sealed_digest;
  bool more_may_report = false;  // and not every server has said yet what it has
  // A truncation: the participants answered as if the bytes beyond were not there.
  std::optional<uint64_t> limit;
  // Enough have answered, and there is a moment for those that are about to.
  bool patient = false;
};

struct RecoveryPlan {
  enum class Step {
    kFinish,     // seal `set` at `length`, with the digest
    kDrop,       // nothing was ever written: the chunk goes
    kWait,       // for `waiting_for`
    kIntegrity,  // acknowledged bytes are missing, or seals of one generation contradict each other
  };
  Step step = Step::kWait;
  std::vector<size_t> set;   // participants, indexes into members
  size_t source = 0;         // index: has exactly the content below
  uint64_t length = 0;       // L
  std::vector<uint32_t> block_crcs;
  uint32_t digest = 0;
  std::vector<ServerId> waiting_for;
  std::string why;           // of kWait and kIntegrity
};

RecoveryPlan PlanRecovery(const RecoverySituation& situation);

}  // namespace picket
