// Another history that chunkservers have seen: the master stops, and an operator decides.
#include <gmock/gmock.h>

#include "master/adopt_plan.h"
#include "tests/unit/master/cluster_half.h"

namespace picket::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class AdoptTest : public ClusterTest {
 protected:
  AdoptTest() {
    file = Create("/f");
    auto added = AddChunk(file);
    EXPECT_TRUE(added);
    grant = *added;
    chunk = grant.token().chunk();
    Write(grant, "old bytes");
  }
  void SealIt() {
    proto::CommitSealRequest seal = Seal(file, grant);
    seal.set_close(true);
    EXPECT_TRUE(CommitSeal(seal));
  }
  // Every server has seen a master of epoch 7 (a history that this one does not know), and comes back with
  // what that wrote.
  void LoseHistory(const std::string& bytes, proto::ReplicaState state) {
    for (size_t i = 0; i < 3; ++i) {
      server_node(i).Crash(sim::Node::Death::kProcess);
      FakeReplica& r = replica(i, chunk);
      r.version = Version(7, 5).value;
      r.generation = Generation(7, 5).value;
      r.state = state;
      r.bytes = bytes;
      disk(i).mark.mutable_epoch()->set_number(7);
      disk(i).mark.mutable_epoch()->set_nonce(77);
      disk(i).mark.set_revision(1000);
    }
    RestartMaster();
    for (size_t i = 0; i < 3; ++i) StartServer(i);
    ASSERT_TRUE(world.RunUntil([&] { return Report().state() != "serving"; }, 30s));
    world.RunFor(2s);
  }
  Result<proto::AdoptResponse> Adopt(bool dry_run = false, bool discard = false) {
    request.Clear();
    request.set_dry_run(dry_run);
    request.set_discard(discard);
    Identify(request.mutable_mutation());
    return Call<proto::AdoptResponse>(proto::ADOPT, request);
  }
  // The first step: the master serves again, above every mark.
  void ServeAgain() {
    auto adopted = Adopt();
    ASSERT_TRUE(adopted) << adopted.error().ToString();
    EXPECT_TRUE(adopted->history_lost());
    RestartMaster(sim::Node::Death::kPower);
    ASSERT_TRUE(AwaitLive(3));
    world.RunFor(1s);
    EXPECT_EQ(Report().epoch().number(), adopted->epoch());
  }
  size_t Counted() {
    size_t n = 0;
    for (const auto& r : Chunk(chunk).replicas()) n += r.counted() ? 1 : 0;
    return n;
  }
  OpenFile file;
  proto::WriteGrant grant;
  uint64_t chunk = 0;
  proto::AdoptRequest request;
};

TEST_F(AdoptTest, TheNextEpochIsAboveEveryMarkSeen) {
  SealIt();
  LoseHistory("new and longer bytes", proto::SEALED);
  auto dry = Adopt(true);
  ASSERT_TRUE(dry) << dry.error().ToString();
  EXPECT_TRUE(dry->history_lost());
  EXPECT_EQ(dry->epoch(), 8u);
  ASSERT_EQ(dry->replicas_size(), 3);
  EXPECT_THAT(dry->replicas(0).action(), HasSubstr("seen epoch 7 up to revision 1000"));
  // Saying it changes nothing.
  RestartMaster();
  ASSERT_TRUE(world.RunUntil([&] { return Report().state() != "serving"; }, 30s));
  world.RunFor(2s);
  ServeAgain();
  EXPECT_EQ(Report().epoch().number(), 8u);
  EXPECT_THAT(Report().state(), StartsWith("serving; AHEAD_OF_MASTER: 3 replicas"));
  // The next start needs nobody's decision.
  RestartMaster();
  EXPECT_TRUE(AwaitLive(3));
  EXPECT_EQ(Report().epoch().number(), 9u);
}

TEST_F(AdoptTest, NothingIsDiscardedByAMasterThatIsRefused) {
  SealIt();
  LoseHistory("new and longer bytes", proto::SEALED);
  auto refused = Adopt(false, true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kHistoryLost);
}

TEST_F(AdoptTest, SealedReplicasThatAgreeAreTakenOver) {
  SealIt();
  LoseHistory("new and longer bytes", proto::SEALED);
  ServeAgain();
  EXPECT_EQ(Counted(), 0u);  // ahead: served to nobody
  for (const auto& r : Chunk(chunk).replicas()) EXPECT_EQ(r.worth(), "ahead of the master");
  auto dry = Adopt(true);
  ASSERT_TRUE(dry) << dry.error().ToString();
  ASSERT_EQ(dry->replicas_size(), 3);
  EXPECT_EQ(dry->replicas(0).path(), "/f");
  EXPECT_EQ(dry->replicas(0).action(), "adopt at 7.5");
  EXPECT_EQ(Counted(), 0u);
  auto adopted = Adopt();
  ASSERT_TRUE(adopted) << adopted.error().ToString();
  EXPECT_FALSE(adopted->history_lost());
  EXPECT_EQ(Counted(), 3u);
  auto seen = GetFile("/f");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->status().length(), std::string("new and longer bytes").size());
  auto again = Call<proto::AdoptResponse>(proto::ADOPT, request);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->SerializeAsString(), adopted->SerializeAsString());
  // Durable, and vouched for from then on.
  RestartMaster(sim::Node::Death::kPower);
  ASSERT_TRUE(AwaitLive(3));
  world.RunFor(1s);
  EXPECT_EQ(Counted(), 3u);
  auto none = Adopt(true);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->replicas_size(), 0);
}

