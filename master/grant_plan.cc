#include "master/grant_plan.h"

#include <algorithm>

#include "common/base/mutation.h"

namespace picket {
namespace {

using State = MemberAnswer::State;

std::string Bytes(uint64_t n) { return std::to_string(n) + " bytes"; }

bool HasSealedContent(const GrantSituation& s, const MemberAnswer& m) {
  return m.length == s.sealed_length && DigestOfCrcs(m.block_crcs) == *s.sealed_digest;
}

}  // namespace

GrantPlan PlanGrant(const GrantSituation& s) {
  GrantPlan plan;
  std::vector<size_t> clean, unclean;
  std::vector<ServerId> silent, failed;
  bool clean_equal = false;
  for (size_t i = 0; i < s.members.size(); ++i) {
    const MemberAnswer& m = s.members[i];
    if (m.state == State::kAnswered) {
      if (s.sealed_digest && !HasSealedContent(s, m) && !PICKET_MUTANT(reopen_content)) continue;
      (m.clean || s.sealed_digest || PICKET_MUTANT(unclean_replica) ? clean : unclean).push_back(i);
      plan.set.push_back(i);
    } else if (m.state == State::kWaiting) {
      silent.push_back(m.server);
    } else if (m.state == State::kFailed) {
      failed.push_back(m.server);
    }
  }

  if (clean.empty()) {
    // Nobody's word is good alone: the longest may be shorter than what an absent one holds.
    plan.waiting_for = silent;
    plan.waiting_for.insert(plan.waiting_for.end(), failed.begin(), failed.end());
    if (!plan.waiting_for.empty()) {
      plan.why = "no member that kept running has answered";
      return plan;
    }
    if (unclean.empty()) {
      plan.step = GrantPlan::Step::kNotEnough;
      plan.why = s.sealed_digest ? "no replica with the sealed content has answered"
                                 : "no member has a usable replica any more";
      return plan;
    }
    plan.source = *std::ranges::max_element(unclean, {}, [&](size_t i) { return s.members[i].length; });
    plan.length = s.members[plan.source].length;
  } else {
    if (s.patient && !silent.empty()) {
      plan.waiting_for = silent;
      plan.why = "members have not answered yet";
      return plan;
    }
    const CommonContent common = FindCommonContent(s.members, clean);
    plan.source = common.source;
    plan.length = common.length;
    clean_equal = common.equal;
  }
  const MemberAnswer& source = s.members[plan.source];
  plan.block_crcs.assign(source.block_crcs.begin(),
                         source.block_crcs.begin() + static_cast<ptrdiff_t>(BlocksIn(plan.length)));

  uint64_t acked = s.writer_acked;
  if (!PICKET_MUTANT(reopen_floor)) acked = std::max(acked, s.sealed_length);
  for (size_t i : plan.set) acked = std::max(acked, s.members[i].known_acked);
  if (plan.length < acked && !PICKET_MUTANT(acked_length)) {
    plan.step = GrantPlan::Step::kIntegrity;
    plan.contradiction = !clean.empty();
    plan.why = Bytes(acked) + " were acknowledged or sealed, but " +
               (clean.empty() ? "every member has restarted and the longest has " + Bytes(plan.length)
                              : "the members agree on " + Bytes(plan.length) + " only");
    return plan;
  }

  if (plan.set.size() < s.min_replicas) {
    plan.joiners = s.min_replicas - plan.set.size();
    if (plan.joiners > s.joiner_candidates) {
      plan.step = GrantPlan::Step::kNotEnough;
      plan.why = std::to_string(plan.set.size()) + " of the " + std::to_string(s.min_replicas) +
                 " replicas that a write needs have answered, and no other server can take one";
      return plan;
    }
  }
  const bool equal = unclean.empty() && plan.joiners == 0 && clean_equal;
  plan.step = equal ? GrantPlan::Step::kCommit : GrantPlan::Step::kReconcile;
  return plan;
}

}  // namespace picket
