// A token whose key a server does not honour: signed anew, and the same version goes on (F18).
#include "tests/unit/client/fake_cluster.h"

namespace picket {
namespace {

class TokenTest : public FakeCluster {
 protected:
  static Twist Expired() { return Twist::Refuse(Error(Code::kTokenExpired, "its key is retired")); }
  auto& Twists(proto::Method method) { return chunkservers[0]->script.twists[method]; }
  size_t Count(proto::Method method) const {
    return static_cast<size_t>(std::ranges::count_if(master.calls, [=](const auto& c) { return c.first == method; }));
  }
  std::vector<proto::WritePacketRequest> Packets() const {
    return Asked<proto::WritePacketRequest>(chunkservers[0]->script, proto::WRITE_PACKET);
  }
  // Writes and closes a file; no set may have changed.
  void WritesOnTheSameVersion(const std::string& bytes) {
    auto writer = Create("/f");
    ASSERT_TRUE(Run(WriteAll(writer.get(), bytes, 100'000)));
    auto status = Run(writer->Close());
    ASSERT_TRUE(status) << status.error().ToString();
    EXPECT_EQ(Stored("/f"), bytes);
    EXPECT_EQ(Count(proto::GRANT), 0u) << "it is no replica's failure";
    EXPECT_GE(Count(proto::REFRESH_TOKEN), 1u);
  }
};

TEST_F(TokenTest, TheSamePacketGoesOnUnderANewToken) {
  Twists(proto::WRITE_PACKET) = {Expired()};
  WritesOnTheSameVersion("hello");
  ASSERT_EQ(Packets().size(), 2u);
  EXPECT_EQ(Packets()[1].serial(), Packets()[0].serial());
  EXPECT_EQ(Packets()[1].token().version(), Packets()[0].token().version());
  EXPECT_NE(Packets()[1].token().key(), Packets()[0].token().key());
}

TEST_F(TokenTest, AWindowThatWasRefusedIsSentAgainInOrder) {
  chunk_size = 8 * kMiB;
  Twists(proto::WRITE_PACKET) = {std::nullopt, Expired(), Expired(), Expired(), Expired()};
  WritesOnTheSameVersion(Pattern(6 * kMiB));
}

// The ring came to the server in the middle of the window: what follows the refused packet is out of order.
TEST_F(TokenTest, WhatFollowsARefusedPacketIsNoFailureEither) {
  chunk_size = 8 * kMiB;
  const Twist follows = Twist::Refuse(Error(Code::kOutOfOrder, "not the next one"));
  Twists(proto::WRITE_PACKET) = {std::nullopt, Expired(), follows, follows, follows};
  WritesOnTheSameVersion(Pattern(6 * kMiB));
}

TEST_F(TokenTest, ASealGoesOnToo) {
  Twists(proto::SEAL) = {Expired()};
  WritesOnTheSameVersion("hello");
}

TEST_F(TokenTest, AServerThatHasNotHeardOfTheKeyIsAskedAgain) {
  Twists(proto::WRITE_PACKET) = {Expired(), Expired(), Expired()};
  WritesOnTheSameVersion("hello");
  EXPECT_EQ(Count(proto::REFRESH_TOKEN), 3u);
}

TEST_F(TokenTest, WhenTheVersionIsOverAGrantIsAskedFor) {
  Twists(proto::WRITE_PACKET) = {Expired()};
  master.twists[proto::REFRESH_TOKEN] = {Twist::Refuse(Error(Code::kStaleVersion, "another version"))};
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Count(proto::GRANT), 1u);
  EXPECT_TRUE(Asked<proto::GrantRequest>(master, proto::GRANT)[0].failed_servers().empty());
  EXPECT_EQ(Stored("/f"), "hello");
}

TEST_F(TokenTest, AForgedOneIsTheEnd) {
  Twists(proto::WRITE_PACKET) = {Twist::Refuse(Error(Code::kTokenForged, "not the master's"))};
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  EXPECT_EQ(Run(writer->Close()).error().code, Code::kTokenForged);
  EXPECT_EQ(Count(proto::GRANT), 0u);
  EXPECT_EQ(Count(proto::REFRESH_TOKEN), 0u);
}

// A sync that reaches back to chunks sealed without one asks each replica in the client's own name.
TEST_F(TokenTest, NoClientPassesForAForwardingServer) {
  CreateFileOptions options;
  options.sync = false;
  auto writer = Create("/f", options);
  ASSERT_TRUE(Run(WriteAll(writer.get(), Pattern(kMiB + 5), 100'000)));
  ASSERT_TRUE(Run(writer->Sync()));
  ASSERT_TRUE(Run(writer->Close()));
  for (const auto& server : chunkservers) {
    for (const auto& seal : Asked<proto::SealRequest>(server->script, proto::SEAL)) EXPECT_FALSE(seal.from_primary());
    for (const auto& packet : Asked<proto::WritePacketRequest>(server->script, proto::WRITE_PACKET)) {
      EXPECT_FALSE(packet.forwarded());
    }
  }
}

}  // namespace
}  // namespace picket