TEST_F(AdoptTest, AnOpenFileIsLeftToLeaseRecovery) {
  LoseHistory("written by the other", proto::OPEN);
  ServeAgain();
  auto adopted = Adopt();
  ASSERT_TRUE(adopted) << adopted.error().ToString();
  ASSERT_EQ(adopted->replicas_size(), 3);
  EXPECT_EQ(adopted->replicas(0).action(), "adopt for lease recovery at 7.5");
  proto::RecoverLeaseRequest recover;
  Identify(recover.mutable_mutation());
  recover.set_path("/f");
  recover.set_wait(true);
  auto closed = Call<proto::RecoverLeaseResponse>(proto::RECOVER_LEASE, recover);
  ASSERT_TRUE(closed) << closed.error().ToString();
  EXPECT_TRUE(closed->closed());
  EXPECT_EQ(closed->status().length(), std::string("written by the other").size());
  EXPECT_EQ(Chunk(chunk).version() >> 32, 8u);
}

// Whose it is, nobody can tell: it may be all that is left of the history that was given up.
TEST_F(AdoptTest, AReplicaWithoutARecordFromBeforeIsNoOrphan) {
  SealIt();
  const uint64_t unknown = Version(1, 900).value;
  disk(0).replicas[unknown] = replica(0, chunk);
  disk(0).replicas[unknown].version = Version(1, 901).value;
  LoseHistory("new and longer bytes", proto::SEALED);
  ServeAgain();
  auto dry = Adopt(true);
  ASSERT_TRUE(dry);
  ASSERT_EQ(dry->replicas_size(), 4);
  EXPECT_THAT(dry->replicas(3).action(), HasSubstr("no record"));
  world.RunFor(2h);
  EXPECT_TRUE(disk(0).replicas.contains(unknown));
}

TEST_F(AdoptTest, DiscardedReplicasGoToQuarantineByExactVersion) {
  SealIt();
  LoseHistory("new and longer bytes", proto::SEALED);
  ServeAgain();
  auto dry = Adopt(true, true);
  ASSERT_TRUE(dry);
  EXPECT_EQ(dry->replicas(0).action(), "quarantine");
  EXPECT_EQ(disk(0).replicas.size(), 1u);
  auto discarded = Adopt(false, true);
  ASSERT_TRUE(discarded) << discarded.error().ToString();
  ASSERT_EQ(discarded->replicas_size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(disk(i).replicas.empty());
    EXPECT_EQ(disk(i).quarantine.size(), 1u);
  }
}

Replica Sealed(uint64_t server, Version version, uint64_t length, uint32_t digest) {
  Replica r;
  r.server = ServerId(server);
  r.version = version;
  r.state = proto::SEALED;
  r.length = length;
  r.digest = digest;
  return r;
}

record::Chunk ClosedAt(Version version, uint64_t length) {
  record::Chunk c;
  c.set_inode(5);
  c.set_minted(version.value);
  c.set_current(version.value);
  c.set_sealed(true);
  c.set_length(length);
  return c;
}

TEST(AdoptPlan, OnlyTheNewestAndOnlyWhatAgrees) {
  const record::Chunk record = ClosedAt(Version(1, 1), 10);
  const Replica a = Sealed(1, Version(3, 2), 20, 7), b = Sealed(2, Version(3, 2), 20, 7);
  const Adoption taken = PlanAdoption(&record, {Sealed(3, Version(2, 9), 30, 9), a, b}, 4);
  ASSERT_TRUE(taken.possible) << taken.why;
  EXPECT_TRUE(taken.Takes(a));
  EXPECT_FALSE(taken.Takes(Sealed(3, Version(2, 9), 30, 9)));
  EXPECT_EQ(taken.record.current(), Version(3, 2).value);
  EXPECT_EQ(taken.record.minted(), Version(3, 2).value);
  EXPECT_EQ(taken.record.length(), 20u);
  EXPECT_THAT(PlanAdoption(&record, {a, Sealed(2, Version(3, 2), 20, 8)}, 4).why, HasSubstr("differ"));
  EXPECT_THAT(PlanAdoption(&record, {Sealed(1, Version(3, 2), 9, 7)}, 4).why, HasSubstr("shorter"));
  EXPECT_THAT(PlanAdoption(&record, {a}, 3).why, HasSubstr("epoch"));
  EXPECT_THAT(PlanAdoption(nullptr, {a}, 4).why, HasSubstr("no record"));
  Replica open = Sealed(4, Version(3, 3), 25, 0);
  open.state = proto::OPEN;
  EXPECT_THAT(PlanAdoption(&record, {a, open}, 4).why, HasSubstr("closed here"));
  record::Chunk garbage = record;
  garbage.set_inode(0);
  EXPECT_FALSE(PlanAdoption(&garbage, {a}, 4).possible);
}

}  // namespace
}  // namespace picket::test
