// Packets, syncs, seals and reads through a chain of real chunkservers.
#include "common/rpc/server.h"
#include "tests/unit/chunkserver/cluster.h"

namespace picket::cs {
namespace {

TEST(Chain, AnAcknowledgedPacketIsOnEveryMember) {
  Cluster c(3);
  c.Open({0, 1, 2});
  const std::string bytes = RandomBytes(1, 300000);
  auto first = c.Write(0, 1, 0, std::string_view(bytes).substr(0, 200000));
  ASSERT_TRUE(first) << first.error().ToString();
  EXPECT_EQ(first->length(), 200000u);
  ASSERT_TRUE(c.Write(0, 2, 200000, std::string_view(bytes).substr(200000)));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(c.Describe(i).replica().length(), 300000u);
    EXPECT_TRUE(c.DataOn(i) == bytes);
    EXPECT_EQ(c.Describe(i).durable_length(), 0u);
  }
}

TEST(Chain, AWindowOfPacketsIsAppliedInTheOrderOfArrival) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Cluster c(3, seed);
    c.Open({0, 1, 2});
    const std::string bytes = RandomBytes(seed, 1 << 20);
    auto channel = c.channels->Get(Endpoint(c.nodes[0]->host(), kPort));
    ASSERT_TRUE(*RunTask(c.world, c.outside, channel->Connect(5s)));
    struct Ack {
      static Task<> Await(std::unique_ptr<PendingCall> call, int* good, int* done) {
        auto r = co_await call->Wait();
        *good += r ? 1 : 0;
        ++*done;
      }
    };
    int good = 0, done = 0;
    for (uint64_t n = 0; n < 16; ++n) {
      const std::string_view part = std::string_view(bytes).substr(n * 65536, 65536);
      auto call = channel->Start(proto::WRITE_PACKET, c.Packet(0, n + 1, n * 65536, part).SerializeAsString(),
                                 Payload(Buffer::Copy(part)), 5s);
      c.outside.Spawn(Ack::Await(std::move(call), &good, &done));
    }
    c.world.RunUntil([&] { return done == 16; });
    EXPECT_EQ(good, 16);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(c.DataOn(i) == bytes) << "seed " << seed;
  }
}

TEST(Chain, OnlyTheNextPacketIsTaken) {
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  EXPECT_EQ(CodeOf(c.Write(0, 3, 4, "cccc")), Code::kOutOfOrder);
  EXPECT_EQ(CodeOf(c.Write(0, 1, 0, "aaaa")), Code::kOutOfOrder);  // a late duplicate
  EXPECT_EQ(CodeOf(c.Write(0, 2, 5, "bbbb")), Code::kOutOfOrder);
  ASSERT_TRUE(c.Write(0, 2, 4, "bbbb"));
  EXPECT_EQ(c.DataOn(1), "aaaabbbb");
}

TEST(Chain, SyncedBytesSurviveAPowerCutOfAllMembers) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Cluster c(3, seed);
    c.Open({0, 1, 2});
    const std::string bytes = RandomBytes(seed, 150000);
    ASSERT_TRUE(c.Write(0, 1, 0, std::string_view(bytes).substr(0, 100000)));
    ASSERT_TRUE(c.Write(0, 2, 100000, std::string_view(bytes).substr(100000), kFirst, true));
    for (size_t i = 0; i < 3; ++i) c.Restart(i, Node::Death::kPower);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(c.Describe(i).replica().length(), 150000u);
      EXPECT_TRUE(c.DataOn(i) == bytes);
    }
  }
}

TEST(Chain, ASealWithoutASyncDoesNotRiskSyncedBytes) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Cluster c(2, seed);
    c.Open({0, 1});
    const std::string bytes = RandomBytes(seed, 150000);
    ASSERT_TRUE(c.Write(0, 1, 0, std::string_view(bytes).substr(0, 100000), kFirst, true));
    ASSERT_TRUE(c.Write(0, 2, 100000, std::string_view(bytes).substr(100000)));
    ASSERT_TRUE(c.Seal(0, bytes.size(), kFirst, false));
    for (size_t i = 0; i < 2; ++i) c.Restart(i, Node::Death::kPower);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(c.Describe(i).replica().state(), proto::SEALED) << "seed " << seed;
      EXPECT_TRUE(c.DataOn(i) == bytes) << "seed " << seed;
    }
  }
}

TEST(Chain, AnEmptyPacketSyncsWhatCameBefore) {
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  auto synced = c.Write(0, 2, 4, "", kFirst, true);
  ASSERT_TRUE(synced) << synced.error().ToString();
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(c.Describe(i).durable_length(), 4u);
  ASSERT_TRUE(c.Write(0, 3, 4, "bbbb"));
}

