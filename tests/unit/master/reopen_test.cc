// A sealed chunk is opened again by its file's session: who takes part, what is never lost, and what an attempt
// that dies leaves behind.
#include <gmock/gmock.h>

#include "tests/unit/master/cluster_half.h"

namespace picket::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;
using Act = FakeDisk::Act;

class ReopenTest : public ClusterTest {
 protected:
  explicit ReopenTest(size_t servers = 3) : ClusterTest(servers) {}
  // An open file whose one chunk is sealed with these bytes.
  void WriteAndSeal(const std::string& bytes) {
    file = Create("/f");
    auto added = AddChunk(file);
    ASSERT_TRUE(added) << added.error().ToString();
    grant = *added;
    chunk = grant.token().chunk();
    Write(grant, bytes);
    auto sealed = CommitSeal(Seal(file, grant));
    ASSERT_TRUE(sealed) << sealed.error().ToString();
    world.RunFor(5s);  // everybody has reported
  }
  proto::GrantRequest ReopenRequest(uint64_t acked = 0) {
    proto::GrantRequest request = GrantRequestFor(file, grant, {}, acked);
    request.set_reopen(true);
    return request;
  }
  Result<proto::WriteGrant> Reopen(uint64_t acked = 0) {
    return Call<proto::WriteGrant>(proto::GRANT, ReopenRequest(acked));
  }
  void Refuse(uint64_t server, proto::Method method, Code code = Code::kIoError) {
    FakeDisk::Rule rule;
    rule.method = method;
    rule.act = Act::kRefuse;
    rule.error = Error(code, "as the test wants");
    disk_of(server).rules.push_back(rule);
  }
  uint64_t server(int i) const { return grant.chain(i).server(); }
  FakeReplica& At(uint64_t server) { return disk_of(server).replicas.at(chunk); }
  size_t Readable() {
    auto seen = GetFile("/f");
    EXPECT_TRUE(seen && seen->chunks_size() == 1);
    for (const auto& replica : seen->chunks(0).replicas()) EXPECT_TRUE(replica.readable());
    return static_cast<size_t>(seen->chunks(0).replicas_size());
  }

  OpenFile file;
  proto::WriteGrant grant;
  uint64_t chunk = 0;
};
class ReopenTest4 : public ReopenTest {
 protected:
  ReopenTest4() : ReopenTest(4) {}
};

TEST_F(ReopenTest, GoesOnWhereItWasSealed) {
  WriteAndSeal("one");
  auto again = Reopen(3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_GT(again->token().version(), grant.token().version());
  EXPECT_EQ(again->length(), 3u);
  EXPECT_THAT(ServersOf(*again), UnorderedElementsAre(server(0), server(1), server(2)));
  EXPECT_THAT(disk_of(again->chain(0).server()).leases, Contains(std::pair(chunk, again->token().version())));
  const proto::ChunkLocation open = Chunk(chunk);
  EXPECT_FALSE(open.sealed());
  EXPECT_EQ(open.version(), again->token().version());
  EXPECT_EQ(open.digest(), 0u);
  EXPECT_EQ(GetFile("/f")->status().length(), 3u);  // what was sealed stays of the file
  Write(*again, "two");
  auto sealed = CommitSeal(Seal(file, *again));
  ASSERT_TRUE(sealed) << sealed.error().ToString();
  EXPECT_EQ(sealed->status().length(), 6u);
  EXPECT_EQ(sealed->status().stored_bytes(), 6u);
  EXPECT_EQ(Chunk(chunk).digest(), DigestOf("onetwo"));
}

TEST_F(ReopenTest, WithoutTheWordASealedChunkStaysSealed) {
  WriteAndSeal("one");
  auto refused = Grant(file, grant);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict) << refused.error().ToString();
  EXPECT_EQ(Chunk(chunk).minted(), grant.token().version());
}

