// The traces by which a model checker once broke the protocol's wording, each as a scene with the real roles:
// one message lost, late or twice at the worst moment. The name of a test is that of its finding; docs/INVARIANTS.md
// says which rule answers it. Those of recoveries are in recovery_findings_test.cc.
#include <gmock/gmock.h>

#include <set>

#include "tests/sim/inode.h"
#include "tests/sim/scene.h"

namespace picket::sim {
namespace {

using Finding = Scene;

// A replica that raised its mark, but whose answer was lost, is at the committed version and lacks what is
// acknowledged next.
TEST_F(Finding, F1AVersionIsNotMembership) {
  Create();
  WriteAndFlush(0, 1000);
  const Set set = SetOf(Chunk());
  const size_t c = set.others[0];
  GrantWithoutTheAnswerOf(c);
  WriteAndFlush(1000, 500);
  NothingIsLostAnyMore();
  const proto::ChunkLocation chunk = Chunk();
  const ChunkId id(chunk.chunk());
  EXPECT_EQ(Replica(c, id).replica().version(), chunk.version());
  EXPECT_EQ(Replica(c, id).replica().length(), 1000u);
  EXPECT_FALSE(Counted(chunk, c));
  // The worse end: the next grant takes the short replica's word and cuts the others.
  BreakConnections(me());
  WriteAndFlush(1500, 100);
  ASSERT_TRUE(Close());
  ExpectFile(1600);
}

// The order that makes replicas equal arrives again after bytes were acknowledged at its version.
TEST_F(Finding, F2AReconciliationIsNotExecutedTwice) {
  Capture(proto::ADVANCE_VERSION);
  Create();
  WriteAndFlush(0, 1000);
  const Set set = SetOf(Chunk());
  // Applied at the primary only: the members' answers differ.
  LoseRequests(proto::WRITE_PACKET, server(set.others[0]).name(), 1);
  BeginFlush(1000, 500);
  world_.RunFor(100ms);
  BreakConnections(me());
  AwaitFlush();
  WriteAndFlush(1500, 500);
  const ChunkId chunk(Chunk().chunk());
  size_t sets = 0;
  for (const Captured& order : TakeCaptured(proto::ADVANCE_VERSION)) {
    proto::AdvanceVersionRequest request;
    ASSERT_TRUE(request.ParseFromString(order.body));
    if (request.has_set()) ++sets;
    SendAgain(order);
  }
  EXPECT_GT(sets, 0u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Bytes(i, chunk).substr(0, 2000).size(), 2000u) << i;
  ASSERT_TRUE(Close());
  ExpectFile(2000);
}

// A replica that lost power has its old mark, and not the bytes.
TEST_F(Finding, F4ARestartedReplicaIsNoSource) {
  Create();
  WriteAndFlush(0, 100'000);
  server(SetOf(Chunk()).primary).Crash(Node::Death::kPower);
  ASSERT_TRUE(world_.RunUntil([&] { return cluster_.AllRegistered(); }, 2min));
  WriteAndFlush(100'000, 10);
  ASSERT_TRUE(Close());
  ExpectFile(100'010);
}

// Every member answers the grant, then loses power: what it reported must be there.
TEST_F(Finding, F5AnAnswerIsAPromise) {
  Create();
  WriteAndFlush(0, 100'000);
  const Version before(Chunk().version());
  std::set<Node*> raised;
  world_.AddObserver([&](Node& node, const ProtocolEvent& e) {
    if (e.kind != ProtocolEvent::Kind::kMarkRaised || e.version <= before || !raised.insert(&node).second) return;
    world_.After(20ms, [&node] {
      if (node.alive()) node.Crash(Node::Death::kPower);
    });
  });
  BreakConnections(me());
  WriteAndFlush(100'000, 10);
  EXPECT_EQ(raised.size(), 3u);
  ASSERT_TRUE(Close());
  ExpectFile(100'010);
}

// What the secondaries know to be acknowledged lags behind what the client was told.
TEST_F(Finding, F6WhatIsAppliedCountsNotWhatIsKnownToBeAcknowledged) {
  Capture(proto::ADVANCE_VERSION);
  Create();
  WriteAndFlush(0, 1000);
  const Set set = SetOf(Chunk());
  LoseRequests(proto::WRITE_PACKET, server(set.others[0]).name(), 1000);
  BeginFlush(1000, 500);
  world_.RunFor(50ms);
  NothingIsLostAnyMore();
  BreakConnections(me());
  AwaitFlush();
  ASSERT_TRUE(Close());
  for (const Captured& order : TakeCaptured(proto::ADVANCE_VERSION)) {
    proto::AdvanceVersionRequest request;
    ASSERT_TRUE(request.ParseFromString(order.body));
    if (request.has_set()) EXPECT_GE(request.set().length(), 1000u);
  }
  ExpectFile(1500);
}

// As F1; then the writer seals the members and closes. The one outside is at the sealed version, open.
TEST_F(Finding, F9ASealedChunkCountsByDigestToo) {
  Create();
  WriteAndFlush(0, 1000);
  const size_t c = SetOf(Chunk()).others[0];
  GrantWithoutTheAnswerOf(c);
  WriteAndFlush(1000, 500);
  ASSERT_TRUE(Close());
  NothingIsLostAnyMore();
  world_.RunFor(10s);  // reports
  const proto::ChunkLocation chunk = Chunk();
  EXPECT_TRUE(chunk.sealed());
  EXPECT_EQ(Replica(c, ChunkId(chunk.chunk())).replica().version(), chunk.version());
  EXPECT_FALSE(Counted(chunk, c));
  ExpectFile(1500);
}

// The master's disk comes back as it was some versions ago.
TEST_F(Finding, F12RestoredMetadataIsNoticed) {
  Create();
  WriteAndFlush(0, 1000);
  std::map<std::string, std::string> backup;
  for (const std::string& path : master().disk().Files()) backup[path] = *master().disk().Contents(path);
  BreakConnections(me());  // a grant: numbers that the backup does not know
  WriteAndFlush(1000, 500);
  world_.RunFor(10s);

  master().Crash(Node::Death::kPower);
  master().Start();  // nothing runs there yet but the disk
  master().disk().Wipe();
  for (const auto& [path, bytes] : backup) {
    for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      master().disk().MakeDir(path.substr(0, slash));
    }
    auto file = master().disk().Open(path, OpenMode::kCreate);
    ASSERT_TRUE(file) << file.error().ToString();
    ASSERT_TRUE(master().disk().Write(**file, 0, std::as_bytes(std::span(bytes))));
    ASSERT_TRUE(master().disk().SyncInode(**file, true));
  }
  master().Crash(Node::Death::kProcess);
  std::string state;
  for (int i = 0; i < 30 && state.find("HISTORY_LOST") == std::string::npos; ++i) {
    world_.RunFor(1s);
    auto report = Do(fs_->Report());
    if (report) state = report->state();
  }
  EXPECT_THAT(state, testing::HasSubstr("HISTORY_LOST"));
  auto refused = Do(fs_->Create("/g", {}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kHistoryLost);
}

}  // namespace
}  // namespace picket::sim
