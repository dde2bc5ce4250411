// Replicas that count for nothing: which are taken away, when, and on whose word.
#include <gmock/gmock.h>

#include "tests/unit/master/cluster_half.h"

namespace picket::test {
namespace {

using testing::Contains;
using testing::Not;
using Act = FakeDisk::Act;

MasterOptions Eager() {
  MasterOptions o;
  o.stale_interval = 1s;
  o.stale_settle = 5s;
  o.orphan_grace = 10min;
  return o;
}

class StaleCollectorTest : public ClusterTest {
 protected:
  explicit StaleCollectorTest(size_t servers = 4) : ClusterTest(servers, Eager()) {}
  // A sealed chunk on three servers; `spare` is the fourth.
  uint64_t Sealed(const std::string& path = "/f") {
    file = Create(path);
    auto added = AddChunk(file);
    EXPECT_TRUE(added) << added.error().ToString();
    if (!added) return 0;
    grant = *added;
    Write(grant, "sealed bytes");
    proto::CommitSealRequest seal = Seal(file, grant);
    seal.set_close(true);
    EXPECT_TRUE(CommitSeal(seal));
    const std::vector<uint64_t> members = ServersOf(grant);
    for (size_t i = 0; i < disks.size(); ++i) {
      if (std::ranges::find(members, disks[i]->id.value) == members.end()) spare = i;
    }
    return grant.token().chunk();
  }
  // The fourth server has a replica too, as a test wants it, and says so.
  FakeReplica& Plant(uint64_t chunk, proto::ReplicaState state, uint64_t version) {
    FakeReplica& replica = disk(spare).replicas[chunk];
    replica.version = version;
    replica.state = state;
    replica.bytes = "other";
    replica.instance = ++disk(spare).instances;
    Reregister(spare);
    return replica;
  }
  void Reregister(size_t i) {
    server_node(i).Crash(sim::Node::Death::kProcess);
    StartServer(i);
  }
  bool Goes(size_t i, uint64_t chunk, Nanos limit = 2min) {
    return world.RunUntil([&] { return !disk(i).replicas.contains(chunk); }, limit);
  }
  std::string Worth(size_t i, uint64_t chunk) {
    for (const auto& replica : Chunk(chunk).replicas()) {
      if (replica.hop().server() == disk(i).id.value) return replica.worth();
    }
    return "none";
  }
  OpenFile file;
  proto::WriteGrant grant;
  size_t spare = 0;
};

TEST_F(StaleCollectorTest, AStaleReplicaGoesToQuarantineWhenTheGoalIsMetWithoutIt) {
  const uint64_t chunk = Sealed();
  Plant(chunk, proto::OPEN, grant.token().version());
  ASSERT_TRUE(world.RunUntil([&] { return Worth(spare, chunk) == "stale"; }, 10s));
  EXPECT_TRUE(Goes(spare, chunk));
  EXPECT_EQ(disk(spare).quarantine.size(), 1u);
  EXPECT_EQ(Chunk(chunk).replicas_size(), 3);
}

TEST_F(StaleCollectorTest, NothingIsDeletedOnTheFirstSuspicion) {
  const uint64_t chunk = Sealed();
  Plant(chunk, proto::RECOVERING, grant.token().version());
  world.RunFor(4s);  // less than it takes to settle
  ASSERT_TRUE(disk(spare).replicas.contains(chunk));
  // A straggler is finished after all: it counts.
  FakeReplica& replica = disk(spare).replicas.at(chunk);
  replica.state = proto::SEALED;
  replica.bytes = "sealed bytes";
  Reregister(spare);
  EXPECT_FALSE(Goes(spare, chunk, 1min));
}

// Repair first, clean up later (baidu/bfs#193).
TEST_F(StaleCollectorTest, GoalFirst) {
  const uint64_t chunk = Sealed();
  const size_t lost = index_of(ServersOf(grant)[2]);
  server_node(lost).Crash(sim::Node::Death::kProcess);
  world.RunFor(20s);  // silent for long enough
  Plant(chunk, proto::OPEN, grant.token().version());
  EXPECT_FALSE(Goes(spare, chunk, 3min));
  StartServer(lost);
  EXPECT_TRUE(Goes(spare, chunk));
}

TEST_F(StaleCollectorTest, ACorruptReplicaStaysWhileTooFewOthersCount) {
  const uint64_t chunk = Sealed();
  const size_t rotten = index_of(ServersOf(grant)[1]);
  replica(rotten, chunk).state = proto::CORRUPT;
  Reregister(rotten);
  EXPECT_FALSE(Goes(rotten, chunk, 2min));
  // The fourth server gets a good copy.
  FakeReplica& good = Plant(chunk, proto::SEALED, grant.token().version());
  good.bytes = "sealed bytes";
  Reregister(spare);
  EXPECT_TRUE(Goes(rotten, chunk));
}

// The master that counts on a replica has it from its server's present session, never from memory (F13).
TEST_F(StaleCollectorTest, F13cWhoHasNotReportedToThisMasterVouchesForNothing) {
  const uint64_t chunk = Sealed();
  for (size_t i = 0; i < 4; ++i) {
    if (i != spare) disk(i).report = false;
  }
  Plant(chunk, proto::OPEN, grant.token().version());
  RestartMaster();
  ASSERT_TRUE(AwaitLive(4));
  EXPECT_FALSE(Goes(spare, chunk, 1min));
  for (size_t i = 0; i < 4; ++i) {
    disk(i).report = true;
    if (i != spare) Reregister(i);
  }
  EXPECT_TRUE(Goes(spare, chunk));
}

// The order's answer is late: meanwhile its victim counts as gone, whatever is reported.
TEST_F(StaleCollectorTest, F13bAVictimCountsAsGoneWhileItsOrderMayBeUnderWay) {
  const uint64_t chunk = Sealed();
  FakeDisk::Rule rule;
  rule.method = proto::DELETE_REPLICA;
  rule.act = Act::kHold;
  rule.release = std::make_shared<bool>(false);
  disk(spare).rules.push_back(rule);
  FakeReplica& replica = Plant(chunk, proto::RECOVERING, grant.token().version());
  ASSERT_TRUE(world.RunUntil([&] { return Worth(spare, chunk) == "being deleted"; }, 1min));
  // It would count now.
  replica.state = proto::SEALED;
  replica.bytes = "sealed bytes";
  sim::RunTask(world, server_node(spare), fake(spare).Report());
  const proto::ChunkLocation seen = Chunk(chunk);
  size_t counted = 0;
  for (const auto& r : seen.replicas()) counted += r.counted() ? 1 : 0;
  EXPECT_EQ(counted, 3u);
  EXPECT_EQ(Worth(spare, chunk), "being deleted");
  *rule.release = true;
  EXPECT_TRUE(Goes(spare, chunk));
}

TEST_F(StaleCollectorTest, F13bOnlyTheSameVictimIsOrderedAgain) {
  const uint64_t chunk = Sealed();
  FakeDisk::Rule rule;
  rule.method = proto::DELETE_REPLICA;
  rule.act = Act::kLoseRequest;
  for (int i = 0; i < 3; ++i) disk(spare).rules.push_back(rule);
  Plant(chunk, proto::OPEN, grant.token().version());
  ASSERT_TRUE(world.RunUntil([&] { return disk(spare).rules.size() == 2; }, 1min));
  ASSERT_TRUE(world.RunUntil([&] { return disk(spare).rules.empty(); }, 2min));
  EXPECT_TRUE(Goes(spare, chunk));
  for (size_t i = 0; i < 4; ++i) {
    if (i != spare) EXPECT_THAT(disk(i).orders, Not(Contains(proto::DELETE_REPLICA)));
  }
}

// A delete order at a version that the replica has left behind, or not yet reached, has no effect.
TEST_F(StaleCollectorTest, DeleteOrderAtANewerVersion) {
  const uint64_t chunk = Sealed();
  FakeDisk::Rule rule;
  rule.method = proto::DELETE_REPLICA;
  rule.act = Act::kHold;
  rule.release = std::make_shared<bool>(false);
  disk(spare).rules.push_back(rule);
  FakeReplica& replica = Plant(chunk, proto::OPEN, grant.token().version());
  ASSERT_TRUE(world.RunUntil([&] { return disk(spare).rules.empty(); }, 1min));
  replica.version += 7;  // ahead of what is minted: nobody's to delete
  sim::RunTask(world, server_node(spare), fake(spare).Report());
  *rule.release = true;
  EXPECT_FALSE(Goes(spare, chunk, 1min));
  EXPECT_EQ(Worth(spare, chunk), "ahead of the master");
}

TEST_F(StaleCollectorTest, AReplicaAheadOfTheMasterIsNeverDeleted) {
  const uint64_t chunk = Sealed();
  Plant(chunk, proto::SEALED, grant.token().version() + 1000);
  EXPECT_FALSE(Goes(spare, chunk, 3min));
  Plant(chunk, proto::SEALED, Version(77, 1).value);
  EXPECT_FALSE(Goes(spare, chunk, 3min));
}

TEST_F(StaleCollectorTest, OfAnUnsealedChunkNoMemberGoesAndNoneDuringAnAttempt) {
  file = Create("/g");
  auto added = AddChunk(file);
  ASSERT_TRUE(added) << added.error().ToString();
  grant = *added;
  Write(grant, "open");
  const uint64_t chunk = grant.token().chunk();
  const std::vector<uint64_t> members = ServersOf(grant);
  for (size_t i = 0; i < disks.size(); ++i) {
    if (std::ranges::find(members, disks[i]->id.value) == members.end()) spare = i;
  }
  Plant(chunk, proto::OPEN, grant.token().version());
  EXPECT_TRUE(Goes(spare, chunk));  // the version of the set, and no member of it
  // A member that restarted is unclean: neither it goes, nor does anything else while the set is not whole.
  Reregister(index_of(members[2]));
  Plant(chunk, proto::OPEN, grant.token().version());
  EXPECT_FALSE(Goes(spare, chunk, 1min));
  for (uint64_t member : members) EXPECT_TRUE(disk_of(member).replicas.contains(chunk));
}

TEST_F(StaleCollectorTest, AnOrphanGoesAfterItsGrace) {
  Sealed();
  const uint64_t unknown = Version(1, 501).value;  // an id of an earlier activation, whose record is gone
  RestartMaster();
  ASSERT_TRUE(AwaitLive(4));
  const uint64_t later = (uint64_t{2} << 32) + 900;  // not handed out yet
  Plant(unknown, proto::OPEN, Version(1, 3).value);
  Plant(later, proto::OPEN, Version(2, 3).value);
  EXPECT_FALSE(Goes(spare, unknown, 9min));
  EXPECT_TRUE(Goes(spare, unknown, 5min));
  EXPECT_EQ(disk(spare).quarantine.size(), 1u);
  EXPECT_FALSE(Goes(spare, later, 20min));
}

TEST_F(StaleCollectorTest, NothingIsDeletedWhenTheHistoryIsLost) {
  const uint64_t chunk = Sealed();
  Plant(chunk, proto::OPEN, grant.token().version());
  const size_t other = index_of(ServersOf(grant)[0]);
  server_node(other).Crash(sim::Node::Death::kProcess);
  disk(other).mark.mutable_epoch()->set_number(9);
  StartServer(other);
  ASSERT_TRUE(world.RunUntil([&] { return Report().state() != "serving"; }, 30s));
  EXPECT_FALSE(Goes(spare, chunk, 3min));
}

}  // namespace
}  // namespace picket::test