// Whoever did not count when the chunk was sealed lacks bytes; an order would make it look good (F1, F3).
TEST_F(ReopenTest, OnlyReplicasThatCountAreAsked) {
  file = Create("/f");
  auto added = AddChunk(file);
  ASSERT_TRUE(added) << added.error().ToString();
  grant = *added;
  chunk = grant.token().chunk();
  // The answer of one is lost: it bears the version and is outside the set.
  FakeDisk::Rule lose;
  lose.method = proto::ADVANCE_VERSION;
  lose.act = Act::kLoseAnswer;
  disk_of(server(2)).rules.push_back(lose);
  auto second = Grant(file, grant);
  ASSERT_TRUE(second) << second.error().ToString();
  ASSERT_THAT(ServersOf(*second), UnorderedElementsAre(server(0), server(1)));
  Write(*second, "one");
  ASSERT_TRUE(CommitSeal(Seal(file, *second)));
  world.RunFor(5s);
  ASSERT_EQ(At(server(2)).version, second->token().version());
  disk_of(server(2)).orders.clear();
  auto again = Reopen(3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_THAT(ServersOf(*again), UnorderedElementsAre(server(0), server(1)));
  EXPECT_THAT(disk_of(server(2)).orders, Not(Contains(proto::ADVANCE_VERSION)));
}

TEST_F(ReopenTest, OtherBytesThanThoseSealedTakeNoPart) {
  WriteAndSeal("one");
  At(server(1)).bytes = "two";
  auto again = Reopen(3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_THAT(ServersOf(*again), UnorderedElementsAre(server(0), server(2)));
  EXPECT_EQ(At(server(0)).bytes, "one");
}

TEST_F(ReopenTest, NobodyWithTheSealedBytesIsNamed) {
  WriteAndSeal("one");
  for (int i = 0; i < 3; ++i) At(server(i)).bytes = "on";
  auto refused = Reopen();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotEnoughReplicas) << refused.error().ToString();
  EXPECT_THAT(refused.error().message, HasSubstr(ToString(ServerId(server(0)))));
  EXPECT_TRUE(Chunk(chunk).sealed());
}

// What was sealed is durable: a restart takes nothing of it away.
TEST_F(ReopenTest, AServerThatRestartedTakesPart) {
  WriteAndSeal("one");
  server_node(index_of(server(1))).Crash(sim::Node::Death::kProcess);
  StartServer(index_of(server(1)));
  world.RunFor(5s);
  auto again = Reopen(3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->chain_size(), 3);
  EXPECT_EQ(again->token().version(), grant.token().version() + 1);  // nothing had to be made equal
}

// The floor outlives the seal: a chunk that is open again never goes below it, whatever the writer says.
TEST_F(ReopenTest, SealedBytesMissingLaterStopTheChunk) {
  WriteAndSeal("one");
  auto again = Reopen(3);
  ASSERT_TRUE(again) << again.error().ToString();
  At(server(1)).bytes = "on";
  auto refused = Grant(file, *again, {}, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kIntegrity) << refused.error().ToString();
}

TEST_F(ReopenTest, ASealBelowTheLastOneIsIntegrity) {
  WriteAndSeal("one");
  auto again = Reopen(3);
  ASSERT_TRUE(again) << again.error().ToString();
  for (int i = 0; i < 3; ++i) At(server(i)).bytes = "on";
  EXPECT_EQ(CommitSeal(Seal(file, *again)).error().code, Code::kIntegrity);
}

// The marks are raised, nothing is committed: the bytes are readable all along, and the next attempt goes on.
TEST_F(ReopenTest, AFailedAttemptHealsByTheNext) {
  WriteAndSeal("one");
  Refuse(server(1), proto::ADVANCE_VERSION);
  Refuse(server(2), proto::ADVANCE_VERSION);
  auto refused = Reopen(3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotEnoughReplicas) << refused.error().ToString();
  EXPECT_GT(At(server(0)).version, grant.token().version());
  EXPECT_TRUE(Chunk(chunk).sealed());
  EXPECT_EQ(Readable(), 3u);
  world.RunFor(5s);  // the raised one has reported it
  EXPECT_EQ(Readable(), 3u);
  // A seal of the old version finds an attempt in its way.
  EXPECT_EQ(CommitSeal(Seal(file, grant)).error().code, Code::kSuperseded);
  auto again = Reopen(3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->chain_size(), 3);
  EXPECT_EQ(again->length(), 3u);
}

TEST_F(ReopenTest, AMasterThatDiesInBetweenLeavesNothingBehind) {
  WriteAndSeal("one");
  FakeDisk::Rule hold;
  hold.method = proto::ADVANCE_VERSION;
  hold.act = Act::kHold;
  hold.release = std::make_shared<bool>(false);
  disk_of(server(2)).rules.push_back(hold);
  auto attempt = Begin<proto::WriteGrant>(proto::GRANT, ReopenRequest(3));
  ASSERT_TRUE(world.RunUntil([&] { return At(server(0)).version > grant.token().version(); }, 5s));
  RestartMaster(sim::Node::Death::kPower);
  *hold.release = true;
  // Asked before anybody has reported: the replicas are waited for.
  auto again = Reopen(3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->chain_size(), 3);
  EXPECT_EQ(again->length(), 3u);
  EXPECT_GT(again->token().version(), At(server(0)).version - 1);
}

TEST_F(ReopenTest, TheFileIsNotClosedInBetween) {
  WriteAndSeal("one");
  Refuse(server(1), proto::ADVANCE_VERSION);
  Refuse(server(2), proto::ADVANCE_VERSION);
  ASSERT_FALSE(Reopen(3));
  proto::CloseRequest close;
  close.set_inode(file.inode);
  close.set_generation(file.generation);
  close.set_holder(kWriter);
  Identify(close.mutable_mutation());
  EXPECT_EQ(Call<proto::CloseResponse>(proto::CLOSE, close).error().code, Code::kConflict);
  auto again = Reopen(3);
  ASSERT_TRUE(again) << again.error().ToString();
  ASSERT_TRUE(CommitSeal(Seal(file, *again)));
  Identify(close.mutable_mutation());
  EXPECT_TRUE(Call<proto::CloseResponse>(proto::CLOSE, close));
}

TEST_F(ReopenTest, OneChunkOfAFileIsOpenAtATime) {
  WriteAndSeal("one");
  auto next = AddChunk(file, 1);
  ASSERT_TRUE(next) << next.error().ToString();
  auto refused = Reopen(3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  Write(*next, "two");
  ASSERT_TRUE(CommitSeal(Seal(file, *next)));
  ASSERT_TRUE(Reopen(3));
  EXPECT_EQ(AddChunk(file, 2).error().code, Code::kConflict);
}

TEST_F(ReopenTest4, TooFewThatCountTakeAJoiner) {
  WriteAndSeal("one");
  for (int i = 1; i < 3; ++i) server_node(index_of(server(i))).Crash(sim::Node::Death::kProcess);
  world.RunFor(20s);
  auto again = Reopen(3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->chain_size(), 2);
  EXPECT_EQ(again->length(), 3u);
  for (uint64_t member : ServersOf(*again)) EXPECT_EQ(At(member).bytes, "one");
}

TEST_F(ReopenTest, NoRoomIsSaid) {
  WriteAndSeal("one");
  for (int i = 1; i < 3; ++i) Refuse(server(i), proto::ADVANCE_VERSION, Code::kNoSpace);
  auto refused = Reopen(3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotEnoughReplicas);
  for (int i = 1; i < 3; ++i) {
    EXPECT_THAT(refused.error().message, HasSubstr(ToString(ServerId(server(i))) + " (NO_SPACE"));
  }
}

}  // namespace
}  // namespace picket::test
