// The master's orders at real chunkservers: fencing, promises, reconciliation, deletion.
#include "tests/unit/chunkserver/cluster.h"

namespace picket::cs {
namespace {

TEST(Create, IsDurableAndARepeatAnswersTheSameInstance) {
  Cluster c(1);
  auto first = c.Create(0);
  ASSERT_TRUE(first);
  EXPECT_EQ(c.Create(0)->instance(), first->instance());
  EXPECT_EQ(CodeOf(c.Create(0, kFirst, false, 2)), Code::kStaleVersion);
  c.Restart(0, Node::Death::kPower);
  EXPECT_EQ(c.Describe(0).replica().instance(), first->instance());
  EXPECT_FALSE(c.Describe(0).replica().clean());
}

TEST(Create, AHigherVersionTakesAStaleReplicaToQuarantine) {
  Cluster c(1);
  c.Open({0});
  const uint64_t old = c.Describe(0).replica().instance();
  ASSERT_TRUE(c.Write(0, 1, 0, "stale bytes"));
  auto joined = c.Create(0, Version(3, 5), true, 2);
  ASSERT_TRUE(joined) << joined.error().ToString();
  EXPECT_NE(joined->instance(), old);
  EXPECT_EQ(c.Describe(0).replica().state(), proto::CREATING);
  EXPECT_EQ(c.nodes[0]->disk().Contents("data/quarantine/" + ToHex(kChunk) + "." + ToHex(old) + ".data"),
            "stale bytes");
}

TEST(Order, EpochsAreMarkedDurablyAndOldMastersRefused) {
  Cluster c(1);
  ASSERT_TRUE(c.Create(0));
  proto::AdvanceVersionRequest r = c.AdvanceRequest(0, kFirst, Version(4, 1));
  *r.mutable_header() = c.Header(0, 4);
  ASSERT_TRUE(c.Call<proto::AdvanceVersionResponse>(0, proto::ADVANCE_VERSION, r));
  EXPECT_EQ(CodeOf(c.Advance(0, Version(4, 1), Version(4, 2))), Code::kStaleEpoch);  // epoch 3
  c.Restart(0, Node::Death::kPower);
  EXPECT_EQ(CodeOf(c.Advance(0, Version(4, 1), Version(4, 2))), Code::kStaleEpoch);
  proto::AdvanceVersionRequest other = c.AdvanceRequest(0, Version(4, 1), Version(4, 2));
  *other.mutable_header() = c.Header(0, 4);
  other.mutable_header()->mutable_epoch()->set_nonce(1);
  EXPECT_EQ(CodeOf(c.Call<proto::AdvanceVersionResponse>(0, proto::ADVANCE_VERSION, other)), Code::kHistoryLost);
}

TEST(Order, AnEpochIsMarkedEvenIfTheOrderItselfIsRefused) {
  Cluster c(1);
  proto::AdvanceVersionRequest r = c.AdvanceRequest(0, kFirst, Version(9, 1));
  *r.mutable_header() = c.Header(0, 9);
  EXPECT_EQ(CodeOf(c.Call<proto::AdvanceVersionResponse>(0, proto::ADVANCE_VERSION, r)), Code::kNotFound);
  EXPECT_EQ(CodeOf(c.Create(0)), Code::kStaleEpoch);
}

TEST(Order, OneMeantForAnotherBootOrClusterIsRefused) {
  Cluster c(1);
  ASSERT_TRUE(c.Create(0));
  proto::AdvanceVersionRequest r = c.AdvanceRequest(0, kFirst, Version(3, 2));
  r.mutable_header()->set_incarnation(99);
  EXPECT_EQ(CodeOf(c.Call<proto::AdvanceVersionResponse>(0, proto::ADVANCE_VERSION, r)), Code::kConflict);
  r = c.AdvanceRequest(0, kFirst, Version(3, 2));
  r.mutable_header()->set_cluster("ffffffffffffffff");
  EXPECT_EQ(CodeOf(c.Call<proto::AdvanceVersionResponse>(0, proto::ADVANCE_VERSION, r)), Code::kWrongCluster);
  EXPECT_EQ(c.Describe(0).replica().version(), kFirst.value);
}

TEST(Advance, AnAnswerIsAPromise) {  // F5
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Cluster c(2, seed);
    c.Open({0, 1});
    const std::string bytes = RandomBytes(seed, 100000);
    ASSERT_TRUE(c.Write(0, 1, 0, bytes));
    auto answer = c.Advance(1, kFirst, Version(3, 2));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->length(), bytes.size());
    EXPECT_EQ(answer->mark_before(), kFirst.value);
    const std::vector<uint32_t> crcs(answer->block_crcs().begin(), answer->block_crcs().end());
    EXPECT_EQ(crcs, PieceCrcs(0, bytes));
    c.Restart(1, Node::Death::kPower);
    EXPECT_EQ(c.Describe(1).replica().length(), bytes.size());
    EXPECT_EQ(c.Describe(1).replica().version(), Version(3, 2).value);
    EXPECT_TRUE(c.DataOn(1) == bytes);
  }
}

