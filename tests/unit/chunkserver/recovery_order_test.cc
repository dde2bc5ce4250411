// Lease recovery at real chunkservers (design §4): what Begin stops and promises, what Finish does once, and
// who may read meanwhile.
#include "tests/unit/chunkserver/cluster.h"

namespace picket::cs {
namespace {

constexpr Version kSecond(3, 2), kThird(3, 3), kFourth(3, 4);
constexpr Generation kRecovery(3, 7), kNewerRecovery(3, 8);

std::vector<uint32_t> CrcsOf(const proto::AdvanceVersionResponse& promise) {
  return {promise.block_crcs().begin(), promise.block_crcs().end()};
}
uint32_t DigestOf(std::string_view content) {
  const std::vector<uint32_t> crcs = PieceCrcs(0, content);
  return Crc32c(crcs.data(), crcs.size() * 4);
}
// The writer says what it was acknowledged, as it does after a moment of silence.
void LetAckedBeKnown(Cluster* c) { c->world.RunFor(300ms); }

TEST(Begin, StopsTheWriterAndPromisesWhatItReports) {  // F5
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Cluster c(2, seed);
    c.Open({0, 1});
    const std::string bytes = RandomBytes(seed, 100000);
    ASSERT_TRUE(c.Write(0, 1, 0, bytes));
    auto begun = c.Begin(1, kFirst, kSecond, kRecovery);
    ASSERT_TRUE(begun) << begun.error().ToString();
    EXPECT_EQ(begun->promise().mark_before(), kFirst.value);
    EXPECT_EQ(begun->promise().version(), kSecond.value);
    EXPECT_EQ(begun->promise().generation(), kRecovery.value);
    EXPECT_EQ(begun->promise().state(), proto::OPEN);
    EXPECT_EQ(begun->promise().length(), bytes.size());
    EXPECT_EQ(CrcsOf(begun->promise()), PieceCrcs(0, bytes));
    EXPECT_EQ(begun->sealed_generation(), 0u);
    EXPECT_FALSE(begun->promise().partial());
    EXPECT_EQ(CodeOf(c.Write(0, 2, bytes.size(), "late")), Code::kStaleVersion);
    c.Restart(1, Node::Death::kPower);
    const auto after = c.Describe(1);
    EXPECT_EQ(after.replica().state(), proto::RECOVERING);
    EXPECT_EQ(after.replica().version(), kSecond.value);
    EXPECT_EQ(after.replica().generation(), kRecovery.value);
    EXPECT_EQ(after.replica().length(), bytes.size());
    EXPECT_FALSE(after.replica().clean());
  }
}

TEST(Begin, ThePrimaryLosesItsLease) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  EXPECT_EQ(c.Describe(0).lease_left_ms(), 0u);
  EXPECT_EQ(CodeOf(c.Write(0, 1, 0, "late")), Code::kStaleVersion);
  proto::WritePacketRequest late = c.Packet(0, 1, 0, "late", kSecond);  // a guessed version does not help
  EXPECT_NE(CodeOf(c.Call<proto::WritePacketResponse>(0, proto::WRITE_PACKET, late, Buffer::Copy("late"))), Code::kOk);
  EXPECT_EQ(CodeOf(c.Grant({0}, kSecond)), Code::kStaleGeneration);
}

TEST(Begin, AReplicaThatMissedASetDoesNotRaiseItsMark) {  // F3
  Cluster c(1);
  c.Open({0});
  EXPECT_EQ(CodeOf(c.Begin(0, kSecond, kThird, kRecovery)), Code::kReplicaBehind);
  EXPECT_EQ(c.Describe(0).replica().version(), kFirst.value);
  EXPECT_TRUE(c.Write(0, 1, 0, "still written"));
}

