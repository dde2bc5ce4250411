#include "master/grant_plan.h"

#include <algorithm>

#include "common/base/mutation.h"

namespace picket {
namespace {

using State = MemberAnswer::State;

struct Prefix {
  size_t source = 0;
  uint64_t length = 0;
};

// The longest prefix that all of `among` have, and one that has it. Where only the last, partial block of
// the shortest differs in extent, its bytes decide: the others prove theirs against its CRC, or fetch it.
Prefix CommonPrefix(const std::vector<MemberAnswer>& members, const std::vector<size_t>& among) {
  const size_t shortest = *std::ranges::min_element(among, {}, [&](size_t i) { return members[i].length; });
  const MemberAnswer& low = members[shortest];
  for (uint64_t block = 0; block < low.block_crcs.size(); ++block) {
    const uint64_t block_end = std::min((block + 1) * kBlockSize, low.length);
    for (size_t i : among) {
      const MemberAnswer& other = members[i];
      const bool same_extent = std::min((block + 1) * kBlockSize, other.length) == block_end;
      if (same_extent && other.block_crcs[block] != low.block_crcs[block] && !PICKET_MUTANT(reconcile_crcs)) {
        return Prefix{shortest, block * kBlockSize};
      }
    }
  }
  return Prefix{shortest, low.length};
}

std::string Bytes(uint64_t n) { return std::to_string(n) + " bytes"; }

}  // namespace

GrantPlan PlanGrant(const GrantSituation& s) {
  GrantPlan plan;
  std::vector<size_t> clean, unclean;
  std::vector<ServerId> silent, failed;
  for (size_t i = 0; i < s.members.size(); ++i) {
    const MemberAnswer& m = s.members[i];
    if (m.state == State::kAnswered) {
      (m.clean || PICKET_MUTANT(unclean_replica) ? clean : unclean).push_back(i);
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
      plan.why = "no member has a usable replica any more";
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
    const Prefix prefix = CommonPrefix(s.members, clean);
    plan.source = prefix.source;
    plan.length = prefix.length;
  }
  const MemberAnswer& source = s.members[plan.source];
  plan.block_crcs.assign(source.block_crcs.begin(),
                         source.block_crcs.begin() + static_cast<ptrdiff_t>(BlocksIn(plan.length)));

  uint64_t acked = s.writer_acked;
  for (size_t i : plan.set) acked = std::max(acked, s.members[i].known_acked);
  if (plan.length < acked && !PICKET_MUTANT(acked_length)) {
    plan.step = GrantPlan::Step::kIntegrity;
    plan.contradiction = !clean.empty();
    plan.why = Bytes(acked) + " were acknowledged, but " +
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
  // The common prefix is the whole of each: nothing to cut, nothing to fill.
  const bool equal = unclean.empty() && plan.joiners == 0 &&
                     std::ranges::all_of(clean, [&](size_t i) { return s.members[i].length == plan.length; });
  plan.step = equal ? GrantPlan::Step::kCommit : GrantPlan::Step::kReconcile;
  return plan;
}

}  // namespace picket
