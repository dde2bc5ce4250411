#include "master/replica_judge.h"

#include <gtest/gtest.h>

namespace picket {
namespace {

constexpr uint32_t kEpoch = 3;
const Version kCurrent(3, 5);

record::Chunk Open() {
  record::Chunk c;
  c.set_inode(9);
  c.set_current(kCurrent.value);
  c.set_minted(Version(3, 7).value);
  for (uint64_t server : {1, 2}) {
    record::Member* m = c.add_members();
    m->set_server(server);
    m->set_incarnation(10 * server);
  }
  return c;
}

record::Chunk Sealed() {
  record::Chunk c = Open();
  c.clear_members();
  c.set_sealed(true);
  c.set_length(100);
  c.set_digest(77);
  return c;
}

ReplicaFacts Facts(uint64_t server, uint64_t incarnation, Version version, proto::ReplicaState state = proto::OPEN) {
  return ReplicaFacts{ServerId(server), Incarnation(incarnation), version, state, 100, 77};
}

TEST(ReplicaJudge, MembershipDecidesWhileOpen) {
  const record::Chunk c = Open();
  EXPECT_EQ(JudgeReplica(&c, kEpoch, Facts(1, 10, kCurrent)), Worth::kMember);
  EXPECT_EQ(JudgeReplica(&c, kEpoch, Facts(1, 10, Version(3, 4))), Worth::kMember);
  EXPECT_EQ(JudgeReplica(&c, kEpoch, Facts(2, 21, kCurrent)), Worth::kUnclean);
  EXPECT_EQ(JudgeReplica(&c, kEpoch, Facts(2, 20, kCurrent, proto::CORRUPT)), Worth::kStale);
}

// A replica that received the order late bears the current version, and still lacks what was acknowledged.
TEST(ReplicaJudge, F1VersionIsNotMembership) {
  const record::Chunk c = Open();
  EXPECT_EQ(JudgeReplica(&c, kEpoch, Facts(3, 30, kCurrent)), Worth::kStale);
  EXPECT_EQ(JudgeReplica(&c, kEpoch, Facts(3, 30, Version(3, 7))), Worth::kStale);
}

TEST(ReplicaJudge, F9SealedCountsOnlyWhenAllIsEqual) {
  const record::Chunk c = Sealed();
  const ReplicaFacts good = Facts(3, 30, kCurrent, proto::SEALED);
  EXPECT_EQ(JudgeReplica(&c, kEpoch, good), Worth::kCounted);
  ReplicaFacts bad = good;
  bad.digest = 78;
  EXPECT_EQ(JudgeReplica(&c, kEpoch, bad), Worth::kStale);
  bad = good;
  bad.length = 99;
  EXPECT_EQ(JudgeReplica(&c, kEpoch, bad), Worth::kStale);
  bad = good;
  bad.version = Version(3, 4);
  EXPECT_EQ(JudgeReplica(&c, kEpoch, bad), Worth::kStale);
  for (auto state : {proto::OPEN, proto::CREATING, proto::RECOVERING, proto::CORRUPT}) {
    EXPECT_EQ(JudgeReplica(&c, kEpoch, Facts(3, 30, kCurrent, state)), Worth::kStale);
  }
}

// The record lags behind the marks from the first order of an attempt to its commit; the sealed bytes are there.
TEST(ReplicaJudge, BetweenTwoSetsASealedChunkStaysReadable) {
  const record::Chunk c = Sealed();
  for (const Version raised : {Version(3, 6), Version(3, 7)}) {
    for (auto state : {proto::OPEN, proto::RECOVERING, proto::SEALED}) {
      const Worth worth = JudgeReplica(&c, kEpoch, Facts(3, 30, raised, state));
      EXPECT_EQ(worth, Worth::kBetween);
      EXPECT_TRUE(IsReadable(worth));
      EXPECT_FALSE(IsGood(worth));
    }
    for (auto state : {proto::CREATING, proto::CORRUPT}) {
      EXPECT_EQ(JudgeReplica(&c, kEpoch, Facts(3, 30, raised, state)), Worth::kStale);
    }
  }
  ReplicaFacts other = Facts(3, 30, Version(3, 6), proto::SEALED);
  other.digest = 78;
  EXPECT_EQ(JudgeReplica(&c, kEpoch, other), Worth::kStale);
  EXPECT_EQ(JudgeReplica(&c, kEpoch, Facts(3, 30, Version(3, 4))), Worth::kStale);
  EXPECT_EQ(JudgeReplica(&c, kEpoch, Facts(3, 30, Version(3, 8))), Worth::kAhead);
  // Of an open chunk membership decides, whatever the mark and the state.
  const record::Chunk open = Open();
  for (auto state : {proto::OPEN, proto::RECOVERING, proto::SEALED}) {
    EXPECT_EQ(JudgeReplica(&open, kEpoch, Facts(1, 10, Version(3, 7), state)), Worth::kMember);
    EXPECT_EQ(JudgeReplica(&open, kEpoch, Facts(3, 30, Version(3, 7), state)), Worth::kStale);
  }
}

TEST(ReplicaJudge, UnknownGarbageAndAhead) {
  EXPECT_EQ(JudgeReplica(nullptr, kEpoch, Facts(1, 10, kCurrent)), Worth::kOrphan);
  record::Chunk garbage = Sealed();
  garbage.set_inode(0);
  EXPECT_EQ(JudgeReplica(&garbage, kEpoch, Facts(1, 10, kCurrent, proto::SEALED)), Worth::kGarbage);
  // D14: above minted, or of an epoch that has not been; garbage too is then not to be deleted.
  const record::Chunk c = Open();
  EXPECT_EQ(JudgeReplica(&c, kEpoch, Facts(1, 10, Version(3, 8))), Worth::kAhead);
  EXPECT_EQ(JudgeReplica(&garbage, kEpoch, Facts(1, 10, Version(3, 8))), Worth::kAhead);
  EXPECT_EQ(JudgeReplica(nullptr, kEpoch, Facts(1, 10, Version(4, 1))), Worth::kAhead);
}

}  // namespace
}  // namespace picket
