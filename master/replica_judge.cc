#include "master/replica_judge.h"

#include "common/base/mutation.h"

namespace picket {

Worth JudgeReplica(const record::Chunk* record, uint32_t epoch, const ReplicaFacts& replica) {
  if (replica.version.epoch() > epoch) return Worth::kAhead;
  if (record == nullptr) return Worth::kOrphan;
  if (replica.version.value > record->minted()) return Worth::kAhead;
  if (record->inode() == 0) return Worth::kGarbage;
  if (record->sealed()) {
    const bool same = replica.state == proto::SEALED && replica.version.value == record->current() &&
                      replica.length == record->length() &&
                      (PICKET_MUTANT(sealed_digest) || replica.digest == record->digest());
    return same ? Worth::kCounted : Worth::kStale;
  }
  for (const record::Member& member : record->members()) {
    if (member.server() != replica.server.value) continue;
    if (replica.state == proto::CORRUPT) return Worth::kStale;
    return member.incarnation() == replica.incarnation.value ? Worth::kMember : Worth::kUnclean;
  }
  return PICKET_MUTANT(membership) && replica.version.value >= record->current() ? Worth::kMember : Worth::kStale;
}

std::string_view WorthName(Worth worth) {
  switch (worth) {
    case Worth::kMember: return "member";
    case Worth::kUnclean: return "unclean";
    case Worth::kCounted: return "counted";
    case Worth::kStale: return "stale";
    case Worth::kGarbage: return "garbage";
    case Worth::kOrphan: return "orphan";
    case Worth::kAhead: return "ahead of the master";
  }
  return "?";
}

}  // namespace picket
