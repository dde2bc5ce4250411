// New chunks, seals, locations and garbage, on a master with fake chunkservers.
#include "tests/unit/master/chunk_half.h"

namespace picket::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;
using Act = FakeDisk::Act;

TEST_F(ChunkTest, NewChunkIsOnEveryServerAndLeased) {
  file = Create("/f");
  auto grant = AddChunk(file);
  ASSERT_TRUE(grant) << grant.error().ToString();
  const uint64_t chunk = grant->token().chunk();
  EXPECT_EQ(grant->chain_size(), 3);
  EXPECT_EQ(grant->length(), 0u);
  EXPECT_EQ(grant->chunk_size(), 1u << 20);
  EXPECT_EQ(chunk >> 32, 1u);
  EXPECT_EQ(grant->token().version(), Version(1, 1).value);
  EXPECT_THAT(disk_of(grant->chain(0).server()).leases, Contains(std::pair(chunk, grant->token().version())));
  auto seen = GetFile("/f");
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->chunks_size(), 1);
  EXPECT_EQ(seen->chunks(0).primary(), grant->chain(0).server());
  EXPECT_EQ(seen->chunks(0).replicas_size(), 3);
  EXPECT_EQ(seen->chunks(0).replicas(0).hop().server(), grant->chain(0).server());
  EXPECT_FALSE(seen->chunks(0).sealed());
}

TEST_F(ChunkTest, RetryOfAddChunkGetsTheSameChunkAlsoAfterARestart) {
  file = Create("/f");
  const proto::AddChunkRequest request = AddRequest(file, 0);
  auto first = Call<proto::WriteGrant>(proto::ADD_CHUNK, request);
  auto second = Call<proto::WriteGrant>(proto::ADD_CHUNK, request);
  RestartMaster(sim::Node::Death::kPower);
  auto third = Call<proto::WriteGrant>(proto::ADD_CHUNK, request);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->SerializeAsString(), second->SerializeAsString());
  EXPECT_EQ(first->SerializeAsString(), third->SerializeAsString());
}

TEST_F(ChunkTest4, FailedTargetIsReplacedOnce) {
  // Every server but the last placed refuses once: whichever is chosen, the spare takes its part.
  Rule(0, proto::CREATE_REPLICA, Act::kRefuse);
  file = Create("/f");
  auto grant = AddChunk(file);
  ASSERT_TRUE(grant) << grant.error().ToString();
  EXPECT_EQ(grant->chain_size(), 3);
}

TEST_F(ChunkTest, FewerThanTheGoalGoesOnFewerThanTheMinimumDoesNot) {
  Rule(0, proto::CREATE_REPLICA, Act::kRefuse);
  file = Create("/f");
  auto grant = AddChunk(file);
  ASSERT_TRUE(grant) << grant.error().ToString();
  EXPECT_EQ(grant->chain_size(), 2);

  Rule(0, proto::CREATE_REPLICA, Act::kRefuse);
  Rule(1, proto::CREATE_REPLICA, Act::kRefuse);
  OpenFile other = Create("/g");
  auto refused = AddChunk(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotEnoughReplicas);
  EXPECT_THAT(refused.error().message, HasSubstr(ToString(disk(0).id)));
  EXPECT_EQ(GetFile("/g")->status().chunk_count(), 0u);
  // What was created for it is garbage, and goes.
  EXPECT_EQ(Report().garbage_chunks(), 1u);
  world.RunFor(10s);
  EXPECT_EQ(disk(2).replicas.size(), 1u);
  world.RunFor(80s);
  EXPECT_EQ(Report().garbage_chunks(), 0u);
}

TEST_F(ChunkTest, ReplicasWhoseCreationWasNotAnsweredAreGarbage) {
  file = Create("/f");
  for (size_t i = 0; i < 3; ++i) Rule(i, proto::CREATE_REPLICA, Act::kLoseAnswer);
  auto refused = AddChunk(file);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotEnoughReplicas);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(disk(i).replicas.size(), 1u);
  EXPECT_EQ(Report().garbage_chunks(), 1u);
  world.RunFor(20s);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(disk(i).replicas.size(), 0u);
  world.RunFor(80s);
  EXPECT_EQ(Report().garbage_chunks(), 0u);
}

