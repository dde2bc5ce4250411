#include "master/grant_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace picket {
namespace {

using State = MemberAnswer::State;
using Step = GrantPlan::Step;
using testing::ElementsAre;

// A replica whose block i has the content `blocks[i]`; the last one reaches to `length`. A shorter extent of
// the same content has another CRC.
MemberAnswer Answer(uint64_t server, uint64_t length, std::vector<uint32_t> blocks, bool clean = true,
                    uint64_t known_acked = 0) {
  MemberAnswer m;
  m.server = ServerId(server);
  m.state = State::kAnswered;
  m.clean = clean;
  m.length = length;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const uint64_t extent = std::min((i + 1) * kBlockSize, length) - i * kBlockSize;
    m.block_crcs.push_back(blocks[i] * 1'000'003 + static_cast<uint32_t>(extent));
  }
  m.known_acked = known_acked;
  return m;
}
MemberAnswer Absent(uint64_t server, State state) {
  MemberAnswer m;
  m.server = ServerId(server);
  m.state = state;
  return m;
}

GrantSituation Of(std::vector<MemberAnswer> members) {
  GrantSituation s;
  s.members = std::move(members);
  s.min_replicas = 2;
  return s;
}

constexpr uint64_t K = kBlockSize;

TEST(GrantPlan, EqualCleanAnswersCommit) {
  const GrantPlan plan = PlanGrant(Of({Answer(1, K + 5, {1, 2}), Answer(2, K + 5, {1, 2}), Answer(3, K + 5, {1, 2})}));
  EXPECT_EQ(plan.step, Step::kCommit);
  EXPECT_THAT(plan.set, ElementsAre(0, 1, 2));
  EXPECT_EQ(plan.length, K + 5);
}

TEST(GrantPlan, EmptyReplicasAreEqual) {
  EXPECT_EQ(PlanGrant(Of({Answer(1, 0, {}), Answer(2, 0, {})})).step, Step::kCommit);
}

TEST(GrantPlan, WaitsForTheSilentOnlyWhilePatient) {
  GrantSituation s = Of({Answer(1, 5, {1}), Answer(2, 5, {1}), Absent(3, State::kWaiting)});
  s.patient = true;
  const GrantPlan wait = PlanGrant(s);
  EXPECT_EQ(wait.step, Step::kWait);
  EXPECT_THAT(wait.waiting_for, ElementsAre(ServerId(3)));
  s.patient = false;
  const GrantPlan go = PlanGrant(s);
  EXPECT_EQ(go.step, Step::kCommit);
  EXPECT_THAT(go.set, ElementsAre(0, 1));
}

// What a secondary knows to be acknowledged lags behind what the client was told: the applied prefix counts.
TEST(GrantPlan, F6CommonLengthIsWhatAllHaveApplied) {
  const GrantPlan plan = PlanGrant(Of({Answer(1, 3 * K, {1, 2, 3}), Answer(2, 2 * K, {1, 2}, true, 0)}));
  EXPECT_EQ(plan.step, Step::kReconcile);
  EXPECT_EQ(plan.length, 2 * K);
  EXPECT_EQ(plan.source, 1u);
  EXPECT_EQ(plan.block_crcs.size(), 2u);
}

TEST(GrantPlan, PartialTailOfTheShortestDecides) {
  const GrantPlan plan = PlanGrant(Of({Answer(1, 2 * K, {1, 2}), Answer(2, K + 100, {1, 2})}));
  EXPECT_EQ(plan.step, Step::kReconcile);
  EXPECT_EQ(plan.length, K + 100);
  EXPECT_EQ(plan.source, 1u);
  EXPECT_EQ(plan.block_crcs, Answer(2, K + 100, {1, 2}).block_crcs);
}

TEST(GrantPlan, D13EqualLengthIsNotEqualContent) {
  const GrantPlan plan = PlanGrant(Of({Answer(1, 3 * K, {1, 2, 3}), Answer(2, 3 * K, {1, 9, 3})}));
  EXPECT_EQ(plan.step, Step::kReconcile);
  EXPECT_EQ(plan.length, K);
  EXPECT_EQ(plan.block_crcs.size(), 1u);
}

