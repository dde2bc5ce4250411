#include "common/identity/token_signer.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "tests/sim/node.h"

namespace picket {
namespace {

constexpr uint64_t kKey = uint64_t{3} << 32 | 1;
const std::string kCluster = "00112233445566aa";

ClusterSecret Secret() {
  ClusterSecret s;
  s.cluster = kCluster;
  s.key = std::string(kSecretBytes, 'k');
  return s;
}

TokenKeyRing Ring() {
  TokenKeyRing ring;
  ring.number = 1;
  ring.keys[kKey] = std::string(kTokenKeyBytes, 'a');
  ring.keys[kKey + 1] = std::string(kTokenKeyBytes, 'b');
  return ring;
}

proto::WriteToken SignedToken() {
  proto::WriteToken t;
  t.set_inode(1);
  t.set_chunk(2);
  t.set_version(3);
  t.set_generation(4);
  t.set_holder(5);
  t.set_mode(proto::EXCLUSIVE);
  Sign(kCluster, kKey, Ring().keys.at(kKey), &t);
  return t;
}

proto::Sequencer SignedSequencer() {
  proto::Sequencer s;
  s.set_path("/locks/ä");
  s.set_inode(1);
  s.set_mode(proto::SHARED_LOCK);
  s.set_generation(4);
  s.set_holder(5);
  Sign(kCluster, kKey, Ring().keys.at(kKey), &s);
  return s;
}

template <class T>
Code Judged(const T& token, const std::string& cluster = kCluster) {
  const Status ok = Verify(cluster, Ring(), token);
  return ok ? Code::kOk : ok.error().code;
}

TEST(TokenSigner, EveryAlteredFieldOfAWriteTokenIsForged) {
  ASSERT_EQ(Judged(SignedToken()), Code::kOk);
  const std::vector<std::function<void(proto::WriteToken*)>> changes = {
      [](auto* t) { t->set_inode(9); },      [](auto* t) { t->set_chunk(9); },
      [](auto* t) { t->set_version(9); },    [](auto* t) { t->set_generation(9); },
      [](auto* t) { t->set_holder(9); },     [](auto* t) { t->set_mode(proto::RECORD_APPEND); },
      [](auto* t) { t->set_key(kKey + 1); }, [](auto* t) { t->clear_signature(); },
      [](auto* t) { t->mutable_signature()->pop_back(); },
      [](auto* t) { (*t->mutable_signature())[31] ^= 1; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    proto::WriteToken t = SignedToken();
    changes[i](&t);
    EXPECT_EQ(Judged(t), Code::kTokenForged) << i;
  }
  EXPECT_EQ(Judged(SignedToken(), "ffffffffffffffff"), Code::kTokenForged) << "of another cluster";
}

TEST(TokenSigner, EveryAlteredFieldOfASequencerIsForged) {
  ASSERT_EQ(Judged(SignedSequencer()), Code::kOk);
  const std::vector<std::function<void(proto::Sequencer*)>> changes = {
      [](auto* s) { s->set_path("/locks/b"); }, [](auto* s) { s->set_inode(9); },
      [](auto* s) { s->set_mode(proto::EXCLUSIVE); }, [](auto* s) { s->set_generation(9); },
      [](auto* s) { s->set_holder(9); }, [](auto* s) { s->set_key(kKey + 1); },
      [](auto* s) { s->clear_signature(); }, [](auto* s) { (*s->mutable_signature())[0] ^= 1; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    proto::Sequencer s = SignedSequencer();
    changes[i](&s);
    EXPECT_EQ(Judged(s), Code::kTokenForged) << i;
  }
  EXPECT_EQ(Judged(SignedSequencer(), "ffffffffffffffff"), Code::kWrongCluster);
}

// A sequencer made out as one of this cluster is a forgery, not a foreign one.
TEST(TokenSigner, ASequencerOfAnotherClusterCannotBeRelabelled) {
  proto::Sequencer s = SignedSequencer();
  Sign("ffffffffffffffff", kKey, Ring().keys.at(kKey), &s);
  EXPECT_EQ(Judged(s), Code::kWrongCluster);
  s.set_cluster(kCluster);
  EXPECT_EQ(Judged(s), Code::kTokenForged);
}

TEST(TokenSigner, AnUnknownKeyIsExpiredWithBothKeysAndTheNextStep) {
  proto::WriteToken t = SignedToken();
  t.set_key(kKey - 1);
  const Status refused = Verify(kCluster, Ring(), t);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTokenExpired);
  EXPECT_EQ(refused.error().token, kKey - 1);
  EXPECT_EQ(refused.error().mark, kKey);
  EXPECT_FALSE(refused.error().next_step.empty());
  proto::Sequencer s = SignedSequencer();
  s.set_key(kKey + 7);
  EXPECT_EQ(Judged(s), Code::kTokenExpired);
}

// The same numbers, signed as the one, are not the other.
TEST(TokenSigner, ASequencerIsNoWriteToken) {
  proto::WriteToken t = SignedToken();
  t.set_signature(SignedSequencer().signature());
  EXPECT_EQ(Judged(t), Code::kTokenForged);
  proto::Sequencer s = SignedSequencer();
  s.set_signature(SignedToken().signature());
  EXPECT_EQ(Judged(s), Code::kTokenForged);
}

TEST(SequencerTextTest, GoesThereAndBack) {
  // Paths of every length modulo three, so every kind of tail.
  for (const char* path : {"/", "/a", "/ab", "/abc", "/ä/ö\u2026"}) {
    proto::Sequencer s = SignedSequencer();
    s.set_path(path);
    const std::string text = SequencerText(s);
    EXPECT_TRUE(text.starts_with("picket1."));
    EXPECT_EQ(text.find_first_of("+/= "), std::string::npos);
    auto back = ParseSequencer(text);
    ASSERT_TRUE(back) << path;
    EXPECT_EQ(back->SerializeAsString(), s.SerializeAsString());
  }
}

TEST(SequencerTextTest, EveryOtherTextIsRefused) {
  const std::string good = SequencerText(SignedSequencer());
  std::vector<std::string> texts = {"", "picket1.", "picket2." + good.substr(8), good + "A", good + "=", " " + good,
                                    good + "\n", "picket1.%%%%", std::string(kMaxSequencerText + 1, 'A')};
  for (size_t i = 0; i < good.size(); ++i) texts.push_back(good.substr(0, i));
  // A field that nobody signed, appended.
  proto::Sequencer more = SignedSequencer();
  std::string bytes = more.SerializeAsString() + std::string("\xf8\x07\x01", 3);
  ASSERT_TRUE(more.ParseFromString(bytes));
  texts.push_back(SequencerText(more));
  for (const std::string& text : texts) {
    auto parsed = ParseSequencer(text);
    // What parses by chance is refused for its signature.
    const Code code = parsed ? Judged(*parsed) : parsed.error().code;
    EXPECT_NE(code, Code::kOk) << text;
  }
  EXPECT_FALSE(ParseSequencer(texts.back()));
}

TEST(SequencerTextTest, OneTextStandsForASequencer) {
  const std::string good = SequencerText(SignedSequencer());
  for (size_t i = 8; i < good.size(); ++i) {
    for (const char c : {'A', 'b', '7', '_'}) {
      std::string text = good;
      if (text[i] == c) continue;
      text[i] = c;
      auto parsed = ParseSequencer(text);
      if (parsed) EXPECT_NE(Judged(*parsed), Code::kOk) << i << c;
    }
  }
}

TEST(SequencerTextTest, TextThatIsNotUtf8IsRefusedInSilence) {
  proto::Sequencer s = SignedSequencer();
  // The path's bytes, changed in the text: it stays well formed but for its encoding.
  s.set_path("/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
  std::string text = SequencerText(s);
  testing::internal::CaptureStderr();
  size_t refused = 0;
  for (size_t i = 8; i < text.size(); ++i) {
    std::string other = text;
    other[i] = '_';
    refused += !ParseSequencer(other);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(refused, 30U);
}

class TokenKeySealing : public testing::Test {
 protected:
  TokenKeySealing() { node.Start(); }
  Env& env() { return node; }
  sim::World world;
  sim::Node& node = world.AddNode("a");
};

TEST_F(TokenKeySealing, OpensOnlyUnderItsOwnIdAndSecret) {
  const std::string key(kTokenKeyBytes, 'x');
  const std::string sealed = SealTokenKey(Secret(), 7, key, env());
  auto opened = OpenTokenKey(Secret(), 7, sealed);
  ASSERT_TRUE(opened);
  EXPECT_EQ(*opened, key);
  EXPECT_EQ(sealed.find(key), std::string::npos);
  EXPECT_NE(sealed, SealTokenKey(Secret(), 7, key, env())) << "a nonce is used once";

  EXPECT_EQ(OpenTokenKey(Secret(), 8, sealed).error().code, Code::kCorrupt);
  ClusterSecret other = Secret();
  other.key[0] ^= 1;
  EXPECT_FALSE(OpenTokenKey(other, 7, sealed));
  other = Secret();
  other.cluster = "ffffffffffffffff";
  EXPECT_FALSE(OpenTokenKey(other, 7, sealed));
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string bad = sealed;
    bad[i] ^= 1;
    EXPECT_FALSE(OpenTokenKey(Secret(), 7, bad)) << i;
    EXPECT_FALSE(OpenTokenKey(Secret(), 7, sealed.substr(0, i))) << i;
  }
}

TEST_F(TokenKeySealing, ARingOpensWholeOrNotAtAll) {
  proto::KeyRing ring;
  ring.set_number(9);
  for (uint64_t id : {1, 2}) {
    auto* key = ring.add_keys();
    key->set_id(id);
    key->set_sealed(SealTokenKey(Secret(), id, std::string(kTokenKeyBytes, 'x'), env()));
  }
  auto opened = OpenKeyRing(Secret(), ring);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->number, 9u);
  EXPECT_EQ(opened->keys.size(), 2u);
  ring.mutable_keys(1)->set_id(3);
  EXPECT_FALSE(OpenKeyRing(Secret(), ring));
}

TEST(ForwardProofTest, BindsEveryField) {
  const Forwarding f{ChunkId(1), Version(2), Generation(3), ServerId(4), Incarnation(5)};
  std::set<std::string> proofs = {ForwardProof(Secret(), f)};
  EXPECT_EQ(ForwardProof(Secret(), f), *proofs.begin());
  for (int i = 0; i < 5; ++i) {
    Forwarding other = f;
    if (i == 0) other.chunk = ChunkId(9);
    if (i == 1) other.version = Version(9);
    if (i == 2) other.generation = Generation(9);
    if (i == 3) other.receiver = ServerId(9);
    if (i == 4) other.boot = Incarnation(9);
    proofs.insert(ForwardProof(Secret(), other));
  }
  ClusterSecret other = Secret();
  other.key[0] ^= 1;
  proofs.insert(ForwardProof(other, f));
  other = Secret();
  other.cluster = "ffffffffffffffff";
  proofs.insert(ForwardProof(other, f));
  EXPECT_EQ(proofs.size(), 8u);
}

}  // namespace
}  // namespace picket