TEST_F(ChunkTest, NoServerIsNamed) {
  for (size_t i = 0; i < 3; ++i) server_node(i).Crash(sim::Node::Death::kProcess);
  world.RunFor(20s);
  file = Create("/f");
  auto refused = AddChunk(file);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotEnoughReplicas);
  EXPECT_THAT(refused.error().message, HasSubstr("live chunkservers: none"));
}

TEST_F(ChunkTest, NewChunkNeedsTheRightPlaceAndWriter) {
  file = Create("/f");
  EXPECT_EQ(AddChunk(file, uint64_t{1} << 40).error().code, Code::kInvalidArgument);
  ASSERT_TRUE(AddChunk(file, 0));
  EXPECT_EQ(AddChunk(file, 1).error().code, Code::kConflict);  // chunk 0 is not sealed
  EXPECT_EQ(AddChunk(OpenFile{file.inode, file.generation - 1}, 0).error().code, Code::kStaleGeneration);
  EXPECT_EQ(AddChunk(OpenFile{file.inode + 1, file.generation}, 0).error().code, Code::kNotFound);
}

// A chunk goes anywhere: what lies between is a hole, which can be filled later. One is open at a time.
TEST_F(ChunkTest, AHoleIsLeftAndFilled) {
  WriteFile("/f", "short", /*close=*/false);
  const auto add = [&](uint64_t index, const std::string& bytes) {
    auto added = AddChunk(file, index);
    ASSERT_TRUE(added) << added.error().ToString();
    EXPECT_EQ(AddChunk(file, index + 1).error().code, Code::kConflict);
    Write(*added, bytes);
    auto sealed = CommitSeal(Seal(file, *added));
    ASSERT_TRUE(sealed) << sealed.error().ToString();
  };
  add(3, "far");
  auto seen = GetFile("/f");
  EXPECT_EQ(seen->status().chunk_count(), 4u);
  EXPECT_EQ(seen->status().length(), (3u << 20) + 3);
  EXPECT_EQ(seen->status().stored_bytes(), 8u);
  ASSERT_EQ(seen->chunks_size(), 2);
  EXPECT_EQ(seen->chunks(1).index(), 3u);
  add(1, "between");
  seen = GetFile("/f");
  EXPECT_EQ(seen->status().chunk_count(), 4u);
  EXPECT_EQ(seen->status().length(), (3u << 20) + 3);
  EXPECT_EQ(seen->status().stored_bytes(), 15u);
  ASSERT_EQ(seen->chunks_size(), 3);
  EXPECT_EQ(AddChunk(file, 1).error().code, Code::kConflict);  // taken, and sealed
  proto::CloseRequest close;
  Identify(close.mutable_mutation());
  close.set_inode(file.inode);
  close.set_generation(file.generation);
  close.set_holder(kWriter);
  ASSERT_TRUE(Call<proto::CloseResponse>(proto::CLOSE, close));
  Delete("/f");
  world.RunFor(20s);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(disk(i).replicas.empty()) << i;
}

TEST_F(ChunkTest, AnEmptyChunkBehindAHoleLeavesNoHole) {
  WriteFile("/f", "short", /*close=*/false);
  auto added = AddChunk(file, 5);
  ASSERT_TRUE(added) << added.error().ToString();
  EXPECT_EQ(GetFile("/f")->status().chunk_count(), 6u);
  ASSERT_TRUE(CommitSeal(Seal(file, *added)));
  EXPECT_EQ(GetFile("/f")->status().chunk_count(), 1u);
  EXPECT_EQ(GetFile("/f")->status().length(), 5u);
}

// The writer lost the answer, and asks with a new request: its chunk is there.
TEST_F(ChunkTest, AChunkThatIsOpenAlreadyIsGrantedAgain) {
  file = Create("/f");
  auto first = AddChunk(file, 0);
  auto second = AddChunk(file, 0);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->token().chunk(), first->token().chunk());
  EXPECT_GT(second->token().version(), first->token().version());
}

