// Overwrites on real chunkservers: along the chain, for readers, over a grant, a reconciliation and a seal.
#include "tests/unit/chunkserver/cluster.h"

namespace picket::cs {
namespace {

constexpr Version kSecond(3, 2);
constexpr Version kThird(3, 3);
constexpr Version kFourth(3, 4);

class OverwriteChain : public testing::Test {
 protected:
  Result<proto::WritePacketResponse> Put(size_t to, uint64_t serial, uint64_t offset, std::string_view bytes,
                                         Version v = kFirst, bool sync = false, bool forwarded = false) {
    proto::WritePacketRequest r = c_.Packet(to, serial, offset, bytes, v);
    r.set_overwrite(true);
    r.set_sync(sync);
    if (forwarded) c_.Forward(to, &r);
    auto answer = c_.Call<proto::WritePacketResponse>(to, proto::WRITE_PACKET, r, Buffer::Copy(bytes));
    return answer;
  }
  static std::string Patched(std::string content, uint64_t offset, std::string_view bytes) {
    return content.replace(offset, bytes.size(), bytes);
  }
  std::string ReadAll(size_t i, size_t size, Version v) {
    std::string out;
    while (out.size() < size) {
      auto part = c_.Read(i, out.size(), static_cast<uint32_t>(std::min<size_t>(size - out.size(), 1 << 20)), v);
      if (!part || part->bytes.empty()) return "unreadable";
      out += part->bytes.substr(out.size() - part->header.offset());
    }
    return out.substr(0, size);
  }