TEST(Begin, ARepeatAnswersTheSameAlsoOfASealedReplica) {
  Cluster c(1);
  c.Open({0});
  const std::string bytes = RandomBytes(3, 70000);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes));
  ASSERT_TRUE(c.Seal(0, bytes.size()));
  auto first = c.Begin(0, kFirst, kSecond, kRecovery);
  auto again = c.Begin(0, kFirst, kSecond, kRecovery);
  ASSERT_TRUE(first && again);
  for (const auto& begun : {*first, *again}) {
    EXPECT_EQ(begun.sealed_generation(), kSession.value);
    EXPECT_EQ(begun.promise().state(), proto::SEALED);
    EXPECT_EQ(begun.promise().digest(), DigestOf(bytes));
    EXPECT_EQ(begun.promise().known_acked(), bytes.size());
  }
  // A newer attempt finds what the first one found, also after a restart.
  c.Restart(0, Node::Death::kPower);
  auto newer = c.Begin(0, kFirst, kThird, kNewerRecovery);
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->sealed_generation(), kSession.value);
  EXPECT_EQ(newer->promise().mark_before(), kSecond.value);
  EXPECT_EQ(newer->promise().digest(), DigestOf(bytes));
}

TEST(Begin, AReplicaThatWasReopenedIsNotSealed) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Seal(0, 4));
  ASSERT_TRUE(c.Advance(0, kFirst, kSecond));
  ASSERT_TRUE(c.Grant({0}, kSecond));
  ASSERT_TRUE(c.Write(0, 1, 4, "bbbb", kSecond));
  auto begun = c.Begin(0, kSecond, kThird, kRecovery);
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->sealed_generation(), 0u);
  EXPECT_EQ(begun->promise().length(), 8u);
}

TEST(Begin, WhatThisBootHasNotReceivedIsVerified) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, RandomBytes(5, 200000), kFirst, true));
  c.Restart(0, Node::Death::kProcess);
  ASSERT_TRUE(c.nodes[0]->disk().FlipBit(c.DataPath(), 10, 1));  // durable: not read at the start
  EXPECT_EQ(CodeOf(c.Begin(0, kFirst, kSecond, kRecovery)), Code::kCorrupt);
  EXPECT_EQ(c.Describe(0).replica().state(), proto::CORRUPT);
}

TEST(Begin, ALimitIsAnsweredAsIfTheReplicaEndedThere) {
  Cluster c(1);
  c.Open({0});
  const std::string bytes = RandomBytes(5, 200000);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes));
  const std::string kept = bytes.substr(0, 140001);
  auto begun = c.Begin(0, kFirst, kSecond, kRecovery, kept.size());
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->promise().length(), kept.size());
  EXPECT_EQ(CrcsOf(begun->promise()), PieceCrcs(0, kept));
  EXPECT_LE(begun->promise().known_acked(), kept.size());
  EXPECT_TRUE(c.DataOn(0) == bytes);
  // The bytes that decide about the last block are looked at.
  ASSERT_TRUE(c.nodes[0]->disk().FlipBit(c.DataPath(), 150000, 1));
  EXPECT_EQ(CodeOf(c.Begin(0, kFirst, kThird, kNewerRecovery, kept.size())), Code::kCorrupt);
}

TEST(Finish, SealsOnceAndAnswersARepeat) {  // F7
  Cluster c(1);
  c.Open({0});
  const std::string bytes = RandomBytes(1, 100000);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes));
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  auto finished = c.Finish(0, kSecond, kRecovery, bytes, 0);
  ASSERT_TRUE(finished) << finished.error().ToString();
  const auto sealed = c.Describe(0).replica();
  EXPECT_EQ(sealed.state(), proto::SEALED);
  EXPECT_EQ(sealed.version(), kSecond.value);
  EXPECT_EQ(sealed.sealed_generation(), kRecovery.value);
  EXPECT_EQ(sealed.digest(), DigestOf(bytes));
  EXPECT_TRUE(c.Finish(0, kSecond, kRecovery, bytes, 0));
  EXPECT_EQ(CodeOf(c.Finish(0, kSecond, kRecovery, bytes.substr(0, 10), 0)), Code::kConflict);
  c.Restart(0, Node::Death::kPower);
  EXPECT_TRUE(c.Finish(0, kSecond, kRecovery, bytes, 0));
  EXPECT_TRUE(c.Read(0, 0, 1 << 20, kSecond)->bytes == bytes);
}