// The first answer names a version that replicas refuse by now: the retry gets one that they take.
TEST_F(ChunkTest, ARetryOfAddChunkIsNotAnsweredWithAnOvertakenGrant) {
  file = Create("/f");
  const proto::AddChunkRequest request = AddRequest(file, 0);
  auto first = Call<proto::WriteGrant>(proto::ADD_CHUNK, request);
  ASSERT_TRUE(first) << first.error().ToString();
  proto::GrantRequest other = GrantRequestFor(file, *first);
  other.mutable_mutation()->set_first_unacked(request.mutation().sequence());
  ASSERT_TRUE(Call<proto::WriteGrant>(proto::GRANT, other));
  auto again = Call<proto::WriteGrant>(proto::ADD_CHUNK, request);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->token().chunk(), first->token().chunk());
  EXPECT_GT(again->token().version(), first->token().version() + 1);
  EXPECT_EQ(again->token().version(), Chunk(again->token().chunk()).version());
}

// The writer's session ends while the replicas are being created: no chunk may hang on the file.
TEST_F(ChunkTest, F8AddChunkChecksTheWriterInsideTheBatch) {
  file = Create("/f");
  FakeDisk::Rule hold;
  hold.method = proto::CREATE_REPLICA;
  hold.act = Act::kHold;
  hold.release = std::make_shared<bool>(false);
  disk(0).rules.push_back(hold);
  auto adding = Begin<proto::WriteGrant>(proto::ADD_CHUNK, AddRequest(file, 0));
  world.RunUntil([&] { return !disk(1).replicas.empty() && !disk(2).replicas.empty(); }, 5s);
  proto::CloseRequest close;
  Identify(close.mutable_mutation());
  close.set_inode(file.inode);
  close.set_generation(file.generation);
  close.set_holder(kWriter);
  ASSERT_TRUE(Call<proto::CloseResponse>(proto::CLOSE, close));
  *hold.release = true;
  ASSERT_TRUE(world.RunUntil([&] { return adding->has_value(); }, 1min));
  ASSERT_FALSE((*adding)->has_value());
  EXPECT_EQ((*adding)->error().code, Code::kNotLeaseHolder);
  EXPECT_EQ(GetFile("/f")->status().chunk_count(), 0u);
  world.RunFor(10s);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(disk(i).replicas.empty()) << i;
}

TEST_F(ChunkTest, LostLeaseOrderOfANewChunkIsRepaired) {
  for (size_t i = 0; i < 3; ++i) {
    for (int n = 0; n < 2; ++n) Rule(i, proto::GRANT_LEASE, Act::kRefuse, Code::kIoError);
  }
  file = Create("/f");
  const proto::AddChunkRequest request = AddRequest(file, 0);
  auto grant = Call<proto::WriteGrant>(proto::ADD_CHUNK, request);
  ASSERT_TRUE(grant) << grant.error().ToString();
  EXPECT_GT(grant->token().version(), Version(1, 1).value);
  // A retry is told the version that holds.
  auto again = Call<proto::WriteGrant>(proto::ADD_CHUNK, request);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->SerializeAsString(), grant->SerializeAsString());
}

TEST_F(ChunkTest, AfterARestartServersAreWaitedForBeforeFewerAreUsed) {
  file = Create("/f");
  RestartMaster();
  auto grant = AddChunk(file);
  ASSERT_TRUE(grant) << grant.error().ToString();
  EXPECT_EQ(grant->chain_size(), 3);
}

// ---- seals -----------------------------------------------------------------------------------------

TEST_F(ChunkTest, SealedFileIsReadFromThreeAtOnce) {
  const proto::WriteGrant grant = WriteFile("/f", "hello");
  auto seen = GetFile("/f");
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->status().open());
  EXPECT_EQ(seen->status().length(), 5u);
  ASSERT_EQ(seen->chunks_size(), 1);
  const proto::ChunkLocation& chunk = seen->chunks(0);
  EXPECT_TRUE(chunk.sealed());
  EXPECT_EQ(chunk.length(), 5u);
  EXPECT_EQ(chunk.digest(), DigestOf("hello"));
  EXPECT_EQ(chunk.version(), grant.token().version());
  EXPECT_EQ(chunk.primary(), 0u);
  ASSERT_EQ(chunk.replicas_size(), 3);
  for (const auto& r : chunk.replicas()) EXPECT_TRUE(r.counted());
}

