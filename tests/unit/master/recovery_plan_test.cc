// The state matrix of lease recovery: every pair and triple of what a participant can be, against the rules as
// PROTOCOL.md states them; and the findings of the model checker, each by name.
#include "master/recovery_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace picket {
namespace {

using State = MemberAnswer::State;
using Step = RecoveryPlan::Step;
using testing::ElementsAre;

constexpr uint64_t K = kBlockSize;

// Blocks of one content, as far as `length`; `variant` differs from block `from` on.
std::vector<uint32_t> Blocks(uint64_t length, uint32_t variant = 0, uint64_t from = 0) {
  std::vector<uint32_t> crcs;
  for (uint64_t i = 0; i < BlocksIn(length); ++i) {
    const uint64_t extent = std::min((i + 1) * K, length) - i * K;
    crcs.push_back(static_cast<uint32_t>(i * 1'000'003 + extent) + (i >= from ? variant << 24 : 0));
  }
  return crcs;
}

// A replica as BEGIN_RECOVERY finds it.
struct Kind {
  enum class Up { kYes, kSilent, kDead, kRefuses };
  enum class Mark { kBehind, kCurrent, kAbove };  // `current`; kAbove: raised by an attempt that was not committed
  Up up = Up::kYes;
  Mark mark = Mark::kCurrent;
  bool clean = true;
  uint64_t length = 0;
  uint32_t sealed = 0;  // generation
};

// What it answers: a mark below `current` is REPLICA_BEHIND, and stays (F3).
MemberAnswer AnswerOf(const Kind& k, uint64_t server) {
  MemberAnswer m;
  m.server = ServerId(server);
  switch (k.up) {
    case Kind::Up::kSilent: m.state = State::kWaiting; return m;
    case Kind::Up::kDead: m.state = State::kGone; return m;
    case Kind::Up::kRefuses: m.state = State::kFailed; return m;
    case Kind::Up::kYes: break;
  }
  m.state = k.mark == Kind::Mark::kBehind ? State::kGone : State::kAnswered;
  if (m.state == State::kGone) return m;
  m.clean = k.clean;
  m.length = k.length;
  m.block_crcs = Blocks(k.length);
  m.sealed_generation = Generation(k.sealed);
  return m;
}

RecoverySituation SituationOf(const std::vector<Kind>& kinds) {
  RecoverySituation s;
  for (size_t i = 0; i < kinds.size(); ++i) s.members.push_back(AnswerOf(kinds[i], i + 1));
  s.min_replicas = 2;
  return s;
}

struct Expected {
  Step step = Step::kWait;
  uint64_t length = 0;
  std::vector<size_t> set;
};

// The rules, once more: participants and length.
Expected Rules(const std::vector<Kind>& kinds) {
  std::vector<size_t> usable, clean;
  bool silent = false, refusing = false;
  for (size_t i = 0; i < kinds.size(); ++i) {
    silent = silent || kinds[i].up == Kind::Up::kSilent;
    refusing = refusing || kinds[i].up == Kind::Up::kRefuses;
    if (kinds[i].up != Kind::Up::kYes || kinds[i].mark == Kind::Mark::kBehind) continue;
    usable.push_back(i);
    if (kinds[i].clean) clean.push_back(i);
  }
  Expected e;
  if (silent && clean.size() < 2) return e;
  if (usable.empty()) return e;
  e.set = usable;
  if (clean.empty()) {
    if (refusing) return Expected();
    for (size_t i : usable) e.length = std::max(e.length, kinds[i].length);
    if (e.length == 0 && usable.size() < kinds.size()) return Expected();
  } else {
    uint32_t newest = 0;
    for (size_t i : clean) newest = std::max(newest, kinds[i].sealed);
    e.length = ~uint64_t{0};
    for (size_t i : clean) {
      if (newest != 0 && kinds[i].sealed != newest) continue;
      if (newest != 0 && e.length != ~uint64_t{0} && kinds[i].length != e.length) {
        e.step = Step::kIntegrity;
        return e;
      }
      e.length = std::min(e.length, kinds[i].length);
    }
  }
  e.step = e.length == 0 ? Step::kDrop : Step::kFinish;
  return e;
}

std::vector<Kind> AllKinds() {
  std::vector<Kind> kinds;
  for (Kind::Up up : {Kind::Up::kSilent, Kind::Up::kDead, Kind::Up::kRefuses}) {
    Kind k;
    k.up = up;
    kinds.push_back(k);
  }
  Kind behind;
  behind.mark = Kind::Mark::kBehind;
  behind.length = 2 * K;
  kinds.push_back(behind);
  behind.sealed = 2;  // F3: sealed, and stale
  kinds.push_back(behind);
  for (Kind::Mark mark : {Kind::Mark::kCurrent, Kind::Mark::kAbove}) {
    for (bool clean : {true, false}) {
      for (uint32_t sealed : {0u, 1u, 2u}) {
        for (uint64_t length : {uint64_t{0}, K, K + 7}) {
          Kind k;
          k.mark = mark;
          k.clean = clean;
          k.sealed = sealed;
          k.length = length;
          kinds.push_back(k);
        }
      }
    }
  }
  return kinds;
}

std::string Show(const std::vector<Kind>& kinds) {
  std::string out;
  for (const Kind& k : kinds) {
    out += " [up " + std::to_string(static_cast<int>(k.up)) + " mark " + std::to_string(static_cast<int>(k.mark)) +
           (k.clean ? " clean " : " unclean ") + std::to_string(k.length) + " sealed " + std::to_string(k.sealed) + "]";
  }
  return out;
}

// True when all is as it must be.
bool Holds(const std::vector<Kind>& kinds) {
  const RecoverySituation s = SituationOf(kinds);
  const RecoveryPlan plan = PlanRecovery(s);
  const Expected e = Rules(kinds);
  if (plan.step != e.step) return false;
  if (e.step == Step::kWait || e.step == Step::kIntegrity) return true;
  if (plan.length != e.length || plan.set != e.set) return false;
  const bool has_source = std::ranges::find(plan.set, plan.source) != plan.set.end();
  if (!has_source || plan.block_crcs.size() != BlocksIn(plan.length)) return false;
  if (plan.digest != DigestOfCrcs(plan.block_crcs)) return false;
  // The source has the content; what every clean member has applied may have been acknowledged.
  const MemberAnswer& source = s.members[plan.source];
  if (source.length < plan.length) return false;
  uint64_t applied = ~uint64_t{0};
  for (size_t i : plan.set) {
    if (s.members[i].clean) applied = std::min(applied, s.members[i].length);
  }
  if (applied != ~uint64_t{0} && plan.length < applied) return false;
  if (plan.step == Step::kDrop) return true;
  // The attempt dies when any of them have finished: the next one comes to the same end.
  for (size_t finished = 1; finished < size_t{1} << plan.set.size(); ++finished) {
    std::vector<Kind> after = kinds;
    for (size_t i = 0; i < plan.set.size(); ++i) {
      Kind& k = after[plan.set[i]];
      k.mark = Kind::Mark::kAbove;
      if ((finished >> i & 1) == 0) continue;
      k.sealed = 3;
      k.clean = true;
      k.length = plan.length;
    }
    for (Kind& k : after) {
      if (k.up == Kind::Up::kSilent || k.up == Kind::Up::kRefuses) k.up = Kind::Up::kDead;
    }
    const RecoveryPlan again = PlanRecovery(SituationOf(after));
    if (again.step != Step::kFinish || again.length != plan.length || again.digest != plan.digest) return false;
  }
  return true;
}

TEST(RecoveryPlanMatrix, EveryPair) {
  const std::vector<Kind> kinds = AllKinds();
  for (const Kind& a : kinds) {
    for (const Kind& b : kinds) ASSERT_TRUE(Holds({a, b})) << Show({a, b});
  }
}

TEST(RecoveryPlanMatrix, EveryTriple) {
  const std::vector<Kind> kinds = AllKinds();
  // The order of the others says nothing; the first one is each of them in turn.
  for (const Kind& a : kinds) {
    for (size_t b = 0; b < kinds.size(); ++b) {
      for (size_t c = b; c < kinds.size(); ++c) ASSERT_TRUE(Holds({a, kinds[b], kinds[c]})) << Show({a, kinds[b], kinds[c]});
    }
  }
}

// ---- one table, a row per rule ----------------------------------------------------------------------

Kind Clean(uint64_t length, uint32_t sealed = 0) {
  Kind k;
  k.length = length;
  k.sealed = sealed;
  return k;
}
Kind Unclean(uint64_t length, uint32_t sealed = 0) {
  Kind k = Clean(length, sealed);
  k.clean = false;
  return k;
}
Kind Behind(uint64_t length, uint32_t sealed = 0) {
  Kind k = Clean(length, sealed);
  k.mark = Kind::Mark::kBehind;
  return k;
}
Kind Not(Kind::Up up) {
  Kind k;
  k.up = up;
  return k;
}
const Kind kSilent = Not(Kind::Up::kSilent);
const Kind kDead = Not(Kind::Up::kDead);
const Kind kRefuses = Not(Kind::Up::kRefuses);

struct Row {
  const char* rule;
  std::vector<Kind> members;
  Step step;
  uint64_t length;
  std::vector<size_t> set;
};

TEST(RecoveryPlan, Table) {
  const Row rows[] = {
      {"all equal", {Clean(9), Clean(9), Clean(9)}, Step::kFinish, 9, {0, 1, 2}},
      {"F6 what all have applied", {Clean(K + 9), Clean(K), Clean(K + 5)}, Step::kFinish, K, {0, 1, 2}},
      {"D7 two clean are enough while the third is dead", {Clean(9), Clean(9), kDead}, Step::kFinish, 9, {0, 1}},
      {"D7 or refuses", {Clean(9), Clean(9), kRefuses}, Step::kFinish, 9, {0, 1}},
      {"D7 one clean waits for the silent", {Clean(9), kSilent, kDead}, Step::kWait, 0, {}},
      {"D7 an unclean one does not make it enough", {Clean(9), Unclean(9), kSilent}, Step::kWait, 0, {}},
      {"D7 and goes alone when the others are dead", {Clean(9), kDead, kDead}, Step::kFinish, 9, {0}},
      {"F4 the unclean one is made equal", {Clean(9), Unclean(5), kDead}, Step::kFinish, 9, {0, 1}},
      {"F4 also when it has more", {Clean(5), Unclean(9), kDead}, Step::kFinish, 5, {0, 1}},
      {"F4 without a clean one all must answer", {Unclean(9), Unclean(5), kSilent}, Step::kWait, 0, {}},
      {"F4 or be dead: the longest", {Unclean(9), Unclean(5), kDead}, Step::kFinish, 9, {0, 1}},
      {"F4 who refuses may have more", {Unclean(9), Unclean(5), kRefuses}, Step::kWait, 0, {}},
      {"F3 a stale seal does not win", {Clean(9), Clean(9), Behind(5, 2)}, Step::kFinish, 9, {0, 1}},
      {"F3 nor a stale empty one", {Clean(9), Behind(0), kDead}, Step::kFinish, 9, {0}},
      {"F11 the newest seal wins", {Clean(9, 2), Clean(0, 1), Clean(12)}, Step::kFinish, 9, {0, 1, 2}},
      {"F11 the newest seal wins, also when shorter", {Clean(0, 1), Clean(K, 2), Clean(K + 3)}, Step::kFinish, K, {0, 1, 2}},
      {"F11 not the seal of an unclean one", {Unclean(9, 2), Clean(5, 1), Clean(5)}, Step::kFinish, 5, {0, 1, 2}},
      {"seals of one generation contradict each other", {Clean(9, 2), Clean(5, 2), Clean(9)}, Step::kIntegrity, 0, {}},
      {"F20 empty, says a clean one", {Clean(0), kDead, kDead}, Step::kDrop, 0, {0}},
      {"F20 empty, says an unclean one, others dead", {Unclean(0), kDead, kDead}, Step::kWait, 0, {}},
      {"F20 empty, say all", {Unclean(0), Unclean(0), Unclean(0)}, Step::kDrop, 0, {0, 1, 2}},
      {"F20 nobody says anything", {kDead, kDead, kDead}, Step::kWait, 0, {}},
  };
  for (const Row& row : rows) {
    const RecoveryPlan plan = PlanRecovery(SituationOf(row.members));
    EXPECT_EQ(plan.step, row.step) << row.rule << ": " << plan.why;
    if (plan.step != row.step || row.step == Step::kWait || row.step == Step::kIntegrity) continue;
    EXPECT_EQ(plan.length, row.length) << row.rule;
    EXPECT_EQ(plan.set, row.set) << row.rule;
  }
}

TEST(RecoveryPlan, WaitingNamesWhoIsWaitedForAndWhy) {
  const RecoveryPlan plan = PlanRecovery(SituationOf({Clean(9), kSilent, kDead}));
  EXPECT_THAT(plan.waiting_for, ElementsAre(ServerId(2)));
  EXPECT_FALSE(plan.why.empty());
  EXPECT_THAT(PlanRecovery(SituationOf({kDead, Unclean(0)})).waiting_for, ElementsAre(ServerId(1)));
}

TEST(RecoveryPlan, EnoughWaitOnlyWhilePatient) {
  RecoverySituation s = SituationOf({Clean(9), Clean(9), kSilent});
  s.patient = true;
  EXPECT_EQ(PlanRecovery(s).step, Step::kWait);
  s.patient = false;
  EXPECT_EQ(PlanRecovery(s).step, Step::kFinish);
}

TEST(RecoveryPlan, OneReplicaFileNeedsOne) {
  RecoverySituation s = SituationOf({Clean(9)});
  s.min_replicas = 1;
  EXPECT_EQ(PlanRecovery(s).step, Step::kFinish);
}

// An overwrite that one member applied and nobody acknowledged: one content for all, and nothing is cut.
TEST(RecoveryPlan, F10ContentThatDiffersIsMadeEqual) {
  RecoverySituation s = SituationOf({Clean(3 * K), Clean(3 * K), Clean(3 * K)});
  s.members[0].block_crcs = Blocks(3 * K, 1, 1);
  s.members[0].overwritten = true;
  const RecoveryPlan plan = PlanRecovery(s);
  EXPECT_EQ(plan.step, Step::kFinish);
  EXPECT_EQ(plan.length, 3 * K);
  EXPECT_EQ(plan.block_crcs, s.members[plan.source].block_crcs);
  EXPECT_EQ(plan.digest, DigestOfCrcs(s.members[plan.source].block_crcs));
}

TEST(RecoveryPlan, F10OverwrittenAndOfDifferentLengths) {
  RecoverySituation s = SituationOf({Clean(3 * K), Clean(2 * K + 9), Clean(3 * K)});
  s.members[1].block_crcs = Blocks(2 * K + 9, 1);
  s.members[1].overwritten = true;
  const RecoveryPlan plan = PlanRecovery(s);
  EXPECT_EQ(plan.length, 2 * K + 9);
  EXPECT_EQ(plan.source, 1u);
  EXPECT_EQ(plan.block_crcs, s.members[1].block_crcs);
}

TEST(RecoveryPlan, D13WithoutOverwritesTheCommonPrefixEndsWhereTheyDiffer) {
  RecoverySituation s = SituationOf({Clean(3 * K), Clean(3 * K)});
  s.members[0].block_crcs = Blocks(3 * K, 1, 2);
  EXPECT_EQ(PlanRecovery(s).length, 2 * K);
}

TEST(RecoveryPlan, BelowAnAcknowledgedLengthIsIntegrity) {
  RecoverySituation s = SituationOf({Clean(9), Clean(5)});
  s.members[0].known_acked = 6;
  EXPECT_EQ(PlanRecovery(s).step, Step::kIntegrity);
  s.members[0].known_acked = 5;
  EXPECT_EQ(PlanRecovery(s).step, Step::kFinish);
  s.floor = 6;  // as it was sealed last
  EXPECT_EQ(PlanRecovery(s).step, Step::kIntegrity);
}

// A chunk that was being opened again and still is sealed in the record: only its content takes part.
TEST(RecoveryPlan, BetweenTwoSetsOnlyTheSealedContentTakesPart) {
  RecoverySituation s = SituationOf({Clean(9), Clean(9, 1), Clean(5)});
  s.floor = 9;
  s.sealed_digest = DigestOfCrcs(Blocks(9));
  RecoveryPlan plan = PlanRecovery(s);
  EXPECT_EQ(plan.step, Step::kFinish);
  EXPECT_THAT(plan.set, ElementsAre(0, 1));
  EXPECT_EQ(plan.length, 9u);
  s.members[0].block_crcs = Blocks(9, 1);  // same length, other bytes
  EXPECT_THAT(PlanRecovery(s).set, ElementsAre(1));
}

TEST(RecoveryPlan, BetweenTwoSetsServersThatHaveNotReportedAreWaitedFor) {
  RecoverySituation s = SituationOf({Clean(9, 1)});
  s.floor = 9;
  s.sealed_digest = DigestOfCrcs(Blocks(9));
  s.more_may_report = true;
  EXPECT_EQ(PlanRecovery(s).step, Step::kWait);
  s.more_may_report = false;
  EXPECT_EQ(PlanRecovery(s).step, Step::kFinish);
  s.members.clear();
  EXPECT_EQ(PlanRecovery(s).step, Step::kWait);
}

// A truncation that died when one replica was cut: the promises are cut too, so all are equal.
TEST(RecoveryPlan, TruncationTakesAcknowledgedBytesOnPurpose) {
  RecoverySituation s = SituationOf({Clean(7, 3), Clean(7, 1), Clean(7, 1)});
  for (MemberAnswer& m : s.members) m.known_acked = 9;
  s.floor = 9;
  s.sealed_digest = 4711;
  s.limit = 7;
  const RecoveryPlan plan = PlanRecovery(s);
  EXPECT_EQ(plan.step, Step::kFinish) << plan.why;
  EXPECT_EQ(plan.length, 7u);
  EXPECT_THAT(plan.set, ElementsAre(0, 1, 2));
  s.members[0].length = 6;  // less than what the truncation leaves
  s.members[0].block_crcs = Blocks(6);
  EXPECT_EQ(PlanRecovery(s).step, Step::kIntegrity);
}

}  // namespace
}  // namespace picket