TEST(Finish, ADuplicateDoesNotTouchWhatTheNextWriterAppended) {  // F7
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  const auto finish = c.FinishRequest(0, kSecond, kRecovery, "aaaa", 0);
  ASSERT_TRUE(c.Call<proto::FinishRecoveryResponse>(0, proto::FINISH_RECOVERY, finish));
  proto::AdvanceVersionRequest next = c.AdvanceRequest(0, kSecond, kThird);
  next.set_generation(kNewerRecovery.value);
  ASSERT_TRUE(c.Call<proto::AdvanceVersionResponse>(0, proto::ADVANCE_VERSION, next));
  EXPECT_EQ(CodeOf(c.Call<proto::FinishRecoveryResponse>(0, proto::FINISH_RECOVERY, finish)), Code::kStaleVersion);
  EXPECT_EQ(c.Describe(0).replica().state(), proto::OPEN);
}

TEST(Finish, CutsWhatWasNeverAcknowledged) {
  Cluster c(1);
  c.Open({0});
  const std::string bytes = RandomBytes(1, 200000);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes.substr(0, 140001)));
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  // In this order, so that nothing is known to be acknowledged: by restart and a newer attempt.
  c.Restart(0, Node::Death::kProcess);
  ASSERT_TRUE(c.Begin(0, kFirst, kThird, kNewerRecovery));
  const std::string kept = bytes.substr(0, 100001);
  ASSERT_TRUE(c.Finish(0, kThird, kNewerRecovery, kept, 0));
  EXPECT_TRUE(c.DataOn(0) == kept);
  c.Restart(0, Node::Death::kPower);
  EXPECT_TRUE(c.Read(0, 0, 1 << 20, kThird)->bytes == kept);
}

TEST(Finish, AcknowledgedBytesGoOnlyByATruncation) {  // F6, D19
  Cluster c(2);
  c.Open({0, 1});
  const std::string bytes = RandomBytes(1, 200000);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes));
  LetAckedBeKnown(&c);
  const std::string kept = bytes.substr(0, 70001);
  for (size_t i = 0; i < 2; ++i) {
    auto begun = c.Begin(i, kFirst, kSecond, kRecovery, kept.size());
    ASSERT_TRUE(begun);
    EXPECT_EQ(begun->promise().known_acked(), kept.size());
    EXPECT_EQ(CodeOf(c.Finish(i, kSecond, kRecovery, kept, i)), Code::kIntegrity);
    EXPECT_EQ(c.Read(i, 0, 1 << 20)->header.readable_length(), bytes.size());
    ASSERT_TRUE(c.Finish(i, kSecond, kRecovery, kept, i, true));
    EXPECT_EQ(c.Read(i, 0, 1 << 20, kSecond)->bytes, kept);
    EXPECT_EQ(CodeOf(c.Read(i, 0, 1 << 20)), Code::kStaleVersion);
    EXPECT_TRUE(c.DataOn(i) == kept);
  }
}

TEST(Finish, FillsAShorterReplicaAndOneThatDiffers) {  // F10
  Cluster c(3);
  const std::string right = RandomBytes(1, 2'500'000);
  std::string wrong = right.substr(0, 150000);
  wrong[70000] ^= 1;
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(c.Create(i));
    ASSERT_TRUE(c.Grant({i}));
  }
  for (uint64_t at = 0, serial = 0; at < right.size(); at += 500000) {
    ASSERT_TRUE(c.Write(0, ++serial, at, std::string_view(right).substr(at, 500000)));
  }
  ASSERT_TRUE(c.Write(1, 1, 0, right.substr(0, 70000)));
  ASSERT_TRUE(c.Write(2, 1, 0, wrong, kFirst, true));
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(c.Begin(i, kFirst, kSecond, kRecovery));
  for (size_t i = 0; i < 3; ++i) {
    auto finished = c.Finish(i, kSecond, kRecovery, right, 0);
    ASSERT_TRUE(finished) << i << ": " << finished.error().ToString();
    EXPECT_TRUE(c.DataOn(i) == right) << i;
    EXPECT_EQ(c.Describe(i).replica().digest(), DigestOf(right));
    c.Restart(i, Node::Death::kPower);
    EXPECT_EQ(c.Describe(i).replica().state(), proto::SEALED);
    auto read = c.Read(i, 0, 1 << 20, kSecond);
    ASSERT_TRUE(read) << read.error().ToString();
    EXPECT_TRUE(read->bytes == right.substr(0, 1 << 20));
    EXPECT_TRUE(c.DataOn(i) == right);
  }
}