TEST_F(ChunkTest, LocationsOfSealedChunksComeBackFromReports) {
  WriteFile("/f", "hello");
  RestartMaster(sim::Node::Death::kPower);
  ASSERT_TRUE(AwaitLive(3));
  world.RunFor(1s);
  EXPECT_EQ(GetFile("/f")->chunks(0).replicas_size(), 3);
  EXPECT_EQ(Report().chunks_under_goal(), 0u);
  // A replica that is not what was sealed is shown only on demand.
  disk(0).replicas.begin()->second.bytes = "jello";
  server_node(0).Crash(sim::Node::Death::kProcess);
  StartServer(0);
  world.RunFor(5s);
  EXPECT_EQ(GetFile("/f")->chunks(0).replicas_size(), 2);
  auto all = GetFile("/f", true);
  ASSERT_EQ(all->chunks(0).replicas_size(), 3);
  EXPECT_FALSE(all->chunks(0).replicas(2).counted());
  EXPECT_EQ(Report().chunks_under_goal(), 1u);
}

TEST_F(ChunkTest, D9SealNeedsEveryMemberAndTheVersion) {
  file = Create("/f");
  auto grant = AddChunk(file);
  ASSERT_TRUE(grant);
  Write(*grant, "hello");
  proto::CommitSealRequest seal = Seal(file, *grant);
  auto with = [&](auto change) {
    proto::CommitSealRequest r = seal;
    r.mutable_mutation()->set_sequence(++sequence);
    change(&r);
    auto done = CommitSeal(r);
    return done ? Code::kOk : done.error().code;
  };
  EXPECT_EQ(with([](auto* r) { r->mutable_sealed_servers()->RemoveLast(); }), Code::kConflict);
  EXPECT_EQ(with([](auto* r) { r->set_sealed_servers(0, 999); }), Code::kConflict);
  EXPECT_EQ(with([](auto* r) { r->set_version(r->version() + 1); }), Code::kSuperseded);
  EXPECT_EQ(with([](auto* r) { r->set_version(r->version() - 1); }), Code::kStaleVersion);
  EXPECT_EQ(with([](auto* r) { r->set_generation(r->generation() - 1); }), Code::kStaleGeneration);
  EXPECT_EQ(with([](auto* r) { r->set_holder(1); }), Code::kNotLeaseHolder);
  EXPECT_EQ(with([](auto* r) { r->set_length((1 << 20) + 1); }), Code::kInvalidArgument);
  EXPECT_EQ(with([](auto* r) { r->set_length(0); }), Code::kInvalidArgument);
  EXPECT_EQ(with([](auto*) {}), Code::kOk);
  EXPECT_EQ(with([](auto* r) { r->set_digest(r->digest() + 1); }), Code::kConflict);  // sealed already
  EXPECT_EQ(with([](auto*) {}), Code::kOk);  // as the very same
}

TEST_F(ChunkTest, RetryOfASealWithCloseIsAnsweredAgain) {
  file = Create("/f");
  auto grant = AddChunk(file);
  ASSERT_TRUE(grant);
  Write(*grant, "hello");
  proto::CommitSealRequest seal = Seal(file, *grant);
  seal.set_close(true);
  auto first = CommitSeal(seal);
  RestartMaster(sim::Node::Death::kPower);
  auto second = CommitSeal(seal);
  ASSERT_TRUE(first) << first.error().ToString();
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_EQ(first->SerializeAsString(), second->SerializeAsString());
  EXPECT_FALSE(first->status().open());
}

