#include "master/replica_judge.h"

#include "common/base/mutation.h"
#include "master/history.h"

namespace picket {

namespace {

bool HasSealedContent(const record::Chunk& record, const ReplicaFacts& replica) {
  if (replica.length != record.length()) return false;
  // An open replica reports no digest.
  return replica.state != proto::SEALED || replica.digest == record.digest() || PICKET_MUTANT(sealed_digest);
}

Worth JudgeOfSealed(const record::Chunk& record, const ReplicaFacts& replica) {
  const bool sealed = replica.state == proto::SEALED;
  if (replica.version.value == record.current()) {
    return sealed && HasSealedContent(record, replica) ? Worth::kCounted : Worth::kStale;
  }
  if (replica.version.value < record.current() || PICKET_MUTANT(between_readable)) return Worth::kStale;
  // At most `minted`. A replica that is being filled has not the bytes yet.
  const bool open = replica.state == proto::OPEN || replica.state == proto::RECOVERING;
  return (open || sealed) && HasSealedContent(record, replica) ? Worth::kBetween : Worth::kStale;
}

}  // namespace

Worth JudgeReplica(const record::Chunk* record, uint32_t epoch, const ReplicaFacts& replica) {
  if (replica.version.epoch() > epoch) return Worth::kAhead;
  if (record == nullptr) return Worth::kOrphan;
  if (replica.version.value > record->minted()) return Worth::kAhead;
  if (record->inode() == 0) return Worth::kGarbage;
  if (replica.leaving && !PICKET_MUTANT(stale_victim_gone)) return Worth::kLeaving;
  if (record->sealed()) return JudgeOfSealed(*record, replica);
  for (const record::Member& member : record->members()) {
    if (member.server() != replica.server.value) continue;
    if (replica.state == proto::CORRUPT) return Worth::kStale;
    return member.incarnation() == replica.incarnation.value ? Worth::kMember : Worth::kUnclean;
  }
  return PICKET_MUTANT(membership) && replica.version.value >= record->current() ? Worth::kMember : Worth::kStale;
}

Worth JudgeReplica(const record::Chunk* record, const std::vector<record::Activation>& history,
                   const ReplicaFacts& replica) {
  const bool vouched = record != nullptr && replica.version.value == record->current();
  if (replica.version && !vouched && !IsOfHistory(history, replica.version.epoch())) return Worth::kAhead;
  if (record == nullptr && replica.version.epoch() < AdoptedEpoch(history)) return Worth::kAhead;
  return JudgeReplica(record, history.back().epoch(), replica);
}

std::string_view WorthName(Worth worth) {
  switch (worth) {
    case Worth::kMember: return "member";
    case Worth::kUnclean: return "unclean";
    case Worth::kCounted: return "counted";
    case Worth::kBetween: return "between two sets";
    case Worth::kStale: return "stale";
    case Worth::kLeaving: return "being deleted";
    case Worth::kGarbage: return "garbage";
    case Worth::kOrphan: return "orphan";
    case Worth::kAhead: return "ahead of the master";
  }
  return "?";
}

}  // namespace picket