TEST(Finish, WithoutASourceItIsShortAndNothingIsGivenUp) {
  Cluster c(2);
  c.Open({0});
  const std::string bytes = RandomBytes(1, 100000);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes, kFirst, true));
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  std::string other = bytes + "more";
  EXPECT_EQ(CodeOf(c.Finish(0, kSecond, kRecovery, other, 1)), Code::kShort);  // has no such replica
  c.nodes[1]->Crash(Node::Death::kPower);
  auto r = c.FinishRequest(0, kSecond, kRecovery, other, 0);
  r.mutable_set()->mutable_source()->set_server(99);
  r.mutable_set()->mutable_source()->set_host(c.nodes[1]->host());
  EXPECT_EQ(CodeOf(c.Call<proto::FinishRecoveryResponse>(0, proto::FINISH_RECOVERY, r, {}, 20s)), Code::kShort);
  EXPECT_EQ(c.Describe(0).replica().length(), bytes.size());
  EXPECT_EQ(c.Describe(0).replica().state(), proto::RECOVERING);
  c.Restart(0, Node::Death::kPower);
  EXPECT_EQ(c.Describe(0).replica().length(), bytes.size());
}

TEST(Finish, TheDigestIsThatOfTheBlocks) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  auto r = c.FinishRequest(0, kSecond, kRecovery, "aaaa", 0);
  r.set_digest(r.digest() ^ 1);
  EXPECT_EQ(CodeOf(c.Call<proto::FinishRecoveryResponse>(0, proto::FINISH_RECOVERY, r)), Code::kInvalidArgument);
  EXPECT_EQ(c.Describe(0).replica().state(), proto::RECOVERING);
}

// ---- attempts that die, and those that are overtaken ----

TEST(Recovery, ANewerRecoverySupersedesAnOlderOne) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  ASSERT_TRUE(c.Begin(0, kFirst, kThird, kNewerRecovery));
  // The older one wakes up: it can neither begin again nor finish.
  auto begin = c.Begin(0, kFirst, kSecond, kRecovery);
  ASSERT_EQ(CodeOf(begin), Code::kStaleVersion);
  EXPECT_EQ(begin.error().mark, kThird.value);
  EXPECT_EQ(CodeOf(c.Finish(0, kSecond, kRecovery, "aa", 0)), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(c.Finish(0, kThird, kRecovery, "aa", 0)), Code::kStaleGeneration);
  ASSERT_TRUE(c.Finish(0, kThird, kNewerRecovery, "aaaa", 0));
  EXPECT_EQ(CodeOf(c.Finish(0, kSecond, kRecovery, "aa", 0)), Code::kStaleVersion);
  EXPECT_EQ(c.Read(0, 0, 10, kThird)->bytes, "aaaa");
}

TEST(Recovery, AGrantTakesUpWhatADeadRecoveryLeft) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  proto::AdvanceVersionRequest r = c.AdvanceRequest(0, kSecond, kThird);
  r.set_generation(kNewerRecovery.value);
  auto advanced = c.Call<proto::AdvanceVersionResponse>(0, proto::ADVANCE_VERSION, r);
  ASSERT_TRUE(advanced) << advanced.error().ToString();
  EXPECT_EQ(advanced->state(), proto::OPEN);
  EXPECT_EQ(advanced->length(), 4u);
  EXPECT_TRUE(c.Describe(0).replica().clean());
}