TEST(Advance, ALatePacketOfTheOldVersionIsRefused) {  // HDFS-7065
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Advance(1, kFirst, Version(3, 2)));
  // The old primary is not told: it forwards, and the member refuses.
  auto refused = c.Write(0, 2, 4, "bbbb");
  ASSERT_EQ(CodeOf(refused), Code::kStaleVersion);
  EXPECT_EQ(refused.error().server, c.ids[1].value);
  EXPECT_EQ(refused.error().mark, Version(3, 2).value);
  EXPECT_EQ(c.Describe(1).replica().length(), 4u);
  // And the old primary stops when it is told.
  ASSERT_TRUE(c.Advance(0, kFirst, Version(3, 2)));
  EXPECT_EQ(CodeOf(c.Write(0, 3, 8, "cccc")), Code::kStaleVersion);
}

// The packet arrives while the order holds the chunk, between its judgement and its sync: what the mark was when
// the packet came does not count, only what it is when the packet's turn comes.
TEST(Advance, TokenInTheMessageButNotInTheCriticalSection) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Cluster c(1, seed);
    c.Open({0});
    ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
    auto channel = c.channels->Get(Endpoint(c.nodes[0]->host(), kPort));
    ASSERT_TRUE(*RunTask(c.world, c.outside, channel->Connect(5s)));
    auto order = channel->Start(proto::ADVANCE_VERSION, c.AdvanceRequest(0, kFirst, Version(3, 2)).SerializeAsString(),
                                Payload(), 5s);
    auto late = channel->Start(proto::WRITE_PACKET, c.Packet(0, 2, 4, "late").SerializeAsString(),
                               Payload(Buffer::Copy("late")), 5s);
    auto packet = RunTask(c.world, c.outside, late->Wait());
    ASSERT_TRUE(packet);
    EXPECT_EQ(CodeOf(*packet), Code::kStaleVersion) << "seed " << seed;
    auto raised = RunTask(c.world, c.outside, order->Wait());
    ASSERT_TRUE(raised && *raised);
    EXPECT_EQ(c.Describe(0).replica().length(), 4u);
  }
}

TEST(Advance, ADuplicateIsAnsweredFromThePresentState) {  // D5
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Advance(0, kFirst, Version(3, 2)));
  ASSERT_TRUE(c.Grant({0}, Version(3, 2)));
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa", Version(3, 2)));
  auto again = c.Advance(0, kFirst, Version(3, 2));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->length(), 4u);
  EXPECT_EQ(again->version(), Version(3, 2).value);
  // The lease and the sequence of packets are what they were.
  EXPECT_TRUE(c.Write(0, 2, 4, "bbbb", Version(3, 2)));
}