TEST(GrantPlan, LengthBelowAnAcknowledgedOneIsIntegrity) {
  GrantPlan plan = PlanGrant(Of({Answer(1, 2 * K, {1, 2}, true, 2 * K), Answer(2, K, {1})}));
  EXPECT_EQ(plan.step, Step::kIntegrity);
  EXPECT_TRUE(plan.contradiction);
  GrantSituation s = Of({Answer(1, K, {1}), Answer(2, K, {1})});
  s.writer_acked = K + 1;
  plan = PlanGrant(s);
  EXPECT_EQ(plan.step, Step::kIntegrity);
  EXPECT_TRUE(plan.contradiction);
  s.writer_acked = K;
  EXPECT_EQ(PlanGrant(s).step, Step::kCommit);
}

// A replica whose server restarted has lost what was acknowledged and not synced: it decides nothing.
TEST(GrantPlan, F4UncleanReplicaIsNoSource) {
  const GrantPlan plan = PlanGrant(Of({Answer(1, 0, {}, false), Answer(2, K, {1})}));
  EXPECT_EQ(plan.step, Step::kReconcile);
  EXPECT_EQ(plan.length, K);
  EXPECT_EQ(plan.source, 1u);
  EXPECT_THAT(plan.set, ElementsAre(0, 1));
}

TEST(GrantPlan, F4EqualUncleanReplicaIsReconciledAllTheSame) {
  EXPECT_EQ(PlanGrant(Of({Answer(1, K, {1}, false), Answer(2, K, {1})})).step, Step::kReconcile);
}

TEST(GrantPlan, F4WithoutACleanAnswerEveryMemberMustAnswerOrBeDead) {
  for (State absent : {State::kWaiting, State::kFailed}) {
    const GrantPlan plan = PlanGrant(Of({Answer(1, K, {1}, false), Answer(2, 2 * K, {1, 2}, false), Absent(3, absent)}));
    EXPECT_EQ(plan.step, Step::kWait);
    EXPECT_THAT(plan.waiting_for, ElementsAre(ServerId(3)));
  }
  const GrantPlan plan =
      PlanGrant(Of({Answer(1, K, {1}, false), Answer(2, 2 * K, {1, 2}, false), Absent(3, State::kGone)}));
  EXPECT_EQ(plan.step, Step::kReconcile);
  EXPECT_EQ(plan.source, 1u);  // the longest
  EXPECT_EQ(plan.length, 2 * K);
}

TEST(GrantPlan, AllPowerLostBelowAcknowledgedIsToldButNoContradiction) {
  GrantSituation s = Of({Answer(1, 0, {}, false), Answer(2, K, {1}, false)});
  s.writer_acked = 2 * K;
  const GrantPlan plan = PlanGrant(s);
  EXPECT_EQ(plan.step, Step::kIntegrity);
  EXPECT_FALSE(plan.contradiction);
}

TEST(GrantPlan, D12TooFewTakeJoinersOrSayNotEnough) {
  GrantSituation s = Of({Answer(1, K, {1}), Absent(2, State::kFailed), Absent(3, State::kGone)});
  EXPECT_EQ(PlanGrant(s).step, Step::kNotEnough);
  s.joiner_candidates = 1;
  GrantPlan plan = PlanGrant(s);
  EXPECT_EQ(plan.step, Step::kReconcile);
  EXPECT_EQ(plan.joiners, 1u);
  EXPECT_EQ(plan.source, 0u);
  // No joiner where enough have answered.
  s = Of({Answer(1, K, {1}), Answer(2, K, {1}), Absent(3, State::kGone)});
  s.joiner_candidates = 5;
  plan = PlanGrant(s);
  EXPECT_EQ(plan.step, Step::kCommit);
  EXPECT_EQ(plan.joiners, 0u);
}

TEST(GrantPlan, NobodyLeft) {
  GrantSituation s = Of({Absent(1, State::kGone), Absent(2, State::kGone)});
  s.joiner_candidates = 3;  // nothing to fill them from
  EXPECT_EQ(PlanGrant(s).step, Step::kNotEnough);
}