TEST(Recovery, ALateWriterToADeletedChunkIsRefused) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Delete(0, kFirst, c.Describe(0).replica().instance()));
  EXPECT_EQ(CodeOf(c.Write(0, 2, 4, "late")), Code::kNotFound);
  EXPECT_EQ(CodeOf(c.Seal(0, 4)), Code::kNotFound);
  EXPECT_EQ(CodeOf(c.Begin(0, kFirst, kSecond, kRecovery)), Code::kNotFound);
  EXPECT_EQ(CodeOf(c.Finish(0, kFirst, kSession, "aaaa", 0)), Code::kNotFound);
  EXPECT_EQ(CodeOf(c.Create(0)), Code::kStaleVersion);
  c.Restart(0, Node::Death::kPower);
  EXPECT_EQ(CodeOf(c.Write(0, 2, 4, "late")), Code::kNotFound);
}

TEST(Recovery, ADeleteOrderAtANewerVersionIsRefused) {
  Cluster c(1);
  c.Open({0});
  const uint64_t instance = c.Describe(0).replica().instance();
  // The order of an attempt whose mark never reached this replica, and one that its mark overtook.
  EXPECT_EQ(CodeOf(c.Delete(0, kSecond, instance)), Code::kReplicaBehind);
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  EXPECT_EQ(CodeOf(c.Delete(0, kFirst, instance)), Code::kStaleVersion);
  EXPECT_EQ(c.Describe(0).replica().state(), proto::RECOVERING);
}

TEST(Recovery, HDFS7065AMarkNeverGoesBackWhateverTheOrder) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Begin(0, kFirst, kThird, kNewerRecovery));
  for (int round = 0; round < 2; ++round) {
    EXPECT_NE(CodeOf(c.Begin(0, kFirst, kSecond, kRecovery)), Code::kOk);
    EXPECT_NE(CodeOf(c.Advance(0, kFirst, kSecond)), Code::kOk);
    EXPECT_NE(CodeOf(c.Advance(0, kThird, kFourth)), Code::kOk);  // of the old generation
    EXPECT_NE(CodeOf(c.Create(0, kSecond, false, 9)), Code::kOk);
    EXPECT_NE(CodeOf(c.Set(0, kFirst, kSecond, "", 0, kFirst)), Code::kOk);
    EXPECT_EQ(c.Describe(0).replica().version(), kThird.value);
    EXPECT_EQ(c.Describe(0).replica().generation(), kNewerRecovery.value);
    c.Restart(0, Node::Death::kPower);
  }
}

TEST(Recovery, HDFS3391AFinishOfTheOldGenerationIsNotTakenForTheNewOne) {
  // Equal lengths, equal versions: only the generation tells the two recoveries apart.
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kNewerRecovery));
  EXPECT_EQ(CodeOf(c.Finish(0, kSecond, kRecovery, "aaaa", 0)), Code::kStaleGeneration);
  ASSERT_TRUE(c.Finish(0, kSecond, kNewerRecovery, "aaaa", 0));
  EXPECT_EQ(CodeOf(c.Finish(0, kSecond, kRecovery, "aaaa", 0)), Code::kStaleGeneration);
}

// ---- readers ----

TEST(Reader, IsNotHeldUpByAnAttemptThatDied) {
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "acked"));
  LetAckedBeKnown(&c);
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  ASSERT_TRUE(c.Advance(1, kFirst, kThird));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(c.Read(i, 0, 10)->bytes, "acked") << i;
    EXPECT_FALSE(c.Read(i, 0, 10)->header.sealed());
  }
  EXPECT_EQ(c.Read(0, 0, 10, kSecond)->bytes, "acked");
  EXPECT_EQ(CodeOf(c.Read(0, 0, 10, kThird)), Code::kReplicaBehind);
}

TEST(Reader, OfAVersionBeforeTheLastCommittedSetIsStale) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c.Advance(0, kFirst, kSecond));
  EXPECT_EQ(c.Read(0, 0, 10)->bytes, "aaaa");
  ASSERT_TRUE(c.Grant({0}, kSecond));  // the master has committed it
  auto refused = c.Read(0, 0, 10);
  ASSERT_EQ(CodeOf(refused), Code::kStaleVersion);
  EXPECT_EQ(refused.error().mark, kSecond.value);
}

