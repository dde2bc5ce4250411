#include "master/recovery_plan.h"

#include <algorithm>

#include "common/base/mutation.h"

namespace picket {
namespace {

using State = MemberAnswer::State;

struct Sorted {
  std::vector<size_t> clean, unclean;
  std::vector<ServerId> silent, failed, gone;
};

bool HasTheSealedContent(const RecoverySituation& s, const MemberAnswer& m) {
  if (!s.sealed_digest || s.limit || PICKET_MUTANT(recovery_sealed_content)) return true;
  return m.length == s.floor && DigestOfCrcs(m.block_crcs) == *s.sealed_digest;
}

Sorted Sort(const RecoverySituation& s) {
  Sorted out;
  for (size_t i = 0; i < s.members.size(); ++i) {
    const MemberAnswer& m = s.members[i];
    switch (m.state) {
      case State::kWaiting: out.silent.push_back(m.server); break;
      case State::kFailed: out.failed.push_back(m.server); break;
      case State::kGone: out.gone.push_back(m.server); break;
      case State::kAnswered:
        if (!HasTheSealedContent(s, m)) {
          out.gone.push_back(m.server);
        } else {
          (m.clean ? out.clean : out.unclean).push_back(i);
        }
    }
  }
  return out;
}

RecoveryPlan Wait(RecoveryPlan plan, std::vector<ServerId> servers, std::string why) {
  plan.step = RecoveryPlan::Step::kWait;
  plan.waiting_for = std::move(servers);
  plan.why = std::move(why);
  return plan;
}

RecoveryPlan Contradiction(RecoveryPlan plan, std::string why) {
  plan.step = RecoveryPlan::Step::kIntegrity;
  plan.why = std::move(why);
  return plan;
}

// Those of `clean` that are sealed under the highest sealing generation; none is sealed: none.
std::vector<size_t> NewestSealed(const RecoverySituation& s, const std::vector<size_t>& clean) {
  std::vector<size_t> newest;
  Generation highest;
  for (size_t i : clean) {
    const Generation generation = s.members[i].sealed_generation;
    if (!generation || (generation < highest && !PICKET_MUTANT(recovery_sealed_generation))) continue;
    if (generation > highest && !PICKET_MUTANT(recovery_sealed_generation)) newest.clear();
    highest = std::max(highest, generation);
    newest.push_back(i);
  }
  return newest;
}

template <class T>
std::vector<T> Join(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

RecoveryPlan PlanRecovery(const RecoverySituation& s) {
  RecoveryPlan plan;
  const Sorted who = Sort(s);
  plan.set = Join(who.clean, who.unclean);
  std::ranges::sort(plan.set);

  if (who.clean.empty()) {
    // Nobody's word is good alone: the longest may be shorter than what an absent one holds.
    const std::vector<ServerId> missing = Join(who.silent, who.failed);
    if ((!missing.empty() || s.more_may_report) && !PICKET_MUTANT(recovery_waits_for_members)) {
      return Wait(std::move(plan), missing, "no member that kept running has answered");
    }
    if (who.unclean.empty()) {
      return Wait(std::move(plan), Join(missing, who.gone), "no member with a usable replica is left");
    }
    plan.source = *std::ranges::max_element(who.unclean, {}, [&](size_t i) { return s.members[i].length; });
    plan.length = s.members[plan.source].length;
    if (plan.length == 0 && !who.gone.empty() && !PICKET_MUTANT(recovery_drop_needs_clean)) {
      return Wait(std::move(plan), who.gone, "only members that restarted have answered, and have nothing");
    }
  } else {
    const bool enough = who.clean.size() >= s.min_replicas;
    const bool wait = enough ? s.patient && !who.silent.empty() : !who.silent.empty() || s.more_may_report;
    if (wait && !PICKET_MUTANT(recovery_waits_for_members)) {
      return Wait(std::move(plan), who.silent,
                  enough ? "about to answer" : "fewer clean members than a write needs have answered");
    }
    if (const std::vector<size_t> sealed = NewestSealed(s, who.clean); !sealed.empty()) {
      plan.source = sealed[0];
      plan.length = s.members[plan.source].length;
      for (size_t i : sealed) {
        if (s.members[i].block_crcs == s.members[plan.source].block_crcs && s.members[i].length == plan.length) continue;
        return Contradiction(std::move(plan), "members that were sealed in one session differ");
      }
    } else {
      const CommonContent common = FindCommonContent(s.members, who.clean);
      plan.source = common.source;
      plan.length = common.length;
    }
  }
  const MemberAnswer& source = s.members[plan.source];
  plan.block_crcs.assign(source.block_crcs.begin(),
                         source.block_crcs.begin() + static_cast<ptrdiff_t>(BlocksIn(plan.length)));
  plan.digest = DigestOfCrcs(plan.block_crcs);

  uint64_t acked = s.floor;
  for (size_t i : plan.set) acked = std::max(acked, s.members[i].known_acked);
  if (s.limit) acked = std::min(acked, *s.limit);
  if (plan.length < acked && !PICKET_MUTANT(recovery_acked_length)) {
    return Contradiction(std::move(plan), std::to_string(acked) + " bytes were acknowledged, but the members agree on " +
                                              std::to_string(plan.length) + " only");
  }
  plan.step = plan.length == 0 ? RecoveryPlan::Step::kDrop : RecoveryPlan::Step::kFinish;
  return plan;
}

}  // namespace picket
