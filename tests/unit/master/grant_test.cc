// Grants of primary leases against chunkservers that misbehave. Each test of a finding bears its name.
#include <gmock/gmock.h>

#include "master/grant_plan.h"
#include "tests/unit/master/cluster_half.h"

namespace picket::test {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Act = FakeDisk::Act;

class GrantTest : public ClusterTest {
 protected:
  explicit GrantTest(size_t servers = 3) : ClusterTest(servers, ShortLeases()) {}
  static MasterOptions ShortLeases() {
    MasterOptions o;
    o.lease = 20s;
    return o;
  }
  // A file with one open chunk on every server.
  void Open(uint32_t replication = 3) {
    file = Create("/f", replication);
    auto added = AddChunk(file);
    ASSERT_TRUE(added) << added.error().ToString();
    grant = *added;
    chunk = grant.token().chunk();
  }
  uint64_t primary() const { return grant.chain(0).server(); }
  uint64_t secondary(int i = 1) const { return grant.chain(i).server(); }
  void Rule(uint64_t server, proto::Method method, Act act, Code code = Code::kIoError) {
    FakeDisk::Rule rule;
    rule.method = method;
    rule.act = act;
    rule.error = Error(code, "as the test wants");
    rule.release = std::make_shared<bool>(false);
    disk_of(server).rules.push_back(rule);
  }
  std::shared_ptr<bool> Hold(uint64_t server, proto::Method method) {
    Rule(server, method, Act::kHold);
    return disk_of(server).rules.back().release;
  }
  void Kill(uint64_t server) { server_node(index_of(server)).Crash(sim::Node::Death::kProcess); }
  void Boot(uint64_t server) { StartServer(index_of(server)); }
  FakeReplica& At(uint64_t server) { return disk_of(server).replicas.at(chunk); }