TEST_F(ChunkTest, EmptyChunkIsDropped) {
  file = Create("/f");
  auto grant = AddChunk(file);
  ASSERT_TRUE(grant);
  proto::CommitSealRequest seal = Seal(file, *grant);
  seal.set_close(true);
  ASSERT_TRUE(seal.drop_empty());
  ASSERT_TRUE(CommitSeal(seal));
  auto seen = GetFile("/f");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->status().chunk_count(), 0u);
  EXPECT_EQ(seen->chunks_size(), 0);
  world.RunFor(10s);
  EXPECT_EQ(ReplicasOf(grant->token().chunk()), 0u);
}

// ---- garbage ---------------------------------------------------------------------------------------

TEST_F(ChunkTest, F13DeletedChunksGoByExactVersionAndInstance) {
  const proto::WriteGrant grant = WriteFile("/f", "hello");
  const uint64_t chunk = grant.token().chunk();
  world.RunFor(5s);
  // One server has another instance than it reported: the order must not hit it.
  disk(0).replicas.at(chunk).instance += 100;
  Delete("/f");
  world.RunFor(15s);
  EXPECT_EQ(disk(0).replicas.count(chunk), 1u);
  EXPECT_EQ(disk(1).replicas.count(chunk), 0u);
  EXPECT_EQ(disk(2).replicas.count(chunk), 0u);
  EXPECT_EQ(Report().garbage_chunks(), 1u);
  // Once it reports what it has, that goes too, and then the record.
  server_node(0).Crash(sim::Node::Death::kProcess);
  StartServer(0);
  world.RunFor(60s);
  EXPECT_EQ(ReplicasOf(chunk), 0u);
  EXPECT_EQ(Report().garbage_chunks(), 0u);
}

TEST_F(ChunkTest, F13NothingIsDeletedBeforeTheServerHasReportedToThisMaster) {
  const proto::WriteGrant grant = WriteFile("/f", "hello");
  const uint64_t chunk = grant.token().chunk();
  // What it said in an earlier session is not its word in this one.
  server_node(0).Crash(sim::Node::Death::kProcess);
  disk(0).report = false;
  StartServer(0);
  world.RunFor(3s);
  Delete("/f");
  world.RunFor(15s);
  EXPECT_THAT(disk(0).orders, Not(Contains(proto::DELETE_REPLICA)));
  EXPECT_THAT(disk(1).orders, Contains(proto::DELETE_REPLICA));
  EXPECT_EQ(ReplicasOf(chunk), 1u);
  EXPECT_EQ(Report().garbage_chunks(), 1u);
  // Nor does a new master delete by what an earlier one was told.
  RestartMaster();
  ASSERT_TRUE(AwaitLive(3));
  world.RunFor(40s);
  EXPECT_EQ(ReplicasOf(chunk), 1u);
  EXPECT_EQ(Report().garbage_chunks(), 1u);
  disk(0).report = true;
  server_node(0).Crash(sim::Node::Death::kProcess);
  StartServer(0);
  world.RunFor(60s);
  EXPECT_EQ(ReplicasOf(chunk), 0u);
  EXPECT_EQ(Report().garbage_chunks(), 0u);
}

TEST_F(ChunkTest, GarbageOfADeadServerWaitsForIt) {
  const proto::WriteGrant grant = WriteFile("/f", "hello");
  const uint64_t chunk = grant.token().chunk();
  server_node(0).Crash(sim::Node::Death::kProcess);
  Delete("/f");
  world.RunFor(3min);
  EXPECT_EQ(ReplicasOf(chunk), 1u);
  EXPECT_EQ(Report().garbage_chunks(), 1u);
  StartServer(0);
  world.RunFor(60s);
  EXPECT_EQ(ReplicasOf(chunk), 0u);
  EXPECT_EQ(Report().garbage_chunks(), 0u);
}

TEST_F(ChunkTest, OrphansAreLeftAlone) {
  FakeReplica orphan;
  orphan.version = Version(1, 9).value;
  orphan.instance = 77;
  disk(0).replicas[12345] = orphan;
  server_node(0).Crash(sim::Node::Death::kProcess);
  StartServer(0);
  world.RunFor(60s);
  EXPECT_EQ(disk(0).replicas.count(12345), 1u);
  EXPECT_THAT(disk(0).orders, Not(Contains(proto::DELETE_REPLICA)));
}

}  // namespace
}  // namespace picket::test
