// Signatures at a chunkserver: who may write at all, before any mark is looked at.
#include "chunkserver/token_verifier.h"
#include "common/rpc/server.h"
#include "proto/client_master.pb.h"
#include "tests/unit/chunkserver/cluster.h"

namespace picket::cs {
namespace {

constexpr uint64_t kNextKey = kTokenKey + 1;

Result<proto::WritePacketResponse> Send(Cluster& c, size_t to, const proto::WritePacketRequest& r,
                                        std::string_view bytes) {
  return c.Call<proto::WritePacketResponse>(to, proto::WRITE_PACKET, r, Buffer::Copy(bytes));
}

TEST(TokenFence, AnAlteredTokenIsForgedAndNoMarkIsTold) {
  Cluster c(1);
  c.Open({0});
  // Below, at and above the marks: the forger learns nothing from the answer.
  for (const uint64_t version : {kFirst.value - 1, kFirst.value, kFirst.value + 1}) {
    proto::WritePacketRequest r = c.Packet(0, 1, 0, "aaaa");
    r.mutable_token()->set_version(version);
    r.mutable_token()->set_holder(66);
    auto refused = Send(c, 0, r, "aaaa");
    EXPECT_EQ(CodeOf(refused), Code::kTokenForged);
    EXPECT_EQ(refused.error().mark, 0u);
    EXPECT_EQ(refused.error().server, c.ids[0].value);
    proto::SealRequest s;
    *s.mutable_token() = r.token();
    s.set_target_incarnation(c.Hop(0).incarnation());
    EXPECT_EQ(CodeOf(c.Call<proto::SealResponse>(0, proto::SEAL, s)), Code::kTokenForged);
  }
  EXPECT_EQ(c.Describe(0).replica().length(), 0u);
  EXPECT_EQ(c.Describe(0).replica().state(), proto::OPEN);
}

TEST(TokenFence, AClientCannotPassForAForwardingServer) {
  Cluster c(2);
  c.Open({0, 1});
  proto::WritePacketRequest r = c.Packet(1, 1, 0, "aaaa");
  r.set_forwarded(true);
  EXPECT_EQ(CodeOf(Send(c, 1, r, "aaaa")), Code::kTokenForged);
  // A proof that was overheard is for one receiver, one boot, one version.
  r.set_forward_proof(c.ProofFor(0, r.token(), r.target_incarnation()));
  EXPECT_EQ(CodeOf(Send(c, 1, r, "aaaa")), Code::kTokenForged);
  r.set_forward_proof(c.ProofFor(1, r.token(), r.target_incarnation() + 1));
  EXPECT_EQ(CodeOf(Send(c, 1, r, "aaaa")), Code::kTokenForged);
  r.set_forward_proof(c.ProofFor(1, c.Token(Version(3, 2)), r.target_incarnation()));
  EXPECT_EQ(CodeOf(Send(c, 1, r, "aaaa")), Code::kTokenForged);
  proto::SealRequest s;
  *s.mutable_token() = c.Token();
  s.set_from_primary(true);
  s.set_target_incarnation(c.Hop(1).incarnation());
  EXPECT_EQ(CodeOf(c.Call<proto::SealResponse>(1, proto::SEAL, s)), Code::kTokenForged);
  EXPECT_EQ(c.Describe(1).replica().length(), 0u);
  EXPECT_EQ(c.Describe(1).replica().state(), proto::OPEN);
  EXPECT_TRUE(c.Write(0, 1, 0, "aaaa"));
}

// F18: it is never a replica's failure; with a new token the same packet goes on, at the same version.
TEST(TokenFence, ARetiredKeyIsExpiredAndTheSameVersionGoesOn) {
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  c.ring.clear_keys();
  c.LearnKey(kNextKey);
  ASSERT_TRUE(c.Process(0)->server.LearnKeys(c.ring));
  // What was verified before is forgotten with its key.
  auto refused = c.Write(0, 2, 4, "bbbb");
  EXPECT_EQ(CodeOf(refused), Code::kTokenExpired);
  EXPECT_EQ(refused.error().token, kTokenKey);
  EXPECT_EQ(refused.error().mark, kNextKey);
  EXPECT_EQ(c.Describe(0).replica().length(), 4u);

  // The second member has not heard of the new key: it does not matter there.
  proto::WritePacketRequest r = c.Packet(0, 2, 4, "bbbb");
  c.Sign(r.mutable_token(), kNextKey);
  EXPECT_TRUE(Send(c, 0, r, "bbbb"));
  EXPECT_EQ(c.Describe(1).replica().length(), 8u);
  proto::SealRequest s;
  *s.mutable_token() = r.token();
  s.set_length(8);
  s.set_target_incarnation(c.Hop(0).incarnation());
  EXPECT_TRUE(c.Call<proto::SealResponse>(0, proto::SEAL, s));
}

TEST(TokenFence, TheHotPathComputesNoHmac) {
  Cluster c(3);
  c.Open({0, 1, 2});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  c.world.RunFor(1s);  // what is announced needs no more than what is forwarded, but for the third member
  const std::vector<uint64_t> before = {c.Process(0)->server.hmacs(), c.Process(1)->server.hmacs(),
                                        c.Process(2)->server.hmacs()};
  EXPECT_EQ(before, (std::vector<uint64_t>{3, 2, 1}));
  for (uint64_t i = 1; i <= 100; ++i) ASSERT_TRUE(c.Write(0, i + 1, i * 4, "bbbb"));
  c.world.RunFor(1s);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(c.Process(i)->server.hmacs(), before[i]) << i;
}

// A sync of a chunk that is sealed already needs no lease, and the client's own token.
TEST(TokenFence, AWriterSyncsASealedReplicaAnywhereInItsOwnName) {
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Seal(0, 4, kFirst, false));
  auto synced = c.Seal(1, 4);
  ASSERT_TRUE(synced);
  ASSERT_EQ(synced->sealed_servers_size(), 1);
  EXPECT_EQ(synced->sealed_servers(0), c.ids[1].value);
}

// ---- the verifier by itself -------------------------------------------------------------------------

class TokenVerifierTest : public testing::Test {
 protected:
  TokenVerifierTest() : c(0) {
    self.cluster = c.secret.cluster;
    self.server = ServerId(7);
    self.incarnation = Incarnation(1);
  }
  Cluster c;
  Self self;
  TokenVerifier verifier{self, c.secret};
};

TEST_F(TokenVerifierTest, WithoutKeysItIsUnavailableNotForged) {
  int asked = 0;
  verifier.OnUnknownKey([&] { ++asked; });
  auto refused = verifier.Verify(c.Token());
  EXPECT_EQ(CodeOf(refused), Code::kUnavailable);
  EXPECT_FALSE(refused.error().next_step.empty());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(verifier.oldest_key(), 0u);
  ASSERT_TRUE(verifier.Learn(c.ring));
  EXPECT_TRUE(verifier.Verify(c.Token()));
  EXPECT_EQ(verifier.oldest_key(), kTokenKey);
}

TEST_F(TokenVerifierTest, AnUnknownKeyAsksForTheNextBeatAForgeryDoesNot) {
  int asked = 0;
  verifier.OnUnknownKey([&] { ++asked; });
  ASSERT_TRUE(verifier.Learn(c.ring));
  proto::WriteToken t = c.Token();
  c.Sign(&t, kNextKey);
  EXPECT_EQ(CodeOf(verifier.Verify(t)), Code::kTokenExpired);
  EXPECT_EQ(asked, 1);
  t = c.Token();
  ASSERT_TRUE(verifier.Verify(t));
  t.mutable_signature()->back() ^= 1;
  EXPECT_EQ(CodeOf(verifier.Verify(t)), Code::kTokenForged) << "also when the good one is remembered";
  EXPECT_EQ(asked, 1);
}

TEST_F(TokenVerifierTest, ARingThatDoesNotOpenChangesNothing) {
  ASSERT_TRUE(verifier.Learn(c.ring));
  proto::KeyRing bad = c.ring;
  bad.set_number(9);
  bad.mutable_keys(0)->mutable_sealed()->back() ^= 1;
  EXPECT_EQ(CodeOf(verifier.Learn(bad)), Code::kCorrupt);
  EXPECT_EQ(verifier.ring_number(), c.ring.number());
  EXPECT_TRUE(verifier.Verify(c.Token()));
}

TEST_F(TokenVerifierTest, ManyTokensStayWithinTheBound) {
  ASSERT_TRUE(verifier.Learn(c.ring));
  proto::WriteToken kept = c.Token();
  for (uint64_t i = 0; i < 3 * TokenVerifier::kMaxTokens; ++i) {
    proto::WriteToken t = c.Token();
    t.set_chunk(i);
    c.Sign(&t);
    ASSERT_TRUE(verifier.Verify(t));
    ASSERT_TRUE(verifier.Verify(kept));
  }
  // What is in use stays although the others are forgotten.
  EXPECT_EQ(verifier.hmacs(), 3 * TokenVerifier::kMaxTokens + 1);
}

TEST(RecentCacheTest, ForgetsTheLeastRecentlyUsedHalf) {
  RecentCache<int, int> cache(4);
  for (int i = 0; i < 100; ++i) {
    cache.Put(i, i);
    EXPECT_LE(cache.size(), 4u);
    ASSERT_NE(cache.Find(i), nullptr);
    if (i > 0) EXPECT_NE(cache.Find(i - 1), nullptr);
  }
  EXPECT_EQ(cache.Find(1), nullptr);
  cache.EraseIf([](int key) { return key == 99; });
  EXPECT_EQ(cache.Find(99), nullptr);
}

// ---- sequencers --------------------------------------------------------------------------------------

// A master that answers every sequencer with one verdict.
struct Judge final : sim::Process {
  explicit Judge(Env& env) : server(env) {
    server.Handle<proto::CheckSequencerRequest, proto::CheckSequencerResponse>(
        proto::CHECK_SEQUENCER, [this](auto r, Mono) { return Answer(this, std::move(r)); });
    EXPECT_TRUE(server.Start(Endpoint("", 7400)));
  }
  static Task<Result<proto::CheckSequencerResponse>> Answer(Judge* self, proto::CheckSequencerRequest) {
    ++self->asked;
    proto::CheckSequencerResponse response;
    response.set_verdict(self->verdict);
    co_return response;
  }
  RpcServer server;
  proto::CheckSequencerResponse::Verdict verdict = proto::CheckSequencerResponse::VALID;
  int asked = 0;
};

class SequencerTest : public testing::Test {
 protected:
  using Response = proto::CheckSequencerResponse;
  SequencerTest() : c(1) { c.Open({0}); }
  void StartMaster() {
    c.master.Start([](Env& env) { return std::make_unique<Judge>(env); });
    judge = dynamic_cast<Judge*>(c.master.process());
  }
  std::string Text(Generation generation, uint64_t key = kTokenKey) {
    proto::Sequencer s;
    s.set_path("/lock");
    s.set_inode(9);
    s.set_mode(proto::EXCLUSIVE);
    s.set_generation(generation.value);
    s.set_holder(55);
    picket::Sign(c.secret.cluster, key, Cluster::TokenKey(key), &s);
    return SequencerText(s);
  }
  Result<Response> Check(const std::string& text) {
    proto::CheckSequencerRequest r;
    r.set_text(text);
    return c.Call<Response>(0, proto::CHECK_SEQUENCER, r);
  }
  Cluster c;
  Judge* judge = nullptr;
};

TEST_F(SequencerTest, OnlyTheMasterSaysValid) {
  auto alone = Check(Text(kSession));
  ASSERT_EQ(CodeOf(alone), Code::kUnavailable) << "never valid from memory";
  EXPECT_NE(alone.error().message.find("signature is right"), std::string::npos);
  EXPECT_FALSE(alone.error().next_step.empty());
  StartMaster();
  auto asked = Check(Text(kSession));
  ASSERT_TRUE(asked) << asked.error().ToString();
  EXPECT_EQ(asked->verdict(), Response::VALID);
  EXPECT_EQ(judge->asked, 1);
}

TEST_F(SequencerTest, ANewerMarkHereMakesItStaleWithoutTheMaster) {
  auto stale = Check(Text(Generation(kSession.value - 1)));
  ASSERT_TRUE(stale) << stale.error().ToString();
  EXPECT_EQ(stale->verdict(), Response::STALE);
  EXPECT_EQ(stale->newest_generation(), kSession.value);
  EXPECT_EQ(stale->sequencer().path(), "/lock");
}

TEST_F(SequencerTest, ForgedIsToldHereAnUnknownKeyIsTheMastersMatter) {
  std::string text = Text(kSession);
  text[20] = text[20] == 'A' ? 'B' : 'A';
  for (const std::string& bad : {text, std::string("picket1.AAAA"), std::string("nonsense")}) {
    auto forged = Check(bad);
    ASSERT_TRUE(forged) << forged.error().ToString();
    EXPECT_EQ(forged->verdict(), Response::FORGED);
  }
  StartMaster();
  judge->verdict = Response::EXPIRED;
  auto expired = Check(Text(kSession, kNextKey));
  ASSERT_TRUE(expired);
  EXPECT_EQ(expired->verdict(), Response::EXPIRED);
}

}  // namespace
}  // namespace picket::cs
