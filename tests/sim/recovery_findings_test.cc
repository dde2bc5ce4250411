// The traces of findings_test.cc that need a lease recovery, a joiner or a delete order.
#include <gmock/gmock.h>

#include <set>

#include "client/core/random_writer.h"
#include "tests/sim/scene.h"

namespace picket::sim {
namespace {

using testing::HasSubstr;

using Finding = Scene;

// Sealed on all, opened again on two, written: the third still says that it is sealed.
TEST_F(Finding, F3aAStaleSealedReplicaDoesNotWin) {
  Create();
  WriteAndFlush(0, 1000);
  const size_t c = SetOf(Chunk()).others[0];
  ASSERT_TRUE(Close());
  LoseRequests(proto::ADVANCE_VERSION, server(c).name(), 1000);
  Append();
  WriteAndFlush(1000, 500);
  NothingIsLostAnyMore();
  EXPECT_EQ(Replica(c, ChunkId(Chunk().chunk())).replica().state(), proto::SEALED);
  Recover();
  ExpectFile(1500);
}

// One replica missed a set. A recovery that reached it alone would have raised it above those that did not.
TEST_F(Finding, F3bARecoveryHidesNoMissedSet) {
  Create();
  WriteAndFlush(0, 1000);
  const size_t c = SetOf(Chunk()).others[0];
  GrantWithout(c);
  WriteAndFlush(1000, 500);
  const proto::ChunkLocation chunk = Chunk();
  Capture(proto::BEGIN_RECOVERY);
  LoseRequests(proto::BEGIN_RECOVERY, "", 1000);
  ASSERT_TRUE(Do(fs_->RecoverLease("/f", false)));
  world_.RunFor(1s);
  const std::vector<Captured> orders = TakeCaptured(proto::BEGIN_RECOVERY);
  ASSERT_FALSE(orders.empty());
  for (Captured order : orders) EXPECT_NE(order.to, server(c).name());
  proto::BeginRecoveryRequest request;
  ASSERT_TRUE(request.ParseFromString(orders[0].body));
  request.mutable_header()->set_server(cluster_.server_id(c).value);
  request.mutable_header()->set_incarnation(Replica(c, ChunkId(chunk.chunk())).incarnation());
  NothingIsLostAnyMore();
  auto begun = SendAgain({proto::BEGIN_RECOVERY, request.SerializeAsString(), "", server(c).name()});
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, Code::kReplicaBehind);
  EXPECT_LT(Replica(c, ChunkId(chunk.chunk())).replica().version(), chunk.version());
  Recover();
  ExpectFile(1500);
}

// The order that ends a recovery arrives again when the claimant has gone on.
TEST_F(Finding, F7AFinishIsExecutedOnce) {
  CreateFileOptions options;
  options.session.limits.set_soft_ms(2000);
  Create(options);
  WriteAndFlush(0, 1000);
  writer_.reset();  // stalls
  world_.RunFor(3s);
  Capture(proto::FINISH_RECOVERY);
  Append();
  const Generation claimed(writer_->status().generation());
  WriteAndFlush(1000, 500);
  const ChunkId chunk(Chunk().chunk());
  const std::vector<Captured> orders = TakeCaptured(proto::FINISH_RECOVERY);
  EXPECT_GE(orders.size(), 3u);
  for (const Captured& order : orders) {
    proto::FinishRecoveryRequest request;
    ASSERT_TRUE(request.ParseFromString(order.body));
    EXPECT_LT(Generation(request.generation()), claimed);
    EXPECT_FALSE(SendAgain(order));
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Replica(i, chunk).replica().length(), 1500u) << i;
  WriteAndFlush(1500, 500);
  ASSERT_TRUE(Close());
  ExpectFile(2000);
}

// A grant still waits for an answer when a recovery has begun and ended.
TEST_F(Finding, F8ASupersededGrantCommitsNothing) {
  Create();
  WriteAndFlush(0, 1000);
  const Version before(Chunk().version());
  size_t raised = 0;
  world_.AddObserver([&](Node&, const ProtocolEvent& e) {
    if (e.kind == ProtocolEvent::Kind::kMarkRaised && e.version > before) ++raised;
  });
  GrantWithoutTheAnswerOf(SetOf(Chunk()).others[0]);
  BeginFlush(1000, 500);
  ASSERT_TRUE(world_.RunUntil([&] { return raised >= 3; }, 1min));
  Recover();
  const proto::ChunkLocation recovered = Chunk();
  EXPECT_TRUE(recovered.sealed());
  const Status flushed = FlushResult();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, Code::kStaleGeneration) << flushed.error().ToString();
  world_.RunFor(30s);
  EXPECT_EQ(Chunk().version(), recovered.version());
  ExpectFile(recovered.length());
}

