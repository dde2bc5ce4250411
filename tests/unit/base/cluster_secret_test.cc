#include "common/identity/cluster_secret.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/sim/node.h"

namespace picket {
namespace {

std::string Hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

class ClusterSecretTest : public testing::Test {
 protected:
  ClusterSecretTest() { node.Start(); }

  template <class T>
  T Run(Task<T> task) {
    auto value = sim::RunTask(world, node, std::move(task));
    PICKET_CHECK(value.has_value());
    return std::move(*value);
  }
  ClusterSecret Secret() {
    ClusterSecret s;
    s.cluster = "00112233445566aa";
    s.key = std::string(kSecretBytes, 'k');
    return s;
  }

  sim::World world;
  sim::Node& node = world.AddNode("a");
  const std::string nonce = std::string(kNonceBytes, 'n');
  const std::string challenge = std::string(kNonceBytes, 'c');
};

// RFC 4231, test cases 1, 2 and 6.
TEST_F(ClusterSecretTest, HmacVectors) {
  EXPECT_EQ(Hex(HmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hex(HmacSha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_F(ClusterSecretTest, ConstantTimeEqualIsEquality) {
  EXPECT_TRUE(ConstantTimeEqual("", ""));
  EXPECT_TRUE(ConstantTimeEqual("abc", "abc"));
  EXPECT_FALSE(ConstantTimeEqual("abc", "abd"));
  EXPECT_FALSE(ConstantTimeEqual("abc", "ab"));
}

TEST_F(ClusterSecretTest, MintedSecretsDiffer) {
  const ClusterSecret a = MintClusterSecret(node);
  const ClusterSecret b = MintClusterSecret(node);
  EXPECT_TRUE(IsClusterId(a.cluster));
  EXPECT_EQ(a.key.size(), kSecretBytes);
  EXPECT_NE(a.cluster, b.cluster);
  EXPECT_NE(a.key, b.key);
}

TEST_F(ClusterSecretTest, SavedSecretLoads) {
  const ClusterSecret secret = MintClusterSecret(node);
  ASSERT_TRUE(Run(SaveClusterSecret(&node.fs(), "/secret", secret)));
  node.Restart(sim::Node::Death::kPower);  // durable on return
  auto loaded = Run(LoadClusterSecret(&node.fs(), "/secret"));
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  EXPECT_EQ(loaded->cluster, secret.cluster);
  EXPECT_EQ(loaded->key, secret.key);
}

TEST_F(ClusterSecretTest, IsNeverOverwritten) {
  ASSERT_TRUE(Run(SaveClusterSecret(&node.fs(), "/secret", Secret())));
  auto again = Run(SaveClusterSecret(&node.fs(), "/secret", MintClusterSecret(node)));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kAlreadyExists);
  EXPECT_EQ(Run(LoadClusterSecret(&node.fs(), "/secret"))->key, Secret().key);
}

TEST_F(ClusterSecretTest, WhatIsNotASecretIsRefused) {
  auto missing = Run(LoadClusterSecret(&node.fs(), "/none"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  const std::string good = FormatClusterSecret(Secret());
  for (const std::string& text :
       {std::string(), std::string("cluster = 1"), good.substr(0, good.size() - 4), good + "more = 1\n",
        std::string("cluster = \"0\"\nkey = \"00\"\n"), std::string("\xff\x00binary", 8)}) {
    ASSERT_TRUE(Run(WriteFileAtomic(&node.fs(), "/bad", text)));
    auto loaded = Run(LoadClusterSecret(&node.fs(), "/bad"));
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.error().code, Code::kInvalidArgument) << text;
    EXPECT_EQ(loaded.error().ToString().find("6b6b"), std::string::npos) << "the key leaks into the message";
  }
}

TEST_F(ClusterSecretTest, ProofsVerify) {
  const ServerId server(7);
  EXPECT_TRUE(VerifyMasterProof(Secret(), nonce, challenge, server, MasterProof(Secret(), nonce, challenge, server)));
  EXPECT_TRUE(VerifyChunkserverProof(Secret(), challenge, nonce, server, Incarnation(2),
                                     ChunkserverProof(Secret(), challenge, nonce, server, Incarnation(2))));
}

TEST_F(ClusterSecretTest, ProofBindsEveryField) {
  const ClusterSecret s = Secret();
  const std::string proof = ChunkserverProof(s, challenge, nonce, ServerId(7), Incarnation(2));
  auto verify = [&](const ClusterSecret& secret, const std::string& c, const std::string& n, uint64_t server,
                    uint64_t incarnation) {
    return VerifyChunkserverProof(secret, c, n, ServerId(server), Incarnation(incarnation), proof);
  };
  ASSERT_TRUE(verify(s, challenge, nonce, 7, 2));
  EXPECT_FALSE(verify(s, nonce, challenge, 7, 2));
  EXPECT_FALSE(verify(s, std::string(kNonceBytes, 'x'), nonce, 7, 2));
  EXPECT_FALSE(verify(s, challenge, std::string(kNonceBytes, 'x'), 7, 2));
  EXPECT_FALSE(verify(s, challenge, nonce, 8, 2));
  EXPECT_FALSE(verify(s, challenge, nonce, 7, 3));
  ClusterSecret other = s;
  other.key[31] ^= 1;
  EXPECT_FALSE(verify(other, challenge, nonce, 7, 2));
  other = s;
  other.cluster = "00112233445566ab";
  EXPECT_FALSE(verify(other, challenge, nonce, 7, 2));
}

TEST_F(ClusterSecretTest, OneSidesProofIsNotTheOthers) {
  // With incarnation 0 the fields would be nearly alike: the label tells them apart.
  const std::string master = MasterProof(Secret(), nonce, challenge, ServerId(7));
  EXPECT_FALSE(VerifyChunkserverProof(Secret(), nonce, challenge, ServerId(7), Incarnation(0), master));
  EXPECT_FALSE(VerifyChunkserverProof(Secret(), challenge, nonce, ServerId(7), Incarnation(0), master));
}

TEST_F(ClusterSecretTest, FieldsCannotRunIntoOneAnother) {
  EXPECT_NE(MasterProof(Secret(), "ab", "c", ServerId(7)), MasterProof(Secret(), "a", "bc", ServerId(7)));
}

TEST_F(ClusterSecretTest, ShortChallengesAreNoChallenge) {
  const std::string proof = MasterProof(Secret(), "", "", ServerId(7));
  EXPECT_FALSE(VerifyMasterProof(Secret(), "", "", ServerId(7), proof));
}

}  // namespace
}  // namespace picket