TEST(Advance, ADuplicateReconciliationIsNotExecutedAgain) {  // F2
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Advance(0, kFirst, Version(3, 2)));
  const auto set = c.SetRequest(0, Version(3, 2), Version(3, 3), "", 0, Version(3, 2));
  ASSERT_TRUE(c.Call<proto::AdvanceVersionResponse>(0, proto::ADVANCE_VERSION, set));
  EXPECT_EQ(c.Describe(0).replica().length(), 0u);
  ASSERT_TRUE(c.Grant({0}, Version(3, 3)));
  ASSERT_TRUE(c.Write(0, 1, 0, "acked", Version(3, 3)));
  auto late = c.Call<proto::AdvanceVersionResponse>(0, proto::ADVANCE_VERSION, set);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->length(), 5u);
  EXPECT_EQ(c.DataOn(0), "acked");
  EXPECT_EQ(CodeOf(c.Set(0, Version(3, 2), Version(3, 4), "", 0, Version(3, 2))), Code::kStaleVersion);
}

TEST(Advance, AReplicaThatMissedAGrantStaysBehind) {  // F3
  Cluster c(1);
  c.Open({0});
  auto refused = c.Advance(0, Version(3, 2), Version(3, 3));
  EXPECT_EQ(CodeOf(refused), Code::kReplicaBehind);
  EXPECT_EQ(c.Describe(0).replica().version(), kFirst.value);
}

TEST(Advance, TruncatesToTheCommonPrefixInsideABlock) {
  Cluster c(2);
  c.Open({0, 1});
  const std::string bytes = RandomBytes(1, 200000);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes));
  ASSERT_TRUE(c.Advance(0, kFirst, Version(3, 2)));
  const std::string common = bytes.substr(0, 123456);
  auto cut = c.Set(0, Version(3, 2), Version(3, 3), common, 1, Version(3, 2));
  ASSERT_TRUE(cut) << cut.error().ToString();
  EXPECT_EQ(cut->length(), common.size());
  ASSERT_TRUE(c.Grant({0}, Version(3, 3)));
  ASSERT_TRUE(c.Write(0, 1, common.size(), "more", Version(3, 3)));
  ASSERT_TRUE(c.Seal(0, common.size() + 4, Version(3, 3)));
  EXPECT_TRUE(c.DataOn(0) == common + "more");
  c.Restart(0, Node::Death::kPower);
  EXPECT_TRUE(c.Read(0, 65536, 1 << 20, Version(3, 3))->bytes == (common + "more").substr(65536));
}

TEST(Advance, FillsAShortReplicaFromTheSource) {
  Cluster c(2);
  c.Open({0});
  const std::string bytes = RandomBytes(7, 3'000'000);
  for (uint64_t n = 0; n < 3; ++n) {
    ASSERT_TRUE(c.Write(0, n + 1, n * 1'000'000, std::string_view(bytes).substr(n * 1'000'000, 1'000'000)));
  }
  ASSERT_TRUE(c.Advance(0, kFirst, Version(3, 2)));
  ASSERT_TRUE(c.Set(0, Version(3, 2), Version(3, 3), bytes, 0, Version(3, 3)));
  ASSERT_TRUE(c.Create(1, Version(3, 2), true, 9));
  auto filled = c.Set(1, Version(3, 2), Version(3, 3), bytes, 0, Version(3, 3));
  ASSERT_TRUE(filled) << filled.error().ToString();
  EXPECT_EQ(filled->length(), bytes.size());
  EXPECT_EQ(filled->state(), proto::OPEN);
  c.Restart(1, Node::Death::kPower);
  EXPECT_TRUE(c.DataOn(1) == bytes);
  EXPECT_EQ(c.Describe(1).replica().version(), Version(3, 3).value);
}

TEST(Advance, ReplacesDifferingContent) {  // D13: equal length is not equal content
  Cluster c(2);
  c.Open({0});
  ASSERT_TRUE(c.Create(1));
  ASSERT_TRUE(c.Grant({1}));
  const std::string right = RandomBytes(1, 150000);
  std::string wrong = right;
  wrong[70000] ^= 1;
  ASSERT_TRUE(c.Write(0, 1, 0, right, kFirst, true));
  ASSERT_TRUE(c.Write(1, 1, 0, wrong, kFirst, true));
  for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(c.Advance(i, kFirst, Version(3, 2)));
  auto set = c.Set(1, Version(3, 2), Version(3, 3), right, 0, Version(3, 2));
  ASSERT_TRUE(set) << set.error().ToString();
  EXPECT_TRUE(c.DataOn(1) == right);
}