// An overwrite that one replica applied: equal lengths, different bytes.
TEST_F(Finding, F10ARecoveryMakesBytesEqualNotLengths) {
  Create();
  WriteAndFlush(0, 100'000);
  ASSERT_TRUE(Close());
  auto opened = Do(fs_->OpenForWrite("/f", {}));
  ASSERT_TRUE(opened) << opened.error().ToString();
  RandomWriter& writer = **opened;
  ASSERT_TRUE(Do(writer.WriteAt(0, PatternBuffer(1, 0, 1000))));
  ASSERT_TRUE(Do(writer.Flush()));
  const Set set = SetOf(Chunk());
  const ChunkId chunk(Chunk().chunk());
  for (size_t i : set.others) LoseRequests(proto::WRITE_PACKET, server(i).name(), 1000);
  size_t applied = 0;
  world_.AddObserver([&](Node&, const ProtocolEvent& e) {
    if (e.kind == ProtocolEvent::Kind::kOverwriteApplied) ++applied;
  });
  ASSERT_TRUE(Do(writer.WriteAt(0, PatternBuffer(2, 0, 70'000))));
  ASSERT_TRUE(world_.RunUntil([&] { return applied >= 1; }, 1min));
  NothingIsLostAnyMore();
  Recover();
  world_.RunFor(10s);
  ExpectEqualReplicas(100'000);
}

// Two recoveries died, and each had sealed another replica at another length.
TEST_F(Finding, F11TheNewestSealWins) {
  Create();
  Capture(proto::WRITE_PACKET);
  WriteAndFlush(0, 1000);
  const std::vector<size_t> chain = ChainOfCaptured();
  ASSERT_EQ(chain.size(), 3u);
  const ChunkId chunk(Chunk().chunk());
  LoseRequests(proto::WRITE_PACKET, server(chain[2]).name(), 1000);
  BeginFlush(1000, 500);
  world_.RunFor(50ms);
  ASSERT_EQ(Replica(chain[1], chunk).replica().length(), 1500u);
  ASSERT_EQ(Replica(chain[2], chunk).replica().length(), 1000u);
  NothingIsLostAnyMore();
  LoseRequests(proto::BEGIN_RECOVERY, server(chain[1]).name(), 1000);
  std::vector<uint64_t> seals;
  std::set<std::string> sealed;
  world_.AddObserver([&](Node& node, const ProtocolEvent& e) {
    if (e.kind != ProtocolEvent::Kind::kReplicaSealed || seals.size() >= 2) return;
    seals.push_back(e.length);
    sealed.insert(node.name());
    NothingIsLostAnyMore();
    // The second attempt hears those that are not sealed; the third, those that are.
    for (Node* server : cluster_.servers()) {
      if (sealed.contains(server->name()) == (seals.size() == 1)) {
        LoseRequests(proto::BEGIN_RECOVERY, server->name(), 1000);
      }
    }
    master().Crash(Node::Death::kProcess);
  });
  auto recovered = Do(fs_->RecoverLease("/f", true));
  if (!recovered) Recover();
  EXPECT_EQ(seals, (std::vector<uint64_t>{1000, 1500}));
  NothingIsLostAnyMore();
  ExpectFile(1500);
  world_.RunFor(30s);  // the third is finished after the commit
  ExpectEqualReplicas(1500);
}

// A stale replica is deleted, its server joins the chunk again, and the order to delete comes a second time.
TEST_F(Finding, F13aADeleteOrderNamesTheInstance) {
  CreateFileOptions options;
  options.replication = 2;
  Create(options);
  WriteAndFlush(0, 1000);
  const ChunkId chunk(Chunk().chunk());
  const Set set = SetOf(Chunk());
  ASSERT_EQ(set.others.size(), 1u);
  const size_t victim = set.others[0];
  Capture(proto::DELETE_REPLICA);
  Away(victim, 70s);
  WriteAndFlush(1000, 500);
  bool deleted = false;
  world_.AddObserver([&](Node& node, const ProtocolEvent& e) {
    if (e.kind == ProtocolEvent::Kind::kReplicaDeleted && &node == &server(victim)) deleted = true;
  });
  ASSERT_TRUE(world_.RunUntil([&] { return deleted; }, 1h));
  const std::vector<Captured> orders = TakeCaptured(proto::DELETE_REPLICA);
  ASSERT_FALSE(orders.empty());
  Away(3 - set.primary - victim, 1h);
  WriteAndFlush(1500, 500);
  ASSERT_TRUE(Counted(Chunk(), victim));
  for (Captured order : orders) {
    EXPECT_FALSE(SendAgain(order));
    proto::DeleteReplicaRequest request;
    ASSERT_TRUE(request.ParseFromString(order.body));
    request.set_version(Chunk().version());  // as if the version had not changed, as that of a clone
    order.body = request.SerializeAsString();
    EXPECT_FALSE(SendAgain(order));
  }
  EXPECT_EQ(Replica(victim, chunk).replica().length(), 2000u);
  ASSERT_TRUE(Close());
  ExpectFile(2000);
}

// An order of the master that was is sent when a server has reported to the one that is.
TEST_F(Finding, F13cTheEpochIsMarkedBeforeTheFirstReport) {
  Capture(proto::ADVANCE_VERSION);
  Create();
  WriteAndFlush(0, 1000);
  BreakConnections(me());
  WriteAndFlush(1000, 500);
  const std::vector<Captured> orders = TakeCaptured(proto::ADVANCE_VERSION);
  ASSERT_FALSE(orders.empty());
  ASSERT_TRUE(Close());
  Capture(proto::CHUNK_REPORT);
  master().Crash(Node::Death::kPower);
  size_t reported = 0;
  ASSERT_TRUE(world_.RunUntil([&] { return (reported += TakeCaptured(proto::CHUNK_REPORT).size()) >= 3; }, 2min));
  for (const Captured& order : orders) {
    auto answer = SendAgain(order);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::kStaleEpoch) << answer.error().ToString();
  }
  ExpectFile(1500);
}

// A replica is filled for a set whose commit never comes: it does not count, whatever its version.
TEST_F(Finding, F14AJoinerCountsFromItsOwnCommitOn) {
  CreateFileOptions options;
  options.replication = 2;
  Create(options);
  WriteAndFlush(0, 1000);
  const Set set = SetOf(Chunk());
  ASSERT_EQ(set.others.size(), 1u);
  const size_t joiner = 3 - set.primary - set.others[0];
  const ChunkId chunk(Chunk().chunk());
  LoseAnswers(proto::ADVANCE_VERSION, server(joiner).name(), 1000);
  bool filled = false;
  world_.AddObserver([&](Node& node, const ProtocolEvent& e) {
    if (e.kind == ProtocolEvent::Kind::kMarkRaised && &node == &server(joiner)) filled = true;
  });
  Away(set.others[0], 10min);
  BeginFlush(1000, 500);
  ASSERT_TRUE(world_.RunUntil([&] { return filled; }, 5min));
  const proto::ChunkLocation before = Chunk();
  EXPECT_GT(Replica(joiner, chunk).replica().version(), before.version());
  EXPECT_EQ(Replica(joiner, chunk).replica().length(), 1000u);
  EXPECT_FALSE(Counted(before, joiner));
  NothingIsLostAnyMore();
  AwaitFlush();
  EXPECT_TRUE(Counted(Chunk(), joiner));
  ASSERT_TRUE(Close());
  ExpectFile(1500);
}

// Bytes that one replica applied, and that a recovery takes away again.
TEST_F(Finding, F16WhatIsNotAcknowledgedIsNotSeen) {
  Create();
  WriteAndFlush(0, 1000);
  world_.RunFor(1s);  // what is acknowledged is announced
  const Set set = SetOf(Chunk());
  const ChunkId chunk(Chunk().chunk());
  for (size_t i : set.others) LoseRequests(proto::WRITE_PACKET, server(i).name(), 1000);
  BeginFlush(1000, 500);
  world_.RunFor(50ms);
  ASSERT_EQ(Replica(set.primary, chunk).replica().length(), 1500u);
  for (int n = 0; n < 6; ++n) EXPECT_EQ(ReadableBytes(), 1000u);
  NothingIsLostAnyMore();
  Recover();
  ExpectFile(1000);
}

// The primary vanishes: until its lease is over for sure, it may serve as one.
TEST_F(Finding, F19AVanishedPrimarysLeaseIsWaitedOut) {
  Create();
  WriteAndFlush(0, 1000);
  const proto::ChunkLocation chunk = Chunk();
  const size_t primary = SetOf(chunk).primary;
  const Nanos lease_end =
      world_.now() + std::chrono::milliseconds(Replica(primary, ChunkId(chunk.chunk())).lease_left_ms());
  Nanos committed{};
  world_.AddObserver([&](Node&, const ProtocolEvent& e) {
    if (e.kind == ProtocolEvent::Kind::kVersionCommitted) committed = world_.now();
  });
  for (size_t i = 0; i < world_.node_count(); ++i) {
    if (&world_.node(i) == &server(primary)) continue;
    world_.Cut(world_.node(i), server(primary));
    world_.Cut(server(primary), world_.node(i));
  }
  BeginFlush(1000, 500);
  AwaitFlush();
  EXPECT_GT(committed, lease_end);
  ASSERT_TRUE(Close());
  ExpectFile(1500);
}

// All that answered have restarted and have nothing; the third may have everything.
TEST_F(Finding, F20NobodyDropsAChunkOnTheWordOfThoseWhoRestarted) {
  Create();
  LoseRequests(proto::WRITE_PACKET, "", 1000);
  BeginFlush(0, 1000);
  world_.RunFor(1s);
  const Set set = SetOf(Chunk());
  ASSERT_EQ(set.others.size(), 2u);
  writer_.reset();
  for (size_t i = 0; i < 3; ++i) Away(i, i == set.primary ? 5min : 1s);
  world_.RunFor(90s);  // the primary counts as dead
  NothingIsLostAnyMore();
  auto waiting = Do(fs_->RecoverLease("/f", true));
  ASSERT_FALSE(waiting);
  EXPECT_EQ(waiting.error().code, Code::kWaitingFor) << waiting.error().ToString();
  EXPECT_THAT(waiting.error().ToString(), HasSubstr("have nothing"));
  EXPECT_THAT(Do(fs_->ShowLease("/f"))->lease().waiting_for(), HasSubstr(ToString(cluster_.server_id(set.primary))));
  EXPECT_TRUE(Do(fs_->Stat("/f"))->open());
  world_.RunFor(5min);
  Recover();
  EXPECT_EQ(Do(fs_->Stat("/f"))->length(), 0u);
}

}  // namespace
}  // namespace picket::sim
