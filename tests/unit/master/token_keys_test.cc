// The keys of client tokens over restarts and rotations, and what the master says of tokens and sequencers.
#include <set>

#include "common/identity/token_signer.h"
#include "tests/unit/master/cluster_half.h"

namespace picket::test {
namespace {

using Verdict = proto::CheckSequencerResponse::Verdict;

MasterOptions QuickRotation() {
  MasterOptions o;
  o.token_key_rotation = 60s;
  return o;
}

class TokenKeysTest : public ClusterTest {
 protected:
  TokenKeysTest() : ClusterTest(3, QuickRotation()) {}

  // Speaks for server 0 with the session that its fake has.
  uint64_t SigningKey() {
    const OpenFile file = Create("/key" + std::to_string(sequence));
    auto grant = AddChunk(file);
    EXPECT_TRUE(grant) << grant.error().ToString();
    return grant ? grant->token().key() : 0;
  }
  Result<TokenKeyRing> Ring(size_t i) { return OpenKeyRing(fleet.secret, disks[i]->ring); }
  Result<proto::RefreshTokenResponse> Refresh(const proto::WriteToken& token) {
    proto::RefreshTokenRequest r;
    r.set_inode(token.inode());
    r.set_chunk(token.chunk());
    r.set_version(token.version());
    r.set_generation(token.generation());
    r.set_holder(token.holder());
    return Call<proto::RefreshTokenResponse>(proto::REFRESH_TOKEN, r);
  }
  Result<proto::OpenResponse> Lock(const std::string& path, uint64_t holder, proto::SessionMode mode) {
    proto::OpenRequest r;
    r.mutable_mutation()->set_client(holder);
    r.mutable_mutation()->set_sequence(++sequence);
    r.mutable_mutation()->set_first_unacked(sequence);
    r.set_path(path);
    r.set_mode(mode);
    r.set_holder(holder);
    r.set_lock(true);
    r.set_create(true);
    r.set_parents(true);
    r.set_permissions(0644);
    r.set_owner("ann");
    r.set_group("staff");
    return Call<proto::OpenResponse>(proto::OPEN_FILE, r);
  }
  void Release(const proto::OpenResponse& lock, uint64_t holder) {
    proto::ReleaseRequest r;
    r.mutable_mutation()->set_client(holder);
    r.mutable_mutation()->set_sequence(++sequence);
    r.mutable_mutation()->set_first_unacked(sequence);
    r.set_inode(lock.status().inode());
    r.set_generation(lock.generation());
    r.set_holder(holder);
    auto released = Call<proto::ReleaseResponse>(proto::RELEASE, r);
    EXPECT_TRUE(released) << released.error().ToString();
  }
  proto::CheckSequencerResponse Check(const std::string& text) {
    proto::CheckSequencerRequest r;
    r.set_text(text);
    auto answer = Call<proto::CheckSequencerResponse>(proto::CHECK_SEQUENCER, r);
    EXPECT_TRUE(answer) << answer.error().ToString();
    return answer ? *answer : proto::CheckSequencerResponse();
  }
};

TEST_F(TokenKeysTest, GrantsAreSignedWithAKeyThatEveryServerHas) {
  const OpenFile file = Create("/f");
  auto grant = AddChunk(file);
  ASSERT_TRUE(grant) << grant.error().ToString();
  EXPECT_EQ(grant->token().mode(), proto::EXCLUSIVE);
  for (size_t i = 0; i < disks.size(); ++i) {
    auto ring = Ring(i);
    ASSERT_TRUE(ring);
    EXPECT_TRUE(Verify(fleet.secret.cluster, *ring, grant->token()));
  }
}

// F18: a restart withdraws no key, and adds one.
TEST_F(TokenKeysTest, ARestartKeepsTheKeys) {
  const OpenFile file = Create("/f");
  auto grant = AddChunk(file);
  ASSERT_TRUE(grant);
  const auto before = Ring(0);
  ASSERT_TRUE(before);
  RestartMaster(sim::Node::Death::kPower);
  ASSERT_TRUE(AwaitLive(3));
  auto after = Ring(0);
  ASSERT_TRUE(after);
  EXPECT_GT(after->number, before->number);
  EXPECT_EQ(after->keys.size(), before->keys.size() + 1);
  for (const auto& [id, key] : before->keys) EXPECT_EQ(after->keys[id], key);
  EXPECT_TRUE(Verify(fleet.secret.cluster, *after, grant->token()));
  // A second restart finds a key that waits, and adds none.
  RestartMaster();
  ASSERT_TRUE(AwaitLive(3));
  EXPECT_EQ(Ring(0)->keys.size(), after->keys.size());
}

// A server that has not heard of a key would refuse good writers.
TEST_F(TokenKeysTest, ANewKeySignsOnlyWhenEveryLiveServerHasNamedIt) {
  const uint64_t first = SigningKey();
  disks[2]->deaf_to_keys = true;
  world.RunFor(options.token_key_rotation + 10s);
  ASSERT_GT(Ring(0)->keys.size(), 1u) << "a new key is there";
  EXPECT_EQ(SigningKey(), first) << "one server has not named it";
  disks[2]->deaf_to_keys = false;
  world.RunFor(10s);
  EXPECT_GT(SigningKey(), first);
}

TEST_F(TokenKeysTest, ADeadServerIsNotWaitedFor) {
  const uint64_t first = SigningKey();
  disks[2]->deaf_to_keys = true;
  world.RunFor(options.token_key_rotation + 10s);
  ASSERT_EQ(SigningKey(), first);
  server_node(2).Crash(sim::Node::Death::kProcess);
  world.RunFor(options.dead_after + 5s);
  EXPECT_GT(SigningKey(), first);
}

TEST_F(TokenKeysTest, AKeyIsRetiredTwoRotationsAfterItsLastUse) {
  const uint64_t first = SigningKey();
  const Nanos begun = world.now();
  ASSERT_TRUE(world.RunUntil([&] { return Ring(0)->keys.rbegin()->first > first; }, options.token_key_rotation + 10s));
  world.RunFor(10s);  // it signs from about now on
  ASSERT_TRUE(world.RunUntil([&] { return !Ring(0)->keys.contains(first); }, 10 * options.token_key_rotation));
  const Nanos lasted = world.now() - begun;
  EXPECT_GE(lasted, 3 * options.token_key_rotation - 15s);
  EXPECT_LE(lasted, 4 * options.token_key_rotation);
  EXPECT_LE(Ring(0)->keys.size(), 3u);
}

// ---- REFRESH_TOKEN ----------------------------------------------------------------------------------

TEST_F(TokenKeysTest, AWriterGetsItsTokenSignedAnewWithoutANewVersion) {
  const OpenFile file = Create("/f");
  auto grant = AddChunk(file);
  ASSERT_TRUE(grant);
  const auto committed = Committed(grant->token().chunk());
  auto fresh = Refresh(grant->token());
  ASSERT_TRUE(fresh) << fresh.error().ToString();
  EXPECT_EQ(fresh->token().version(), grant->token().version());
  EXPECT_TRUE(Verify(fleet.secret.cluster, *Ring(0), fresh->token()));
  EXPECT_EQ(Committed(grant->token().chunk()), committed);
}

TEST_F(TokenKeysTest, OnlyTheWriterOfThePresentVersionGetsOne) {
  const OpenFile file = Create("/f");
  auto grant = AddChunk(file);
  ASSERT_TRUE(grant);
  proto::WriteToken t = grant->token();
  t.set_holder(kWriter + 1);
  EXPECT_EQ(Refresh(t).error().code, Code::kNotLeaseHolder);
  t = grant->token();
  t.set_generation(t.generation() - 1);
  EXPECT_EQ(Refresh(t).error().code, Code::kStaleGeneration);
  t = grant->token();
  t.set_version(t.version() - 1);
  auto stale = Refresh(t);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, Code::kStaleVersion);
  EXPECT_EQ(stale.error().mark, grant->token().version());
  const OpenFile other = Create("/g");
  t = grant->token();
  t.set_inode(other.inode);
  t.set_generation(other.generation);
  EXPECT_EQ(Refresh(t).error().code, Code::kNotFound) << "a chunk of another file";
}

// ---- CHECK_SEQUENCER --------------------------------------------------------------------------------

TEST_F(TokenKeysTest, ASequencerIsValidUntilItsLockIsLeft) {
  auto first = Lock("/lock", 1001, proto::EXCLUSIVE);
  ASSERT_TRUE(first) << first.error().ToString();
  const std::string text = SequencerText(first->sequencer());
  EXPECT_EQ(first->sequencer().path(), "/lock");
  EXPECT_EQ(first->sequencer().generation(), first->generation());
  EXPECT_EQ(Check(text).verdict(), proto::CheckSequencerResponse::VALID);
  RestartMaster(sim::Node::Death::kPower);
  EXPECT_EQ(Check(text).verdict(), proto::CheckSequencerResponse::VALID) << "over a restart";
  Release(*first, 1001);
  EXPECT_EQ(Check(text).verdict(), proto::CheckSequencerResponse::STALE);
}

TEST_F(TokenKeysTest, ANewerHolderMakesItStaleAndIsNamed) {
  auto first = Lock("/lock", 1001, proto::EXCLUSIVE);
  ASSERT_TRUE(first);
  Release(*first, 1001);
  auto second = Lock("/lock", 1002, proto::EXCLUSIVE);
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_GT(second->generation(), first->generation());
  const auto stale = Check(SequencerText(first->sequencer()));
  EXPECT_EQ(stale.verdict(), proto::CheckSequencerResponse::STALE);
  EXPECT_EQ(stale.newest_generation(), second->generation());
  EXPECT_EQ(stale.holder(), ToHex(1002));
  EXPECT_EQ(Check(SequencerText(second->sequencer())).verdict(), proto::CheckSequencerResponse::VALID);
}

// The same client takes the lock again: its own older sequencer is stale too.
TEST_F(TokenKeysTest, AnOlderGenerationOfTheSameHolderIsStale) {
  auto first = Lock("/lock", 1001, proto::EXCLUSIVE);
  ASSERT_TRUE(first);
  Release(*first, 1001);
  auto second = Lock("/lock", 1001, proto::EXCLUSIVE);
  ASSERT_TRUE(second);
  EXPECT_EQ(Check(SequencerText(first->sequencer())).verdict(), proto::CheckSequencerResponse::STALE);
}

TEST_F(TokenKeysTest, SharedHoldersEachHaveTheirOwn) {
  auto a = Lock("/lock", 1001, proto::SHARED_LOCK);
  auto b = Lock("/lock", 1002, proto::SHARED_LOCK);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(Check(SequencerText(a->sequencer())).verdict(), proto::CheckSequencerResponse::VALID);
  Release(*a, 1001);
  EXPECT_EQ(Check(SequencerText(a->sequencer())).verdict(), proto::CheckSequencerResponse::STALE);
  EXPECT_EQ(Check(SequencerText(b->sequencer())).verdict(), proto::CheckSequencerResponse::VALID);
}

TEST_F(TokenKeysTest, ForgedAndForeignAndExpiredHaveTheirOwnVerdicts) {
  auto lock = Lock("/lock", 1001, proto::EXCLUSIVE);
  ASSERT_TRUE(lock);
  EXPECT_EQ(Check("nonsense").verdict(), proto::CheckSequencerResponse::FORGED);
  proto::Sequencer s = lock->sequencer();
  s.set_generation(s.generation() + 1);
  EXPECT_EQ(Check(SequencerText(s)).verdict(), proto::CheckSequencerResponse::FORGED);
  s = lock->sequencer();
  s.set_cluster("ffffffffffffffff");
  EXPECT_EQ(Check(SequencerText(s)).verdict(), proto::CheckSequencerResponse::FORGED);
  s = lock->sequencer();
  s.set_key(s.key() - 1);
  EXPECT_EQ(Check(SequencerText(s)).verdict(), proto::CheckSequencerResponse::EXPIRED);
}

}  // namespace
}  // namespace picket::test