TEST(Reader, AMemberThatTakesAPacketKnowsThatItsSetIsCommitted) {
  Cluster c(2);
  c.Open({0, 1});
  for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(c.Advance(i, kFirst, kSecond));
  ASSERT_TRUE(c.Grant({0, 1}, kSecond));
  EXPECT_TRUE(c.Read(1, 0, 10));
  ASSERT_TRUE(c.Write(0, 1, 0, "aaaa", kSecond));
  EXPECT_EQ(CodeOf(c.Read(1, 0, 10)), Code::kStaleVersion);
}

TEST(Reader, SeesNothingThatACommitHasNotMadeSure) {
  // The recovery's seal at more than what is known to be acknowledged may never be committed.
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(c.Write(0, 1, 0, "acked"));
  LetAckedBeKnown(&c);
  c.nodes[1]->Pause();
  EXPECT_FALSE(c.Write(0, 2, 5, "never", kFirst, false, 1s));
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  ASSERT_TRUE(c.Finish(0, kSecond, kRecovery, "ackednever", 0));
  auto before = c.Read(0, 0, 100);
  ASSERT_TRUE(before);
  EXPECT_EQ(before->bytes, "acked");
  EXPECT_FALSE(before->header.sealed());
  EXPECT_EQ(c.Read(0, 0, 100, kSecond)->bytes, "ackednever");  // whoever knows this version: committed
  // And another attempt may take it back.
  ASSERT_TRUE(c.Begin(0, kFirst, kThird, kNewerRecovery));
  EXPECT_EQ(c.Read(0, 0, 100)->bytes, "acked");
  ASSERT_TRUE(c.Finish(0, kThird, kNewerRecovery, "acked", 0));
  c.nodes[1]->Resume();
}

TEST(Reader, OfAReopenedChunkSeesAllThatWasSealed) {
  Cluster c(1);
  c.Open({0});
  const std::string bytes = RandomBytes(2, 100000);
  ASSERT_TRUE(c.Write(0, 1, 0, bytes));
  ASSERT_TRUE(c.Seal(0, bytes.size()));
  c.Restart(0, Node::Death::kPower);
  ASSERT_TRUE(c.Advance(0, kFirst, kSecond));  // reopens
  EXPECT_TRUE(c.Read(0, 0, 1 << 20)->bytes == bytes);
  ASSERT_TRUE(c.Begin(0, kFirst, kThird, kRecovery));
  EXPECT_TRUE(c.Read(0, 0, 1 << 20)->bytes == bytes);
}

TEST(Reader, IsNotServedByAReplicaThatMayLackWhatWasAcknowledged) {  // F4
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "acked"));
  c.Restart(0, Node::Death::kPower);
  EXPECT_EQ(CodeOf(c.Read(0, 0, 10)), Code::kReplicaUnclean);
  ASSERT_TRUE(c.Begin(0, kFirst, kSecond, kRecovery));
  EXPECT_EQ(CodeOf(c.Read(0, 0, 10)), Code::kReplicaUnclean);  // of no set that is committed
}

// ---- bytes that are given up for better ones ----

TEST(Fill, NothingIsGivenUpBeforeTheSourcesBytesAreHere) {
  for (Node::Death death : {Node::Death::kProcess, Node::Death::kPower}) {
    Cluster c(2);
    const std::string mine = RandomBytes(1, 100000);
    std::string right = mine + "and more";
    right[70000] ^= 1;
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(c.Create(i));
      ASSERT_TRUE(c.Grant({i}));
    }
    ASSERT_TRUE(c.Write(0, 1, 0, mine, kFirst, true));
    ASSERT_TRUE(c.Write(1, 1, 0, right, kFirst, true));
    for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(c.Advance(i, kFirst, kSecond));
    c.nodes[1]->Pause();  // the source is asked, and never answers
    const auto set = c.SetRequest(0, kSecond, kThird, right, 1, kSecond);
    EXPECT_FALSE(c.Call<proto::AdvanceVersionResponse>(0, proto::ADVANCE_VERSION, set, {}, 2s));
    c.world.RunFor(3s);
    EXPECT_EQ(c.Describe(0).replica().length(), mine.size());
    EXPECT_TRUE(c.Describe(0).replica().clean());
    c.Restart(0, death);
    EXPECT_EQ(c.Describe(0).replica().length(), mine.size());
    EXPECT_TRUE(c.DataOn(0) == mine);
    c.nodes[1]->Resume();
  }
}