  OpenFile file;
  proto::WriteGrant grant;
  uint64_t chunk = 0;
};

class GrantTest4 : public GrantTest {
 protected:
  GrantTest4() : GrantTest(4) {}
};

TEST_F(GrantTest, RaisesTheVersionOnTheSurvivorsAndGoesOn) {
  Open();
  Write(grant, std::string(100'000, 'a'));
  Kill(secondary());
  auto again = Grant(file, grant, {secondary()}, 100'000);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_GT(again->token().version(), grant.token().version());
  EXPECT_THAT(ServersOf(*again), ElementsAre(primary(), secondary(2)));
  EXPECT_EQ(again->length(), 100'000u);
  EXPECT_EQ(again->chain(0).incarnation(), 1u);
  EXPECT_THAT(disk_of(primary()).leases, testing::Contains(std::pair(chunk, again->token().version())));
  const proto::ChunkLocation seen = Chunk(chunk);
  EXPECT_EQ(seen.version(), again->token().version());
  EXPECT_EQ(seen.primary(), primary());
}

// A replica that got the order and whose answer was lost bears the current version, and is no member.
TEST_F(GrantTest, F1LostAnswerIsNoMember) {
  Open();
  Write(grant, "one");
  Rule(secondary(), proto::ADVANCE_VERSION, Act::kLoseAnswer);
  auto again = Grant(file, grant, {}, 3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_THAT(ServersOf(*again), UnorderedElementsAre(primary(), secondary(2)));
  EXPECT_EQ(At(secondary()).version, again->token().version());
  Write(*again, "two");
  // Shown to nobody, although its version is the current one.
  world.RunFor(5s);
  for (const auto& replica : Chunk(chunk).replicas()) {
    EXPECT_EQ(replica.counted(), replica.hop().server() != secondary()) << replica.hop().server();
  }
  // And asked by nobody: its shorter content cuts nothing off.
  auto third = Grant(file, *again, {}, 6);
  ASSERT_TRUE(third) << third.error().ToString();
  EXPECT_EQ(third->length(), 6u);
  EXPECT_THAT(ServersOf(*third), UnorderedElementsAre(primary(), secondary(2)));
}

// Differing answers are made equal under a version of their own, never at the one that was asked.
TEST_F(GrantTest, F2ReconciliationHasAVersionOfItsOwn) {
  Open();
  Write(grant, "one");
  At(secondary()).bytes += "two";  // applied, not acknowledged
  auto again = Grant(file, grant, {}, 3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->length(), 3u);
  EXPECT_EQ(again->token().version(), grant.token().version() + 2);
  for (uint64_t server : ServersOf(*again)) {
    EXPECT_EQ(At(server).bytes, "one");
    EXPECT_EQ(At(server).version, again->token().version());
  }
  EXPECT_THAT(Committed(chunk), ElementsAre(grant.token().version(), again->token().version()));
}

TEST_F(GrantTest, F2AMissingAnswerVoidsTheReconciliation) {
  Open();
  Write(grant, "one");
  At(primary()).bytes += "x";
  // The second order of the attempt is refused: nothing of this number may be committed.
  Rule(secondary(), proto::ADVANCE_VERSION, Act::kHold);
  *disk_of(secondary()).rules.back().release = true;
  Rule(secondary(), proto::ADVANCE_VERSION, Act::kRefuse);
  auto again = Grant(file, grant, {}, 3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_THAT(ServersOf(*again), UnorderedElementsAre(primary(), secondary(2)));
  EXPECT_GT(again->token().version(), grant.token().version() + 2);
  EXPECT_EQ(At(primary()).bytes, "one");
}

// A replica that lost power has lost what was acknowledged; the others do not follow it.
TEST_F(GrantTest, F4RestartedReplicaDoesNotCutTheOthers) {
  Open();
  Write(grant, "acknowledged");
  Kill(secondary());
  At(secondary()).bytes.clear();
  Boot(secondary());
  world.RunFor(5s);
  auto again = Grant(file, grant, {}, 12);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->length(), 12u);
  EXPECT_EQ(again->chain_size(), 3);
  EXPECT_EQ(At(secondary()).bytes, "acknowledged");
  EXPECT_EQ(At(primary()).bytes, "acknowledged");
  // It counts again, with its present boot.
  for (const proto::Hop& hop : again->chain()) {
    EXPECT_EQ(hop.incarnation(), hop.server() == secondary() ? 2u : 1u);
  }
}

TEST_F(GrantTest, F4WithoutACleanReplicaTheMissingMemberIsWaitedFor) {
  Open();
  Write(grant, "acknowledged");
  for (uint64_t server : {primary(), secondary()}) {
    Kill(server);
    At(server).bytes.clear();
    Boot(server);
  }
  world.Cut(master_node, server_node(index_of(secondary(2))));
  world.RunFor(5s);
  proto::GrantRequest request = GrantRequestFor(file, grant, {secondary(2)}, 12);
  auto refused = Call<proto::WriteGrant>(proto::GRANT, request, 10s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kWaitingFor) << refused.error().ToString();
  EXPECT_EQ(refused.error().server, secondary(2));
  EXPECT_EQ(Committed(chunk).size(), 1u);
  world.HealAll();
  world.RunFor(10s);
  auto again = Call<proto::WriteGrant>(proto::GRANT, request);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->length(), 12u);
  EXPECT_EQ(At(primary()).bytes, "acknowledged");
}

TEST_F(GrantTest, F5F6AppliedBytesCountWhateverIsKnownToBeAcknowledged) {
  Open();
  Write(grant, std::string(3 * kBlockSize, 'x'));
  for (uint64_t server : ServersOf(grant)) At(server).known_acked = 0;
  At(primary()).bytes += "unacknowledged";
  auto again = Grant(file, grant, {}, 3 * kBlockSize);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->length(), 3 * kBlockSize);
}

TEST_F(GrantTest, AcknowledgedBytesMissingStopTheChunkLoudly) {
  Open();
  Write(grant, "one");
  auto refused = Grant(file, grant, {}, 4);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kIntegrity);
  auto later = Grant(file, grant, {}, 3);
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, Code::kIntegrity);
  EXPECT_EQ(CommitSeal(Seal(file, grant)).error().code, Code::kIntegrity);
}

// Of two attempts only the one with the newest number does anything, however late the other wakes up.
TEST_F(GrantTest, F8SupersededAttemptEndsWithoutEffect) {
  Open();
  Write(grant, "one");
  auto release = Hold(secondary(), proto::ADVANCE_VERSION);
  auto first = Begin<proto::WriteGrant>(proto::GRANT, GrantRequestFor(file, grant, {}, 3));
  world.RunUntil([&] { return At(primary()).version > grant.token().version(); }, 5s);
  // The second one does not ask the server that sleeps.
  auto second = Grant(file, grant, {secondary()}, 3);
  ASSERT_TRUE(second) << second.error().ToString();
  *release = true;
  ASSERT_TRUE(world.RunUntil([&] { return first->has_value(); }, 2min));
  ASSERT_FALSE((*first)->has_value());
  EXPECT_EQ((*first)->error().code, Code::kSuperseded);
  EXPECT_THAT(Committed(chunk), ElementsAre(grant.token().version(), second->token().version()));
  EXPECT_EQ(Chunk(chunk).version(), second->token().version());
}

TEST_F(GrantTest, F8SealOfAnOldVersionIsRefusedWhileAnAttemptRuns) {
  Open();
  Write(grant, "one");
  proto::CommitSealRequest seal = Seal(file, grant);
  auto release = Hold(secondary(), proto::ADVANCE_VERSION);
  auto attempt = Begin<proto::WriteGrant>(proto::GRANT, GrantRequestFor(file, grant, {}, 3));
  world.RunUntil([&] { return At(primary()).version > grant.token().version(); }, 5s);
  seal.mutable_mutation()->set_sequence(++sequence);
  EXPECT_EQ(CommitSeal(seal).error().code, Code::kSuperseded);
  *release = true;
  const proto::WriteGrant again = Await(attempt);
  seal.mutable_mutation()->set_sequence(++sequence);
  EXPECT_EQ(CommitSeal(seal).error().code, Code::kStaleVersion);
  // The provisional seals are undone by the grant (F11), and the chunk is sealed under its version.
  EXPECT_EQ(At(primary()).state, proto::OPEN);
  auto sealed = CommitSeal(Seal(file, again));
  EXPECT_TRUE(sealed) << sealed.error().ToString();
}

TEST_F(GrantTest, F8DeletedFileEndsTheAttempt) {
  Open();
  Write(grant, "one");
  auto release = Hold(secondary(), proto::ADVANCE_VERSION);
  auto attempt = Begin<proto::WriteGrant>(proto::GRANT, GrantRequestFor(file, grant, {}, 3));
  world.RunUntil([&] { return At(primary()).version > grant.token().version(); }, 5s);
  proto::AbandonRequest abandon;
  Identify(abandon.mutable_mutation());
  abandon.set_inode(file.inode);
  abandon.set_generation(file.generation);
  abandon.set_holder(kWriter);
  ASSERT_TRUE(Call<proto::AbandonResponse>(proto::ABANDON, abandon));
  *release = true;
  ASSERT_TRUE(world.RunUntil([&] { return attempt->has_value(); }, 2min));
  EXPECT_FALSE((*attempt)->has_value());
  EXPECT_EQ(Committed(chunk).size(), 1u);
}

// An attempt that was not committed leaves marks behind; the next one starts from there.
TEST_F(GrantTest, NextAttemptGoesOnFromTheMarksOfAFailedOne) {
  Open();
  Write(grant, "one");
  Rule(secondary(), proto::ADVANCE_VERSION, Act::kRefuse);
  Rule(secondary(2), proto::ADVANCE_VERSION, Act::kRefuse);
  auto refused = Grant(file, grant, {}, 3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotEnoughReplicas) << refused.error().ToString();
  EXPECT_GT(At(primary()).version, grant.token().version());
  auto again = Grant(file, grant, {}, 3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->chain_size(), 3);
}

TEST_F(GrantTest4, D12JoinerFillsUpToTheMinimum) {
  Open();
  Write(grant, std::string(100'000, 'j'));
  uint64_t spare = 0;
  for (const auto& d : disks) {
    if (!d->replicas.contains(chunk)) spare = d->id.value;
  }
  Kill(secondary());
  Kill(secondary(2));
  auto again = Grant(file, grant, {secondary(), secondary(2)}, 100'000);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_THAT(ServersOf(*again), ElementsAre(primary(), spare));
  EXPECT_EQ(again->length(), 100'000u);
  EXPECT_EQ(At(spare).bytes, At(primary()).bytes);
  EXPECT_EQ(At(spare).state, proto::OPEN);
  EXPECT_EQ(At(spare).version, again->token().version());
}

TEST_F(GrantTest4, JoinerThatFailsIsReplacedOrTheGrantIsRefused) {
  Open();
  Kill(secondary());
  Kill(secondary(2));
  for (const auto& d : disks) {
    if (!d->replicas.contains(chunk)) Rule(d->id.value, proto::CREATE_REPLICA, Act::kRefuse, Code::kNoSpace);
  }
  auto refused = Grant(file, grant, {secondary(), secondary(2)}, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotEnoughReplicas) << refused.error().ToString();
  EXPECT_EQ(Committed(chunk).size(), 1u);  // nobody became stale
}

// The old primary did not answer: its lease must be over before another is granted.
TEST_F(GrantTest, F19VanishedPrimaryIsWaitedOut) {
  Open();
  Write(grant, "one");
  const Nanos begin = world.now();
  Kill(primary());
  auto again = Grant(file, grant, {primary()}, 3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_GE(world.now() - begin, 19s);
  EXPECT_LE(world.now() - begin, 30s);
  EXPECT_THAT(ServersOf(*again), UnorderedElementsAre(secondary(), secondary(2)));
}

TEST_F(GrantTest, F19ShortCallerIsToldWhomToWaitFor) {
  Open();
  Kill(primary());
  proto::GrantRequest request = GrantRequestFor(file, grant, {primary()}, 0);
  auto refused = Call<proto::WriteGrant>(proto::GRANT, request, 5s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kWaitingFor) << refused.error().ToString();
  EXPECT_EQ(refused.error().server, primary());
  EXPECT_GT(refused.error().retry_after_ms, 0u);
}

TEST_F(GrantTest, F19ReleasedLeaseIsNotWaitedFor) {
  Open();
  Write(grant, "one");
  const Nanos begin = world.now();
  // Reachable by the master, but the writer says that it failed.
  auto again = Grant(file, grant, {primary()}, 3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_LE(world.now() - begin, 2s);
  EXPECT_TRUE(disk_of(primary()).leases.empty());
  EXPECT_THAT(ServersOf(*again), UnorderedElementsAre(secondary(), secondary(2)));
}

TEST_F(GrantTest, D4RestartedPrimaryIsNotWaitedFor) {
  Open();
  Write(grant, "one");
  Kill(primary());
  Boot(primary());
  world.RunFor(2s);
  const Nanos begin = world.now();
  auto again = Grant(file, grant, {}, 3);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_LE(world.now() - begin, 3s);
  EXPECT_NE(again->chain(0).server(), primary());  // one that kept running
  EXPECT_EQ(again->chain_size(), 3);
}

TEST_F(GrantTest, F19AfterARestartOnePeriodIsWaitedForUnlessAllAnswer) {
  Open();
  Write(grant, "one");
  RestartMaster();
  ASSERT_TRUE(AwaitLive(3));
  Nanos begin = world.now();
  auto all = Grant(file, grant, {}, 3);
  ASSERT_TRUE(all) << all.error().ToString();
  EXPECT_LE(world.now() - begin, 3s);
  // Now one of them is gone for good, and nobody knows whether it was the primary.
  RestartMaster();
  const Nanos restarted = world.now();
  Kill(secondary());
  ASSERT_TRUE(AwaitLive(2));
  auto rest = Grant(file, *all, {secondary()}, 3);
  ASSERT_TRUE(rest) << rest.error().ToString();
  EXPECT_GE(world.now() - restarted, 19s);
}

TEST_F(GrantTest, ExtendedLeaseIsRespectedAcrossAMasterRestart) {
  Open();
  disk_of(primary()).extend_leases = true;
  RestartMaster();
  ASSERT_TRUE(AwaitLive(3));
  world.RunFor(40s);  // beyond what the activation alone would demand
  EXPECT_EQ(Chunk(chunk).primary(), primary());
  Kill(primary());
  const Nanos begin = world.now();
  auto again = Grant(file, grant, {primary()}, 0);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_GE(world.now() - begin, 14s);
}

TEST_F(GrantTest, D3LostLeaseIsSentAgainForTheSameVersion) {
  Open();
  Rule(primary(), proto::GRANT_LEASE, Act::kLoseRequest);
  auto again = Grant(file, grant, {}, 0);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->token().version(), grant.token().version() + 1);
  EXPECT_THAT(disk_of(primary()).leases, testing::Contains(std::pair(chunk, again->token().version())));
}

TEST_F(GrantTest, RetryGetsTheSameAnswer) {
  Open();
  const proto::GrantRequest request = GrantRequestFor(file, grant);
  auto first = Call<proto::WriteGrant>(proto::GRANT, request);
  ASSERT_TRUE(first) << first.error().ToString();
  RestartMaster(sim::Node::Death::kPower);
  auto second = Call<proto::WriteGrant>(proto::GRANT, request);
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_EQ(first->SerializeAsString(), second->SerializeAsString());
}

// A token that every replica refuses is no answer, whoever got it first.
TEST_F(GrantTest, ARetryIsNotAnsweredWithAnOvertakenGrant) {
  Open();
  const proto::GrantRequest request = GrantRequestFor(file, grant);
  ASSERT_TRUE(Call<proto::WriteGrant>(proto::GRANT, request));
  // A later attempt raises marks and is not committed.
  Rule(secondary(), proto::ADVANCE_VERSION, Act::kRefuse);
  Rule(secondary(2), proto::ADVANCE_VERSION, Act::kRefuse);
  proto::GrantRequest later = GrantRequestFor(file, grant);
  later.mutable_mutation()->set_first_unacked(request.mutation().sequence());
  ASSERT_EQ(Call<proto::WriteGrant>(proto::GRANT, later).error().code, Code::kNotEnoughReplicas);
  auto again = Call<proto::WriteGrant>(proto::GRANT, request);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kSuperseded) << again.error().ToString();
}

TEST_F(GrantTest, FencedWritersAreRefused) {
  Open();
  proto::GrantRequest request = GrantRequestFor(file, grant);
  request.set_generation(file.generation - 1);
  EXPECT_EQ(Call<proto::WriteGrant>(proto::GRANT, request).error().code, Code::kStaleGeneration);
  request = GrantRequestFor(file, grant);
  request.set_holder(kWriter + 1);
  EXPECT_EQ(Call<proto::WriteGrant>(proto::GRANT, request).error().code, Code::kNotLeaseHolder);
  request = GrantRequestFor(file, grant);
  request.set_chunk(chunk + 1);
  EXPECT_EQ(Call<proto::WriteGrant>(proto::GRANT, request).error().code, Code::kNotFound);
}

// No replica bears a number that the master could forget: it would be ahead of its master.
TEST_F(GrantTest, NumbersAreDurableBeforeTheyLeave) {
  Open();
  sim::Config& config = world.mutable_config();
  config.sync_latency_min = config.sync_latency_max = 50ms;
  // While the store writes something else, the number waits for its turn.
  proto::MkdirRequest mkdir;
  Identify(mkdir.mutable_mutation());
  mkdir.set_path("/d");
  mkdir.set_mode(0755);
  auto busy = Begin<proto::MkdirResponse>(proto::MKDIR, mkdir);
  world.RunFor(5ms);
  auto attempt = Begin<proto::WriteGrant>(proto::GRANT, GrantRequestFor(file, grant));
  ASSERT_TRUE(world.RunUntil([&] { return At(primary()).version > grant.token().version(); }, 5s));
  RestartMaster(sim::Node::Death::kPower);
  EXPECT_GE(Chunk(chunk).minted(), At(primary()).version);
}

TEST_F(GrantTest, VersionsRiseAcrossRestarts) {
  Open();
  uint64_t last = grant.token().version();
  for (int i = 0; i < 3; ++i) {
    RestartMaster(sim::Node::Death::kPower);
    ASSERT_TRUE(AwaitLive(3));
    auto again = Grant(file, grant);
    ASSERT_TRUE(again) << again.error().ToString();
    EXPECT_GT(again->token().version(), last);
    last = again->token().version();
  }
  uint64_t minted = 0;
  for (const ProtocolEvent& e : events) {
    if (e.kind != ProtocolEvent::Kind::kVersionMinted) continue;
    EXPECT_GT(e.version.value, minted);
    minted = e.version.value;
  }
}

}  // namespace
}  // namespace picket::test