// Bytes below the common length differ only by an overwrite that was not acknowledged: nothing is cut.
TEST(GrantPlan, F10OverwrittenBytesAreMadeEqualNotCut) {
  MemberAnswer a = Answer(1, 3 * K, {1, 9, 3}, true, 3 * K);
  MemberAnswer b = Answer(2, 3 * K, {1, 2, 3}, true, 3 * K);
  EXPECT_EQ(PlanGrant(Of({a, b})).step, Step::kIntegrity);  // appended bytes never differ like that
  a.overwritten = true;
  GrantPlan plan = PlanGrant(Of({a, b}));
  EXPECT_EQ(plan.step, Step::kReconcile);
  EXPECT_EQ(plan.length, 3 * K);
  EXPECT_EQ(plan.block_crcs, (plan.source == 0 ? a : b).block_crcs);
  // The shortest is the source: what is beyond it was not acknowledged.
  b = Answer(2, 2 * K, {1, 2});
  a.known_acked = 2 * K;
  plan = PlanGrant(Of({a, b}));
  EXPECT_EQ(plan.step, Step::kReconcile);
  EXPECT_EQ(plan.length, 2 * K);
  EXPECT_EQ(plan.source, 1u);
  // Acknowledged bytes are never lost to it.
  a.known_acked = 3 * K;
  EXPECT_EQ(PlanGrant(Of({a, b})).step, Step::kIntegrity);
}

GrantSituation Reopened(std::vector<MemberAnswer> members, const MemberAnswer& sealed) {
  GrantSituation s = Of(std::move(members));
  s.sealed_length = sealed.length;
  s.sealed_digest = DigestOfCrcs(sealed.block_crcs);
  return s;
}

TEST(GrantPlan, AReopenedChunkGoesOnFromWhatWasSealed) {
  const MemberAnswer sealed = Answer(1, K + 5, {1, 2});
  GrantPlan plan = PlanGrant(Reopened({sealed, Answer(2, K + 5, {1, 2})}, sealed));
  EXPECT_EQ(plan.step, Step::kCommit);
  EXPECT_EQ(plan.length, K + 5);
  // The content decides, not the boot of the server: what was sealed is durable.
  plan = PlanGrant(Reopened({sealed, Answer(2, K + 5, {1, 2}, false)}, sealed));
  EXPECT_EQ(plan.step, Step::kCommit);
  EXPECT_THAT(plan.set, ElementsAre(0, 1));
  // Shorter, longer, or different: no part in it, and nobody follows.
  for (const MemberAnswer& other : {Answer(3, K, {1}), Answer(3, 2 * K, {1, 2}), Answer(3, K + 5, {1, 3})}) {
    plan = PlanGrant(Reopened({sealed, other, Answer(2, K + 5, {1, 2})}, sealed));
    EXPECT_EQ(plan.step, Step::kCommit);
    EXPECT_THAT(plan.set, ElementsAre(0, 2));
    EXPECT_EQ(PlanGrant(Reopened({other}, sealed)).step, Step::kNotEnough);
  }
  GrantSituation one = Reopened({sealed, Absent(2, State::kGone)}, sealed);
  one.joiner_candidates = 1;
  plan = PlanGrant(one);
  EXPECT_EQ(plan.step, Step::kReconcile);
  EXPECT_EQ(plan.joiners, 1u);
  EXPECT_EQ(plan.length, K + 5);
}

// Open again, the chunk keeps its floor, also where nobody knows of an acknowledgement.
TEST(GrantPlan, NeverBelowTheLastSeal) {
  GrantSituation s = Of({Answer(1, 2 * K, {1, 2}), Answer(2, K, {1})});
  s.sealed_length = K;
  EXPECT_EQ(PlanGrant(s).step, Step::kReconcile);
  s.sealed_length = K + 1;
  const GrantPlan plan = PlanGrant(s);
  EXPECT_EQ(plan.step, Step::kIntegrity);
  EXPECT_TRUE(plan.contradiction);
}

TEST(GrantPlan, OneReplicaFileNeedsOne) {
  GrantSituation s = Of({Answer(1, K, {1})});
  s.min_replicas = 1;
  EXPECT_EQ(PlanGrant(s).step, Step::kCommit);
}

}  // namespace
}  // namespace picket
