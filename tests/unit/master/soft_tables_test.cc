// The master's soft state: servers, locations, leases.
#include <gtest/gtest.h>

#include "master/lease_table.h"
#include "master/location_map.h"
#include "master/server_table.h"
#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace picket {
namespace {

class SoftTables : public testing::Test {
 protected:
  SoftTables() : node(world.AddNode("master")) {
    node.Start();
    node.SetDrift(0);
  }
  void Pass(Nanos time) { world.RunFor(time); }
  sim::World world;
  sim::Node& node;
};

Server NewServer(uint64_t id, uint64_t incarnation = 1) {
  Server s;
  s.id = ServerId(id);
  s.incarnation = Incarnation(incarnation);
  s.endpoint = Endpoint("node-1", 1);
  return s;
}

TEST_F(SoftTables, SilenceMakesSuspectThenDead) {
  ServerTable servers(node, ServerTable::Options{15s, 60s});
  Server& s = servers.Register(NewServer(1));
  EXPECT_EQ(servers.LivenessOf(s), Liveness::kLive);
  EXPECT_EQ(servers.live_count(), 1u);
  Pass(16s);
  EXPECT_EQ(servers.LivenessOf(s), Liveness::kSuspect);
  EXPECT_TRUE(servers.IsUp(ServerId(1), Incarnation(1)));
  Pass(45s);
  EXPECT_EQ(servers.LivenessOf(s), Liveness::kDead);
  EXPECT_FALSE(servers.IsUp(ServerId(1), Incarnation(1)));
  servers.Heard(&s, proto::Space());
  EXPECT_EQ(servers.LivenessOf(s), Liveness::kLive);
  EXPECT_EQ(servers.LivenessOf(ServerId(2)), Liveness::kDead);
}

TEST_F(SoftTables, EachRegistrationIsASessionOfItsOwn) {
  ServerTable servers(node, ServerTable::Options{15s, 60s});
  const uint64_t first = servers.Register(NewServer(1)).session;
  const uint64_t second = servers.Register(NewServer(1)).session;
  EXPECT_NE(first, second);
  EXPECT_EQ(servers.FindSession(ServerId(1), first), nullptr);
  EXPECT_NE(servers.FindSession(ServerId(1), second), nullptr);
}

TEST_F(SoftTables, RecentCreationsDecayWithHeartbeats) {
  ServerTable servers(node, ServerTable::Options{15s, 60s});
  Server& s = servers.Register(NewServer(1));
  for (int i = 0; i < 8; ++i) servers.NoteCreation(ServerId(1));
  servers.Heard(&s, proto::Space());
  EXPECT_EQ(s.recent_creations, 6u);
  for (int i = 0; i < 10; ++i) servers.Heard(&s, proto::Space());
  EXPECT_EQ(s.recent_creations, 0u);
}

Replica MakeReplica(uint64_t server, uint64_t session, uint32_t counter, proto::ReplicaState state,
                    uint64_t instance = 7) {
  Replica r;
  r.server = ServerId(server);
  r.session = session;
  r.version = Version(1, counter);
  r.state = state;
  r.instance = InstanceId(instance);
  return r;
}

TEST(LocationMap, KeepsOneEntryPerServerInOrder) {
  LocationMap map;
  const ChunkId c(5);
  map.Update(c, MakeReplica(2, 1, 1, proto::OPEN));
  map.Update(c, MakeReplica(1, 1, 1, proto::OPEN));
  map.Update(c, MakeReplica(2, 1, 2, proto::OPEN));
  ASSERT_EQ(map.Of(c).size(), 2u);
  EXPECT_EQ(map.Of(c)[0].server, ServerId(1));
  EXPECT_EQ(map.Of(c)[1].version, Version(1, 2));
  map.Update(c, MakeReplica(1, 1, 9, proto::TOMBSTONE));
  ASSERT_EQ(map.Of(c).size(), 1u);
  map.Remove(c, ServerId(2), InstanceId(8));  // another instance
  EXPECT_EQ(map.Of(c).size(), 1u);
  map.Remove(c, ServerId(2), InstanceId(7));
  EXPECT_TRUE(map.Of(c).empty());
}

TEST(LocationMap, LateMessagesOfASessionDoNotTakeBack) {
  LocationMap map;
  const ChunkId c(5);
  map.Update(c, MakeReplica(1, 1, 2, proto::SEALED));
  map.Update(c, MakeReplica(1, 1, 2, proto::OPEN));
  map.Update(c, MakeReplica(1, 1, 1, proto::OPEN));
  EXPECT_EQ(map.Of(c)[0].state, proto::SEALED);
  map.Update(c, MakeReplica(1, 1, 2, proto::CORRUPT));
  EXPECT_EQ(map.Of(c)[0].state, proto::CORRUPT);
  map.Update(c, MakeReplica(1, 2, 1, proto::OPEN));  // a new session says what is
  EXPECT_EQ(map.Of(c)[0].state, proto::OPEN);
}

TEST(LocationMap, EndOfAReportDropsWhatItDidNotName) {
  LocationMap map;
  map.Update(ChunkId(5), MakeReplica(1, 1, 1, proto::OPEN));
  map.Update(ChunkId(6), MakeReplica(1, 1, 1, proto::OPEN));
  map.Update(ChunkId(6), MakeReplica(2, 1, 1, proto::OPEN));
  map.Update(ChunkId(5), MakeReplica(1, 2, 1, proto::OPEN));
  map.EndReport(ServerId(1), 2);
  EXPECT_EQ(map.Of(ChunkId(5)).size(), 1u);
  ASSERT_EQ(map.Of(ChunkId(6)).size(), 1u);
  EXPECT_EQ(map.Of(ChunkId(6))[0].server, ServerId(2));
}

TEST_F(SoftTables, LeaseRunsOnePeriodFromTheAnswerAndIsExtended) {
  LeaseTable leases(node, 60s);
  const ChunkId c(5);
  leases.Grant(c, Version(1, 2), ServerId(1), Incarnation(1), node.Now());
  Pass(59s);
  ASSERT_TRUE(leases.Find(c));
  EXPECT_TRUE(leases.Extend(c, Version(1, 2), ServerId(1), Incarnation(1)));
  EXPECT_FALSE(leases.Extend(c, Version(1, 3), ServerId(1), Incarnation(1)));
  EXPECT_FALSE(leases.Extend(c, Version(1, 2), ServerId(2), Incarnation(1)));
  EXPECT_FALSE(leases.Extend(c, Version(1, 2), ServerId(1), Incarnation(2)));
  Pass(59s);
  EXPECT_TRUE(leases.Find(c));
  Pass(2s);
  EXPECT_FALSE(leases.Find(c));
  leases.Sweep();
  EXPECT_EQ(leases.size(), 0u);
}

TEST_F(SoftTables, D4RestartedPrimaryHasNoLease) {
  LeaseTable leases(node, 60s);
  leases.Grant(ChunkId(5), Version(1, 2), ServerId(1), Incarnation(1), node.Now());
  leases.ServerRestarted(ServerId(1), Incarnation(1));  // the same boot again
  EXPECT_TRUE(leases.Find(ChunkId(5)));
  leases.ServerRestarted(ServerId(1), Incarnation(2));
  EXPECT_FALSE(leases.Find(ChunkId(5)));
}

TEST_F(SoftTables, F19AfterAnActivationOnePeriodIsWaitedFor) {
  LeaseTable leases(node, 60s);
  const ChunkId c(5);
  // Granted by an earlier epoch: unknown. By this one: it would be known.
  EXPECT_TRUE(leases.UnknownUntil(c, Version(1, 2), 2));
  EXPECT_FALSE(leases.UnknownUntil(c, Version(2, 2), 2));
  // The holder makes itself known by an extension.
  EXPECT_TRUE(leases.Extend(c, Version(1, 2), ServerId(1), Incarnation(1)));
  EXPECT_FALSE(leases.UnknownUntil(c, Version(1, 2), 2));
  leases.Void(c);
  Pass(61s);
  EXPECT_FALSE(leases.UnknownUntil(c, Version(1, 2), 2));
}

}  // namespace
}  // namespace picket