TEST(Chain, AProcessCrashLosesNothingAcknowledged) {
  Cluster c(2);
  c.Open({0, 1});
  const std::string bytes = RandomBytes(4, 100001);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes));
  for (size_t i = 0; i < 2; ++i) c.Restart(i, Node::Death::kProcess);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(c.Describe(i).replica().length(), bytes.size());
}

TEST(Chain, AClientMustGoThroughThePrimary) {
  Cluster c(2);
  c.Open({0, 1});
  auto refused = c.Write(1, 1, 0, "aaaa");
  EXPECT_EQ(CodeOf(refused), Code::kNotPrimary);
  EXPECT_EQ(c.Describe(1).replica().length(), 0u);
}

TEST(Chain, ASilentMemberIsNamed) {
  Cluster c(3);
  c.Open({0, 1, 2});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  c.nodes[2]->Pause();
  auto failed = c.Write(0, 2, 4, "bbbb");
  ASSERT_EQ(CodeOf(failed), Code::kDeadlineExceeded);
  EXPECT_EQ(failed.error().server, c.ids[2].value);
  c.nodes[2]->Resume();
}

TEST(Chain, ADeadMemberIsNamed) {
  Cluster c(3);
  c.Open({0, 1, 2});
  c.nodes[1]->Crash(Node::Death::kProcess);
  auto failed = c.Write(0, 1, 0, "aaaa");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().server, c.ids[1].value);
}

TEST(Chain, AMemberWithABrokenDiskIsNamedAndRefusesFromThenOn) {
  Cluster c(3);
  c.Open({0, 1, 2});
  c.nodes[1]->disk().faults.fail_syncs = true;
  auto failed = c.Write(0, 1, 0, "aaaa", kFirst, true);
  ASSERT_EQ(CodeOf(failed), Code::kIoError);
  EXPECT_EQ(failed.error().server, c.ids[1].value);
  c.nodes[1]->disk().faults.fail_syncs = false;
  auto again = c.Write(0, 2, 4, "bbbb");
  EXPECT_EQ(CodeOf(again), Code::kCorrupt);
  EXPECT_EQ(again.error().server, c.ids[1].value);
  EXPECT_EQ(c.Describe(1).replica().state(), proto::CORRUPT);
}

TEST(Chain, AClientsCorruptPacketIsRefusedEverywhereAndBlamesNoServer) {
  Cluster c(2);
  c.Open({0, 1});
  proto::WritePacketRequest r = c.Packet(0, 1, 0, "aaaa");
  auto refused = c.Call<proto::WritePacketResponse>(0, proto::WRITE_PACKET, r, Buffer::Copy("aaab"));
  ASSERT_EQ(CodeOf(refused), Code::kCorrupt);
  EXPECT_EQ(refused.error().server, 0u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(c.Describe(i).replica().length(), 0u);
}

// A relay that flips a bit of every packet on its way from the primary to the next member.
struct Flipper final : sim::Process {
  Flipper(Env& env, Endpoint onward) : server(env), channel(env, std::move(onward)) {
    server.Handle(proto::WRITE_PACKET, [this](RpcRequest r) { return Relay(this, std::move(r)); });
    EXPECT_TRUE(server.Start(Endpoint("", kPort)));
  }
  static Task<Result<RpcReply>> Relay(Flipper* self, RpcRequest r) {
    Buffer bytes = Buffer::Copy(r.payload.buffer().view());
    bytes.data()[0] ^= std::byte{1};
    co_return co_await self->channel.Call(r.method, r.body, Payload(bytes), 3s);
  }
  RpcServer server;
  Channel channel;
};

TEST(Chain, TheSenderOfACorruptPacketIsNamed) {  // HDFS-3875
  Cluster c(2);
  Node& relay = c.world.AddNode("relay");
  const Endpoint onward(c.nodes[1]->host(), kPort);
  relay.Start([onward](Env& env) { return std::make_unique<Flipper>(env, onward); });
  for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(c.Create(i));
  proto::GrantLeaseRequest g;
  *g.mutable_header() = c.Header(0);
  g.set_chunk(kChunk);
  g.set_version(kFirst.value);
  g.set_generation(kSession.value);
  *g.add_members() = c.Hop(0);
  *g.add_members() = c.Hop(1);
  g.mutable_members(1)->set_host(relay.host());
  g.set_lease_ms(60000);
  ASSERT_TRUE(c.Call<proto::GrantLeaseResponse>(0, proto::GRANT_LEASE, g));
  auto refused = c.Write(0, 1, 0, "aaaa");
  ASSERT_EQ(CodeOf(refused), Code::kCorrupt);
  EXPECT_EQ(refused.error().server, c.ids[0].value);
  EXPECT_EQ(c.Describe(1).replica().length(), 0u);
  relay.Crash(Node::Death::kProcess);
}

TEST(Chain, APacketBeyondTheChunkIsRefused) {
  Cluster c(1);
  c.Open({0});
  const std::string mib = RandomBytes(1, 1 << 20);
  for (uint64_t n = 0; n < 4; ++n) ASSERT_TRUE(c.Write(0, n + 1, n << 20, mib));
  EXPECT_EQ(CodeOf(c.Write(0, 5, 4 << 20, "x")), Code::kInvalidArgument);
}

TEST(Chain, AnUnknownChunkIsNotFound) {
  Cluster c(1);
  EXPECT_EQ(CodeOf(c.Write(0, 1, 0, "x")), Code::kNotFound);
  EXPECT_EQ(CodeOf(c.Read(0, 0, 1)), Code::kNotFound);
  EXPECT_EQ(CodeOf(c.Seal(0, 0)), Code::kNotFound);
}

// ---- seals ----

TEST(Seal, SealsEveryMemberDurablyWithOneDigest) {
  Cluster c(3);
  c.Open({0, 1, 2});
  const std::string bytes = RandomBytes(2, 200001);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes));
  auto sealed = c.Seal(0, bytes.size());
  ASSERT_TRUE(sealed) << sealed.error().ToString();
  EXPECT_EQ(sealed->sealed_servers_size(), 3);
  EXPECT_EQ(sealed->length(), bytes.size());
  for (size_t i = 0; i < 3; ++i) c.Restart(i, Node::Death::kPower);
  for (size_t i = 0; i < 3; ++i) {
    const auto replica = c.Describe(i).replica();
    EXPECT_EQ(replica.state(), proto::SEALED);
    EXPECT_EQ(replica.digest(), sealed->digest());
    auto read = c.Read(i, 0, 1 << 20);
    ASSERT_TRUE(read) << read.error().ToString();
    EXPECT_TRUE(read->header.sealed());
    EXPECT_TRUE(read->bytes == bytes);
  }
}