TEST(Advance, ASourceWithOtherBytesIsNamedAndNothingOfItIsKept) {
  Cluster c(2);
  c.Open({0});
  ASSERT_TRUE(c.Create(1, kFirst, true));
  ASSERT_TRUE(c.Write(0, 1, 0, RandomBytes(1, 150000)));
  auto failed = c.Set(1, kFirst, Version(3, 2), RandomBytes(2, 150000), 0, kFirst);
  ASSERT_EQ(CodeOf(failed), Code::kCorrupt);
  EXPECT_EQ(failed.error().server, c.ids[0].value);
  EXPECT_EQ(c.Describe(1).replica().state(), proto::CREATING);
  EXPECT_EQ(c.Describe(1).replica().version(), kFirst.value);
}

TEST(Advance, AReplicaIsNotItsOwnSource) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  auto refused = c.Set(0, kFirst, Version(3, 2), RandomBytes(1, 1000), 0, kFirst);
  EXPECT_EQ(CodeOf(refused), Code::kShort);
  EXPECT_EQ(c.DataOn(0), "aaaa");
}

TEST(Advance, ARottenSourceNoticesItself) {
  Cluster c(2);
  c.Open({0});
  const std::string bytes = RandomBytes(1, 150000);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes));
  ASSERT_TRUE(c.Create(1, kFirst, true));
  ASSERT_TRUE(c.nodes[0]->disk().FlipBit(c.DataPath(), 100000, 1));
  auto failed = c.Set(1, kFirst, Version(3, 2), bytes, 0, kFirst);
  ASSERT_EQ(CodeOf(failed), Code::kCorrupt);
  EXPECT_EQ(failed.error().server, c.ids[0].value);
  EXPECT_EQ(c.Describe(0).replica().state(), proto::CORRUPT);
}

TEST(Advance, AProvisionalSealIsReopened) {  // F11
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Seal(0, 4));
  auto reopened = c.Advance(0, kFirst, Version(3, 2));
  ASSERT_TRUE(reopened);
  EXPECT_EQ(reopened->state(), proto::OPEN);
  ASSERT_TRUE(c.Grant({0}, Version(3, 2)));
  ASSERT_TRUE(c.Write(0, 1, 4, "bbbb", Version(3, 2)));
  ASSERT_TRUE(c.Seal(0, 8, Version(3, 2)));
  EXPECT_EQ(c.Read(0, 0, 10, Version(3, 2))->bytes, "aaaabbbb");
}

TEST(Unclean, AReplicaIsUncleanFromARestartUntilAGrant) {  // F4
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  c.Restart(1, Node::Death::kProcess);
  // Named by its old boot first, then by its new one.
  auto refused = c.Write(0, 2, 4, "bbbb");
  EXPECT_EQ(CodeOf(refused), Code::kReplicaUnclean);
  EXPECT_EQ(refused.error().server, c.ids[1].value);
  proto::WritePacketRequest r = c.Packet(1, 2, 4, "bbbb");
  c.Forward(1, &r);
  EXPECT_EQ(CodeOf(c.Call<proto::WritePacketResponse>(1, proto::WRITE_PACKET, r, Buffer::Copy("bbbb"))),
            Code::kReplicaUnclean);
  proto::SealRequest s;
  *s.mutable_token() = c.Token();
  s.set_length(4);
  s.set_from_primary(true);
  s.set_target_incarnation(c.Hop(1).incarnation());
  s.set_forward_proof(c.ProofFor(1, s.token(), s.target_incarnation()));
  EXPECT_EQ(CodeOf(c.Call<proto::SealResponse>(1, proto::SEAL, s)), Code::kReplicaUnclean);
  EXPECT_EQ(CodeOf(c.Read(1, 0, 10)), Code::kReplicaUnclean);
  EXPECT_FALSE(c.Describe(1).replica().clean());
  ASSERT_TRUE(c.Advance(1, kFirst, Version(3, 2)));
  EXPECT_TRUE(c.Describe(1).replica().clean());
}

