#include "chunkserver/lease_holder.h"

#include <gtest/gtest.h>

#include "chunkserver/blame.h"
#include "chunkserver/change_log.h"
#include "tests/sim/node.h"

namespace picket::cs {
namespace {

constexpr ChunkId kChunk(5);
constexpr Version kVersion(1, 3);

class LeaseTest : public testing::Test {
 protected:
  LeaseTest() : world_({}, 1), node_(world_.AddNode("a")), leases_(node_, 2) { node_.Start(); }
  static PrimaryLease Lease(Version v = kVersion) {
    PrimaryLease l;
    l.version = v;
    return l;
  }
  sim::World world_;
  sim::Node& node_;
  LeaseHolder leases_;
};

TEST_F(LeaseTest, IsCountedFromTheFirstAnswerLessTheMargin) {  // F19
  const Mono answered = node_.Now();
  world_.RunFor(20s);
  ASSERT_TRUE(leases_.Grant(kChunk, Lease(), answered, 60s));
  EXPECT_TRUE(leases_.Held(kChunk, kVersion));
  EXPECT_LE(leases_.Left(kChunk), 60s - 20s - 1100ms);
  world_.RunFor(38s);
  EXPECT_TRUE(leases_.Held(kChunk, kVersion));
  world_.RunFor(2s);
  EXPECT_FALSE(leases_.Held(kChunk, kVersion));
}

TEST_F(LeaseTest, AGrantThatCameTooLateIsRefused) {
  const Mono answered = node_.Now();
  world_.RunFor(60s);
  EXPECT_EQ(leases_.Grant(kChunk, Lease(), answered, 60s).error().code, Code::kNotPrimary);
}

TEST_F(LeaseTest, HoldsExactlyOneVersion) {
  ASSERT_TRUE(leases_.Grant(kChunk, Lease(), node_.Now(), 60s));
  EXPECT_FALSE(leases_.Held(kChunk, Version(1, 2)));
  EXPECT_FALSE(leases_.Held(kChunk, Version(1, 4)));
}

TEST_F(LeaseTest, ExtensionsAreAskedForMutatedChunksAndCountedFromTheAsking) {
  ASSERT_TRUE(leases_.Grant(kChunk, Lease(), node_.Now(), 60s));
  EXPECT_TRUE(leases_.TakeExtensions().empty());
  leases_.MarkMutated(kChunk, kVersion);
  EXPECT_EQ(leases_.TakeExtensions().size(), 1u);
  EXPECT_TRUE(leases_.TakeExtensions().empty());
  const Mono sent = node_.Now();
  world_.RunFor(30s);
  leases_.Extend(kChunk, kVersion, sent, 60s);
  EXPECT_LE(leases_.Left(kChunk), 30s);
}

TEST_F(LeaseTest, AnEndedLeaseIsNotRevived) {
  ASSERT_TRUE(leases_.Grant(kChunk, Lease(), node_.Now(), 60s));
  const Mono sent = node_.Now() + 59s;
  world_.RunFor(61s);
  leases_.Extend(kChunk, kVersion, sent, 60s);
  EXPECT_FALSE(leases_.Held(kChunk, kVersion));
}

TEST_F(LeaseTest, RevokeSparesANewerVersion) {
  ASSERT_TRUE(leases_.Grant(kChunk, Lease(), node_.Now(), 60s));
  leases_.Revoke(kChunk, Version(1, 2));
  EXPECT_TRUE(leases_.Held(kChunk, kVersion));
  leases_.Revoke(kChunk, kVersion);
  EXPECT_FALSE(leases_.Held(kChunk, kVersion));
}

TEST(Blame, TheSenderOfACorruptPacketIsBlamed) {  // HDFS-3875
  const ServerId self(1);
  proto::Hop next;
  next.set_server(2);
  EXPECT_EQ(BlameHop(CorruptAsReceived(kChunk, 0), next, self).server, 1u);
  EXPECT_EQ(BlameHop(Error(Code::kDeadlineExceeded, "no answer"), next, self).server, 2u);
  Error further(Code::kIoError, "disk");
  further.server = 3;
  EXPECT_EQ(BlameHop(further, next, self).server, 3u);
}

TEST(ChangeLog, TellsThePresentStateOnceAndAgainAfterAFailure) {
  ChangeLog log;
  log.Changed(ChunkId(1));
  log.Changed(ChunkId(2));
  log.Removed(ChunkId(3));
  auto taken = log.Take(10);
  EXPECT_EQ(taken.changed.size(), 2u);
  EXPECT_TRUE(log.empty());
  log.Removed(ChunkId(1));
  log.PutBack(std::move(taken));
  auto again = log.Take(10);
  EXPECT_EQ(again.changed, (std::set<ChunkId>{ChunkId(2)}));
  EXPECT_EQ(again.removed, (std::set<ChunkId>{ChunkId(1), ChunkId(3)}));
}

}  // namespace
}  // namespace picket::cs