TEST(Seal, ARepeatIsAnsweredAgainAndABadLengthRefused) {
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  EXPECT_EQ(CodeOf(c.Seal(0, 5)), Code::kShort);
  EXPECT_EQ(CodeOf(c.Seal(0, 3)), Code::kConflict);
  auto first = c.Seal(0, 4, kFirst, false);
  ASSERT_TRUE(first);
  auto again = c.Seal(0, 4, kFirst, true);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(first->digest(), again->digest());
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(c.Describe(i).durable_length(), 4u);
  EXPECT_EQ(CodeOf(c.Write(0, 2, 4, "bbbb")), Code::kConflict);
}

TEST(Seal, NeedsTheLease) {
  Cluster c(2);
  c.Open({0, 1});
  EXPECT_EQ(CodeOf(c.Seal(1, 0)), Code::kNotPrimary);
}

TEST(Seal, AMemberThatLacksBytesFailsItByName) {
  Cluster c(2);
  c.Open({0, 1});
  // Applied at the primary only: the other one did not get it.
  c.world.Cut(*c.nodes[0], *c.nodes[1]);
  EXPECT_FALSE(c.Write(0, 1, 0, "aaaa", kFirst, false, 2s));
  c.world.HealAll();
  if (c.Describe(0).replica().length() != 4 || c.Describe(1).replica().length() != 0) return;
  auto failed = c.Seal(0, 4);
  ASSERT_EQ(CodeOf(failed), Code::kShort);
  EXPECT_EQ(failed.error().server, c.ids[1].value);
}

// ---- reads ----

TEST(Read, NeverBeyondTheKnownAckedLength) {  // F16
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  // The primary knows at once; the other member by the next packet, or after a silence.
  EXPECT_EQ(c.Read(0, 0, 100)->bytes, "aaaa");
  auto other = c.Read(1, 0, 100);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->bytes, "");
  EXPECT_EQ(other->header.readable_length(), 0u);
  c.world.RunFor(200ms);
  EXPECT_EQ(c.Read(1, 0, 100)->bytes, "aaaa");
  EXPECT_EQ(c.Describe(1).known_acked(), 4u);
}

// A writer that says more than it knows does not make readers see bytes that may vanish.
TEST(Read, AClientsWordForWhatIsAcknowledgedShowsNothing) {  // F16
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  c.nodes[1]->Pause();
  EXPECT_FALSE(c.Write(0, 2, 4, "bbbb", kFirst, false, 1s));
  const auto announcement = c.Packet(0, 0, 8, "", kFirst, 8);
  EXPECT_EQ(CodeOf(c.Call<proto::WritePacketResponse>(0, proto::WRITE_PACKET, announcement)), Code::kOutOfOrder);
  const auto empty = c.Packet(0, 3, 8, "", kFirst, 8);
  EXPECT_FALSE(c.Call<proto::WritePacketResponse>(0, proto::WRITE_PACKET, empty, {}, 1s));
  EXPECT_EQ(c.Read(0, 0, 100)->bytes, "aaaa");
  EXPECT_EQ(c.Describe(0).known_acked(), 4u);
  c.nodes[1]->Resume();
}