  Cluster c_{3};
  const std::string old_ = RandomBytes(1, 200000);
  const std::string patch_ = RandomBytes(2, 70000);
};

TEST_F(OverwriteChain, AnAcknowledgedOneIsOnEveryMemberAndReadAtOnce) {
  std::vector<ProtocolEvent> events;
  c_.world.AddObserver([&](sim::Node&, const ProtocolEvent& e) {
    if (e.kind == ProtocolEvent::Kind::kOverwriteApplied) events.push_back(e);
  });
  c_.Open({0, 1, 2});
  ASSERT_TRUE(c_.Write(0, 1, 0, old_));
  auto put = Put(0, 2, 65000, patch_);
  ASSERT_TRUE(put) << put.error().ToString();
  EXPECT_EQ(put->length(), old_.size());
  ASSERT_EQ(events.size(), 3u);
  for (const auto& e : events) {
    EXPECT_EQ(e.length, 135000u);
    EXPECT_EQ(e.value, 2u);
  }
  ASSERT_TRUE(c_.Write(0, 3, old_.size(), "more")) << "an append goes on at the end";
  const std::string now = Patched(old_, 65000, patch_) + "more";
  EXPECT_EQ(ReadAll(0, now.size(), kFirst), now);
  for (size_t i : {0u, 1u, 2u}) EXPECT_EQ(c_.Describe(i).replica().length(), now.size());
}

TEST_F(OverwriteChain, ASealedReplicaIsSentFromItsDataFile) {
  c_.Open({0, 1, 2});
  ASSERT_TRUE(c_.Write(0, 1, 0, old_));
  ASSERT_TRUE(Put(0, 2, 65000, patch_));
  auto sealed = c_.Seal(0, old_.size(), kFirst, false);
  ASSERT_TRUE(sealed) << sealed.error().ToString();
  const std::string now = Patched(old_, 65000, patch_);
  for (size_t i : {0u, 1u, 2u}) {
    EXPECT_EQ(ReadAll(i, now.size(), kFirst), now);
    EXPECT_EQ(c_.DataOn(i), now);
    EXPECT_EQ(c_.Describe(i).replica().digest(), sealed->digest());
  }
}

TEST_F(OverwriteChain, OpenedAgainOverwrittenAndSealedAllAreEqual) {
  c_.Open({0, 1, 2});
  ASSERT_TRUE(c_.Write(0, 1, 0, old_));
  auto first = c_.Seal(0, old_.size());
  ASSERT_TRUE(first);
  for (size_t i : {0u, 1u, 2u}) {
    auto promise = c_.Advance(i, kFirst, kSecond);
    ASSERT_TRUE(promise) << promise.error().ToString();
    EXPECT_FALSE(promise->overwritten());
  }
  ASSERT_TRUE(c_.Grant({0, 1, 2}, kSecond));
  ASSERT_TRUE(Put(0, 1, 65000, patch_, kSecond));
  ASSERT_TRUE(Put(0, 2, 65100, "again", kSecond, true));
  auto second = c_.Seal(0, old_.size(), kSecond);
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_NE(second->digest(), first->digest());
  const std::string now = Patched(Patched(old_, 65000, patch_), 65100, "again");
  for (size_t i : {0u, 1u, 2u}) {
    EXPECT_EQ(c_.DataOn(i), now);
    EXPECT_EQ(c_.Describe(i).replica().digest(), second->digest());
  }
}

TEST_F(OverwriteChain, ASyncedOneSurvivesAPowerCutOfAllMembers) {
  c_.Open({0, 1, 2});
  ASSERT_TRUE(c_.Write(0, 1, 0, old_, kFirst, true));
  ASSERT_TRUE(Put(0, 2, 65000, patch_, kFirst, true));
  const std::string now = Patched(old_, 65000, patch_);
  for (size_t i : {0u, 1u, 2u}) {
    c_.Restart(i, Node::Death::kPower);
    auto promise = c_.Advance(i, kFirst, kSecond);
    ASSERT_TRUE(promise);
    EXPECT_EQ(std::vector<uint32_t>(promise->block_crcs().begin(), promise->block_crcs().end()), PieceCrcs(0, now));
    EXPECT_TRUE(promise->overwritten());
  }
}

TEST_F(OverwriteChain, AnAcknowledgedOneSurvivesTheProcess) {
  c_.Open({0, 1, 2});
  ASSERT_TRUE(c_.Write(0, 1, 0, old_));
  ASSERT_TRUE(Put(0, 2, 65000, patch_));
  const std::string now = Patched(old_, 65000, patch_);
  for (size_t i : {0u, 1u, 2u}) {
    c_.Restart(i, Node::Death::kProcess);
    auto promise = c_.Advance(i, kFirst, kSecond);
    ASSERT_TRUE(promise);
    EXPECT_EQ(std::vector<uint32_t>(promise->block_crcs().begin(), promise->block_crcs().end()), PieceCrcs(0, now));
    EXPECT_TRUE(promise->overwritten());
  }
}

TEST_F(OverwriteChain, OnlyWhatIsThereIsReplacedAndOnlyInTurn) {
  c_.Open({0});
  ASSERT_TRUE(c_.Write(0, 1, 0, old_));
  EXPECT_EQ(CodeOf(Put(0, 2, old_.size() - 1, "ab")), Code::kOutOfOrder) << "beyond the end";
  EXPECT_EQ(CodeOf(Put(0, 3, 0, "ab")), Code::kOutOfOrder) << "a packet is missing";
  EXPECT_EQ(CodeOf(Put(0, 1, 0, "ab")), Code::kOutOfOrder) << "a duplicate";
  EXPECT_EQ(CodeOf(Put(0, 2, 0, "")), Code::kOutOfOrder) << "nothing";
  EXPECT_EQ(CodeOf(c_.Write(0, 2, 5, "ab")), Code::kOutOfOrder) << "an append below the end";
  EXPECT_TRUE(Put(0, 2, old_.size() - 2, "ab"));
}

TEST_F(OverwriteChain, ADamagedOneChangesNothingAnywhere) {
  c_.Open({0, 1});
  ASSERT_TRUE(c_.Write(0, 1, 0, old_));
  proto::WritePacketRequest r = c_.Packet(0, 2, 100, "abc");
  r.set_overwrite(true);
  r.set_piece_crcs(0, r.piece_crcs(0) + 1);
  auto refused = c_.Call<proto::WritePacketResponse>(0, proto::WRITE_PACKET, r, Buffer::Copy("abc"));
  EXPECT_EQ(CodeOf(refused), Code::kCorrupt);
  EXPECT_EQ(ReadAll(0, 1000, kFirst), old_.substr(0, 1000));
}

// F10: an overwrite that reached one member only, at equal lengths. The promise says so, and the replicas are
// made equal by block checksums; a block that differs is replaced, the others stay.
TEST_F(OverwriteChain, F10UnacknowledgedOverwriteOnOneReplicaIsReconciled) {
  c_.Open({0, 1});
  ASSERT_TRUE(c_.Write(0, 1, 0, old_));
  ASSERT_TRUE(Put(1, 2, 65000, patch_, kFirst, false, true));  // as the primary would forward it
  auto a = c_.Advance(0, kFirst, kSecond);
  auto b = c_.Advance(1, kFirst, kSecond);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->length(), b->length());
  EXPECT_FALSE(a->overwritten());
  EXPECT_TRUE(b->overwritten());
  ASSERT_TRUE(c_.Set(0, kSecond, kThird, old_, 0, kSecond));
  auto set = c_.Set(1, kSecond, kThird, old_, 0, kThird);
  ASSERT_TRUE(set) << set.error().ToString();
  EXPECT_EQ(c_.DataOn(1), old_);
  c_.Restart(1, Node::Death::kPower);
  auto again = c_.Advance(1, kThird, kFourth);
  ASSERT_TRUE(again);
  EXPECT_EQ(std::vector<uint32_t>(again->block_crcs().begin(), again->block_crcs().end()), PieceCrcs(0, old_));
}

TEST_F(OverwriteChain, AReconciliationReplacesBlocksInTheMiddleAndFillsTheEnd) {
  c_.Open({0, 1});
  const std::string whole = Patched(Patched(RandomBytes(5, 3 << 20), 70000, patch_), 2500000, "middle");
  ASSERT_TRUE(c_.Write(0, 1, 0, whole.substr(0, 1 << 20)));
  ASSERT_TRUE(c_.Write(0, 2, 1 << 20, whole.substr(1 << 20, 1 << 20)));
  ASSERT_TRUE(Put(1, 3, 70000, RandomBytes(6, 70000), kFirst, false, true));
  ASSERT_TRUE(Put(1, 4, 1500000, "other", kFirst, false, true));
  // The source goes on alone.
  ASSERT_TRUE(c_.Advance(0, kFirst, kSecond));
  ASSERT_TRUE(c_.Grant({0}, kSecond));
  ASSERT_TRUE(c_.Write(0, 1, 2 << 20, whole.substr(2 << 20), kSecond));
  const auto before = c_.nodes[1]->disk().operations();
  ASSERT_TRUE(c_.Advance(1, kFirst, kSecond));
  auto set = c_.Set(1, kSecond, kThird, whole, 0, kSecond);
  ASSERT_TRUE(set) << set.error().ToString();
  EXPECT_GT(c_.nodes[1]->disk().operations(), before);
  EXPECT_EQ(c_.DataOn(1), whole);
  EXPECT_EQ(std::vector<uint32_t>(set->block_crcs().begin(), set->block_crcs().end()), PieceCrcs(0, whole));
}

TEST_F(OverwriteChain, AReconciliationThatOnlyAppendsIsNoOverwrite) {
  c_.Open({0, 1});
  ASSERT_TRUE(c_.Write(0, 1, 0, old_));
  ASSERT_TRUE(c_.Advance(0, kFirst, kSecond));
  ASSERT_TRUE(c_.Grant({0}, kSecond));
  const std::string whole = old_ + RandomBytes(3, 500000);
  ASSERT_TRUE(c_.Write(0, 1, old_.size(), whole.substr(old_.size()), kSecond));
  ASSERT_TRUE(c_.Advance(1, kFirst, kSecond));
  auto set = c_.Set(1, kSecond, kThird, whole, 0, kSecond);
  ASSERT_TRUE(set) << set.error().ToString();
  EXPECT_FALSE(set->overwritten());
  EXPECT_EQ(c_.DataOn(1), whole);
}

// The source dies in the middle: what was acknowledged is still there, at full length.
TEST_F(OverwriteChain, AFillThatFailsGivesNothingUp) {
  c_.Open({0, 1});
  ASSERT_TRUE(c_.Write(0, 1, 0, old_));
  ASSERT_TRUE(Put(1, 2, 65000, patch_, kFirst, false, true));
  ASSERT_TRUE(c_.Advance(1, kFirst, kSecond));
  c_.nodes[0]->Crash(Node::Death::kProcess);
  proto::AdvanceVersionRequest r = c_.AdvanceRequest(1, kSecond, kThird);
  r.mutable_set()->set_length(old_.size());
  for (uint32_t crc : PieceCrcs(0, old_)) r.mutable_set()->add_block_crcs(crc);
  r.mutable_set()->mutable_source()->set_server(c_.ids[0].value);
  r.mutable_set()->mutable_source()->set_host(c_.nodes[0]->host());
  r.mutable_set()->mutable_source()->set_port(kPort);
  r.mutable_set()->set_source_version(kSecond.value);
  EXPECT_FALSE(c_.Call<proto::AdvanceVersionResponse>(1, proto::ADVANCE_VERSION, r, {}, 20s));
  auto promise = c_.Advance(1, kFirst, kSecond);
  ASSERT_TRUE(promise);
  EXPECT_EQ(promise->length(), old_.size());
  EXPECT_FALSE(promise->partial());
}

}  // namespace
}  // namespace picket::cs