TEST(Fill, AReplicaThatGaveBytesUpIsUncleanUntilItIsWhole) {
  Cluster c(2);
  const std::string right = RandomBytes(1, 2'500'000);
  std::string mine = right;
  mine[70000] ^= 1;
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(c.Create(i));
    ASSERT_TRUE(c.Grant({i}));
    const std::string& content = i == 0 ? mine : right;
    for (uint64_t at = 0, serial = 0; at < right.size(); at += 500000) {
      ASSERT_TRUE(c.Write(i, ++serial, at, std::string_view(content).substr(at, 500000)));
    }
    ASSERT_TRUE(c.Seal(i, right.size()));
  }
  // The source breaks off in the middle: the rest of it has rotted. The mark stays: nothing was done.
  ASSERT_TRUE(c.nodes[1]->disk().FlipBit(c.DataPath(), 2'000'000, 1));
  EXPECT_EQ(CodeOf(c.Set(0, kFirst, kSecond, right, 1, kFirst)), Code::kCorrupt);
  EXPECT_LT(c.Describe(0).replica().length(), right.size());
  EXPECT_EQ(c.Describe(0).replica().version(), kFirst.value);
  EXPECT_FALSE(c.Describe(0).replica().clean());
  EXPECT_EQ(CodeOf(c.Read(0, 0, 10)), Code::kReplicaUnclean);
  for (int round = 0; round < 2; ++round) {
    auto grant = c.Advance(0, round == 0 ? kFirst : kSecond, round == 0 ? kSecond : kThird);
    ASSERT_TRUE(grant);
    EXPECT_TRUE(grant->partial());
    EXPECT_EQ(grant->state(), proto::OPEN);
    c.Restart(0, Node::Death::kPower);
  }
  EXPECT_EQ(CodeOf(c.Grant({0}, kThird)), Code::kReplicaUnclean);
  auto begun = c.Begin(0, kFirst, kFourth, kRecovery);
  ASSERT_TRUE(begun);
  EXPECT_TRUE(begun->promise().partial());
  EXPECT_EQ(begun->sealed_generation(), 0u);
  // Whole by an order that says so.
  ASSERT_TRUE(c.Finish(0, kFourth, kRecovery, right.substr(0, 500000), 0));
  EXPECT_TRUE(c.Read(0, 0, 1 << 20, kFourth)->bytes == right.substr(0, 500000));
  EXPECT_TRUE(c.Describe(0).replica().clean());
}

TEST(Fill, AFailedFillIsNoSealAnyMore) {  // F11: what recovery remembers of a seal is of the seal's content
  Cluster c(2);
  const std::string right = RandomBytes(1, 1'500'000);
  const std::string mine = right.substr(0, 100'000);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(c.Create(i));
    ASSERT_TRUE(c.Grant({i}));
  }
  ASSERT_TRUE(c.Write(0, 1, 0, mine));
  ASSERT_TRUE(c.Seal(0, mine.size()));
  for (uint64_t at = 0, serial = 0; at < right.size(); at += 500000) {
    ASSERT_TRUE(c.Write(1, ++serial, at, std::string_view(right).substr(at, 500000)));
  }
  for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(c.Begin(i, kFirst, kSecond, kRecovery));
  ASSERT_TRUE(c.nodes[1]->disk().FlipBit(c.DataPath(), 1'400'000, 1));
  EXPECT_EQ(CodeOf(c.Finish(0, kSecond, kRecovery, right, 1)), Code::kShort);
  auto begun = c.Begin(0, kFirst, kThird, kNewerRecovery);
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->sealed_generation(), begun->promise().length() == mine.size() ? kSession.value : 0u);
  EXPECT_NE(begun->promise().length(), mine.size());
}

// ---- crashes ----