TEST(Read, AnUnacknowledgedTailIsNotShown) {  // F16
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  c.nodes[1]->Pause();
  EXPECT_FALSE(c.Write(0, 2, 4, "bbbb", kFirst, false, 1s));
  EXPECT_EQ(c.Describe(0).replica().length(), 8u);
  auto read = c.Read(0, 0, 100);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->bytes, "aaaa");
  c.nodes[1]->Resume();
}

TEST(Read, IsAlignedToBlocksAndBounded) {
  Cluster c(1);
  c.Open({0});
  const std::string bytes = RandomBytes(3, 3 << 20);
  for (uint64_t n = 0; n < 3; ++n)
    ASSERT_TRUE(c.Write(0, n + 1, n << 20, std::string_view(bytes).substr(n << 20, 1 << 20)));
  for (bool sealed : {false, true}) {
    if (sealed) {
      ASSERT_TRUE(c.Seal(0, bytes.size()));
    }
    auto small = c.Read(0, 70000, 10);
    ASSERT_TRUE(small);
    EXPECT_EQ(small->header.offset(), 65536u);
    EXPECT_TRUE(small->bytes == bytes.substr(65536, 65536));
    EXPECT_TRUE(c.Read(0, 65535, 2)->bytes == bytes.substr(0, 131072));
    EXPECT_TRUE(c.Read(0, 100, 4 << 20)->bytes == bytes.substr(0, 1 << 20));
    EXPECT_TRUE(c.Read(0, bytes.size() - 1, 100)->bytes == bytes.substr(bytes.size() - 65536));
    EXPECT_EQ(c.Read(0, bytes.size(), 100)->bytes, "");
    EXPECT_EQ(c.Read(0, ~0ull, ~0u)->bytes, "");
    EXPECT_EQ(c.Read(0, 0, 0)->bytes, "");
    EXPECT_EQ(c.Read(0, 0, 10)->header.sealed(), sealed);
    EXPECT_EQ(CodeOf(c.Read(0, 0, 10, Version(3, 2))), Code::kReplicaBehind);
    EXPECT_EQ(CodeOf(c.Read(0, 0, 10, Version(2, 9))), Code::kStaleVersion);
  }
}

TEST(Read, RotIsFoundWhenAskedAndThenRefused) {  // HDFS-1371
  Cluster c(1);
  c.Open({0});
  const std::string bytes = RandomBytes(3, 200000);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes));
  ASSERT_TRUE(c.Seal(0, bytes.size()));
  proto::VerifyReplicaRequest v;
  v.set_chunk(kChunk);
  v.set_version(kFirst.value);
  v.set_offset(0);
  v.set_length(1 << 20);
  EXPECT_FALSE(c.Call<proto::VerifyReplicaResponse>(0, proto::VERIFY_REPLICA, v)->corrupt());
  EXPECT_EQ(c.Describe(0).replica().state(), proto::SEALED);  // a report is not believed
  ASSERT_TRUE(c.nodes[0]->disk().FlipBit(c.DataPath(), 150000, 2));
  v.set_length(1000);
  EXPECT_FALSE(c.Call<proto::VerifyReplicaResponse>(0, proto::VERIFY_REPLICA, v)->corrupt());
  v.set_offset(150001);
  EXPECT_TRUE(c.Call<proto::VerifyReplicaResponse>(0, proto::VERIFY_REPLICA, v)->corrupt());
  EXPECT_EQ(CodeOf(c.Read(0, 0, 10)), Code::kCorrupt);
  c.Restart(0, Node::Death::kPower);
  EXPECT_EQ(c.Describe(0).replica().state(), proto::CORRUPT);
}

TEST(Read, TheRottenLastBlockOfAnOpenChunkIsNotCutIntoGoodLookingBytes) {
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  c.nodes[1]->Pause();
  EXPECT_FALSE(c.Write(0, 2, 4, "bbbb", kFirst, false, 1s));
  c.nodes[1]->Resume();
  ASSERT_TRUE(c.nodes[0]->disk().FlipBit(c.DataPath(), 1, 2));
  EXPECT_EQ(CodeOf(c.Read(0, 0, 100)), Code::kCorrupt);
}

TEST(Hello, SaysWhoItIs) {
  Cluster c(1);
  auto hello = c.Call<proto::HelloResponse>(0, proto::HELLO, proto::HelloRequest());
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->role(), "chunkserver");
  EXPECT_EQ(hello->server(), c.ids[0].value);
  EXPECT_EQ(hello->incarnation(), c.Hop(0).incarnation());
}

}  // namespace
}  // namespace picket::cs