TEST(Unclean, ARestartedPrimaryHasNoLease) {  // D4
  Cluster c(1);
  c.Open({0});
  c.Restart(0, Node::Death::kProcess);
  EXPECT_EQ(CodeOf(c.Write(0, 1, 0, "aaaa")), Code::kReplicaUnclean);
  EXPECT_EQ(CodeOf(c.Grant({0})), Code::kReplicaUnclean);
}

TEST(Lease, EndsAndIsRevoked) {
  Cluster c(1);
  ASSERT_TRUE(c.Create(0));
  ASSERT_TRUE(c.Grant({0}, kFirst, 2000));
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  c.world.RunFor(2s);
  EXPECT_EQ(CodeOf(c.Write(0, 2, 4, "bbbb")), Code::kNotPrimary);
  EXPECT_EQ(CodeOf(c.Grant({0}, kFirst, 2000)), Code::kNotPrimary);  // counted from the first answer
  ASSERT_TRUE(c.Grant({0}, kFirst, 60000));
  ASSERT_TRUE(c.Write(0, 2, 4, "bbbb"));
  proto::RevokeLeaseRequest r;
  *r.mutable_header() = c.Header(0);
  r.set_chunk(kChunk);
  r.set_version(kFirst.value);
  ASSERT_TRUE(c.Call<proto::RevokeLeaseResponse>(0, proto::REVOKE_LEASE, r));
  EXPECT_EQ(CodeOf(c.Write(0, 3, 8, "cccc")), Code::kNotPrimary);
}

TEST(Lease, WhatAGrantCommittedMayBeRead) {  // D6
  Cluster c(2);
  c.Open({0, 1});
  c.nodes[1]->Pause();
  EXPECT_FALSE(c.Write(0, 1, 0, "aaaa", kFirst, false, 1s));
  c.nodes[1]->Resume();
  c.world.RunFor(1s);
  for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(c.Advance(i, kFirst, Version(3, 2)));
  EXPECT_EQ(c.Read(0, 0, 10, Version(3, 2))->bytes, "");
  if (c.Describe(1).replica().length() != 4) return;
  ASSERT_TRUE(c.Grant({0, 1}, Version(3, 2)));
  EXPECT_EQ(c.Read(0, 0, 10, Version(3, 2))->bytes, "aaaa");
  c.world.RunFor(300ms);
  EXPECT_EQ(c.Read(1, 0, 10, Version(3, 2))->bytes, "aaaa");
}

TEST(Delete, TakesExactlyTheNamedInstance) {  // F13
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  const uint64_t instance = c.Describe(0).replica().instance();
  EXPECT_EQ(CodeOf(c.Delete(0, kFirst, instance + 1)), Code::kConflict);
  EXPECT_EQ(CodeOf(c.Delete(0, Version(2, 1), instance)), Code::kStaleVersion);
  EXPECT_EQ(c.Describe(0).replica().length(), 4u);
  ASSERT_TRUE(c.Delete(0, kFirst, instance));
  ASSERT_TRUE(c.Delete(0, kFirst, instance));
  EXPECT_EQ(CodeOf(c.Create(0)), Code::kStaleVersion);  // the late order (F21)
  EXPECT_EQ(CodeOf(c.Read(0, 0, 1)), Code::kNotFound);
  // Back at a higher version; the duplicate of the old order spares it.
  ASSERT_TRUE(c.Create(0, Version(3, 2), false, 5));
  EXPECT_NE(CodeOf(c.Delete(0, kFirst, instance)), Code::kOk);
  EXPECT_EQ(c.Describe(0).replica().state(), proto::OPEN);
}

}  // namespace
}  // namespace picket::cs