// Begin and Finish, the process killed or the power cut after each step of the world: the mark never goes
// back, what was answered holds, and the next attempt comes to the same end.
void CrashAnywhere(Node::Death death, bool fill) {
  for (int steps = 1;; steps += fill ? 5 : 2) {
    SCOPED_TRACE("dead after step " + std::to_string(steps));
    Cluster c(2, 5);
    const std::string right = RandomBytes(9, fill ? 1'200'000 : 100'000);
    const std::string surplus = right + "never acknowledged";
    for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(c.Create(i));
    ASSERT_TRUE(c.Grant({0}));
    ASSERT_TRUE(c.Grant({1}));
    const std::string mine = fill ? right.substr(0, 100'000) : surplus;
    ASSERT_TRUE(c.Write(0, 1, 0, mine, kFirst, !fill));
    for (uint64_t at = 0, serial = 0; at < right.size(); at += 600'000) {
      ASSERT_TRUE(c.Write(1, ++serial, at, std::string_view(right).substr(at, 600'000), kFirst, true));
    }
    ASSERT_TRUE(c.Begin(1, kFirst, kSecond, kRecovery));

    struct Progress {
      bool begun = false, finished = false, ended = false;
    };
    auto progress = std::make_shared<Progress>();
    auto channel = c.channels->Get(Endpoint(c.nodes[0]->host(), kPort));
    proto::FinishRecoveryRequest finish = c.FinishRequest(0, kSecond, kRecovery, right, 1);
    finish.set_truncation(true);  // what the lone primary thinks acknowledged counts for nothing here
    struct Runner {
      static Task<> Go(std::shared_ptr<Channel> to, proto::BeginRecoveryRequest b, proto::FinishRecoveryRequest f,
                       std::shared_ptr<Progress> p) {
        auto begun = co_await to->Call<proto::BeginRecoveryResponse>(proto::BEGIN_RECOVERY, b, 5s);
        p->begun = begun.has_value();
        if (begun) {
          auto finished = co_await to->Call<proto::FinishRecoveryResponse>(proto::FINISH_RECOVERY, f, 10s);
          p->finished = finished.has_value();
        }
        p->ended = true;
      }
    };
    c.outside.Spawn(Runner::Go(channel, c.BeginRequest(0, kFirst, kSecond, kRecovery), finish, progress));
    channel.reset();
    for (int i = 0; i < steps && !progress->ended; ++i) c.world.Step();
    const Progress was = *progress;
    if (was.ended) {
      EXPECT_TRUE(was.begun && was.finished);
    }
    c.Restart(0, death);

    const auto found = c.Describe(0).replica();
    ASSERT_NE(found.state(), proto::CORRUPT);
    ASSERT_GE(found.version(), was.begun ? kSecond.value : kFirst.value);
    if (was.finished) {
      EXPECT_EQ(found.state(), proto::SEALED);
      EXPECT_EQ(found.digest(), DigestOf(right));
    } else if (was.begun && found.state() != proto::SEALED) {
      EXPECT_EQ(found.state(), proto::RECOVERING);
    }
    // The next attempt.
    ASSERT_TRUE(c.Begin(0, kFirst, kThird, kNewerRecovery));
    ASSERT_TRUE(c.Begin(1, kFirst, kThird, kNewerRecovery));
    auto again = c.Finish(0, kThird, kNewerRecovery, right, 1, true);
    ASSERT_TRUE(again) << again.error().ToString();
    c.Restart(0, Node::Death::kPower);
    EXPECT_TRUE(c.Read(0, 0, 1 << 20, kThird)->bytes == right.substr(0, 1 << 20));
    EXPECT_TRUE(c.DataOn(0) == right);
    if (was.ended || testing::Test::HasFailure()) break;
    ASSERT_LT(steps, 5000);
  }
}

TEST(RecoveryCrash, TheProcessIsKilledAtEveryStep) { CrashAnywhere(Node::Death::kProcess, false); }
TEST(RecoveryCrash, PowerIsLostAtEveryStep) { CrashAnywhere(Node::Death::kPower, false); }
TEST(RecoveryCrash, TheProcessIsKilledAtEveryStepOfAFill) { CrashAnywhere(Node::Death::kProcess, true); }
TEST(RecoveryCrash, PowerIsLostAtEveryStepOfAFill) { CrashAnywhere(Node::Death::kPower, true); }

}  // namespace
}  // namespace picket::cs
