// The judges of a run, each shown what it must refuse.
#include <gtest/gtest.h>

#include "tests/sim/byte_model.h"
#include "tests/sim/fault_script.h"
#include "tests/sim/namespace_model.h"
#include "tests/sim/pattern.h"
#include "tests/sim/protocol_checker.h"

namespace picket::sim {
namespace {

using Kind = ProtocolEvent::Kind;

class ProtocolCheckerTest : public testing::Test {
 protected:
  ProtocolCheckerTest()
      : checker_(world_, {[this](ServerId s, ChunkId, uint64_t, size_t) { return tails_[s]; },
                          [this](ServerId s) { return !gone_.contains(s); }}) {}

  void Tell(Kind kind, ServerId server, Version version, uint64_t length = 0, uint64_t value = 0) {
    checker_.OnEvent(
        {.kind = kind, .server = server, .chunk = kChunk, .version = version, .length = length, .value = value});
  }
  // A chunk of three members at v(1), with `length` bytes acknowledged.
  void Written(uint64_t length) {
    Tell(Kind::kVersionMinted, {}, v(1));
    for (ServerId s : {kA, kB, kC}) Tell(Kind::kReplicaCreated, s, v(1));
    Tell(Kind::kVersionCommitted, {}, v(1), 0, 3);
    Tell(Kind::kLeaseGranted, kA, v(1));
    for (ServerId s : {kA, kB, kC}) Tell(Kind::kMutationApplied, s, v(1), length, 1);
    Tell(Kind::kAcknowledged, kA, v(1), length);
    ASSERT_EQ(Broken(), "");
  }
  // A new version of the members that answer with `length` bytes.
  void Regranted(std::vector<ServerId> members, uint64_t length) {
    Tell(Kind::kVersionMinted, {}, v(2));
    for (ServerId s : members) Tell(Kind::kMarkRaised, s, v(2), 0, length);
    Tell(Kind::kVersionCommitted, {}, v(2), 0, members.size());
  }
  std::string Broken() const { return world_.failed() ? world_.violation()->invariant : ""; }
  static Version v(uint32_t n) { return Version(1, n); }

  static constexpr ChunkId kChunk{7};
  static constexpr ServerId kA{1};
  static constexpr ServerId kB{2};
  static constexpr ServerId kC{3};
  World world_;
  std::map<ServerId, std::string> tails_;
  std::set<ServerId> gone_;
  ProtocolChecker checker_;
};

TEST_F(ProtocolCheckerTest, TakesAWrittenAndRegrantedChunk) {
  Written(100);
  Regranted({kB, kC}, 100);
  Tell(Kind::kLeaseGranted, kB, v(2));
  Tell(Kind::kReplicaSealed, kB, v(2), 100, 5);
  Tell(Kind::kChunkSealed, {}, v(2), 100, 5);
  EXPECT_EQ(Broken(), "");
}
TEST_F(ProtocolCheckerTest, EpochOrder) {
  checker_.OnEvent({.kind = Kind::kEpochActivated, .value = 2});
  checker_.OnEvent({.kind = Kind::kEpochActivated, .value = 2});
  EXPECT_EQ(Broken(), "epoch-order");
}
TEST_F(ProtocolCheckerTest, GenerationReuse) {
  for (int i = 0; i < 2; ++i) checker_.OnEvent({.kind = Kind::kGenerationMinted, .generation = Generation(1, 4)});
  EXPECT_EQ(Broken(), "generation-reuse");
}
TEST_F(ProtocolCheckerTest, VersionReuse) {
  Written(100);
  Tell(Kind::kVersionMinted, {}, v(1));
  EXPECT_EQ(Broken(), "version-reuse");
}
TEST_F(ProtocolCheckerTest, CommitOrder) {
  Written(100);
  Tell(Kind::kVersionCommitted, {}, v(1), 0, 3);
  EXPECT_EQ(Broken(), "commit-order");
}
TEST_F(ProtocolCheckerTest, CommitOfWhatWasNeverMinted) {
  Tell(Kind::kVersionCommitted, {}, v(1), 0, 3);
  EXPECT_EQ(Broken(), "commit-order");
}
TEST_F(ProtocolCheckerTest, OnePrimary) {
  Written(100);
  Tell(Kind::kLeaseGranted, kB, v(1));
  EXPECT_EQ(Broken(), "one-primary");
}
TEST_F(ProtocolCheckerTest, MarkOrder) {
  Written(100);
  Regranted({kB, kC}, 100);
  Tell(Kind::kMarkRaised, kB, v(1), 0, 100);
  EXPECT_EQ(Broken(), "mark-order");
}
TEST_F(ProtocolCheckerTest, StaleApply) {
  Written(100);
  Regranted({kB, kC}, 100);
  Tell(Kind::kMutationApplied, kB, v(1), 200, 2);
  EXPECT_EQ(Broken(), "stale-apply");
}
TEST_F(ProtocolCheckerTest, SerialBytes) {
  Written(100);
  tails_[kA] = "one";
  tails_[kB] = "two";
  Tell(Kind::kMutationApplied, kA, v(1), 200, 2);
  Tell(Kind::kMutationApplied, kB, v(1), 200, 2);
  EXPECT_EQ(Broken(), "serial-bytes");
}
TEST_F(ProtocolCheckerTest, SerialBytesOfARottenReplicaSayNothing) {
  Written(100);
  checker_.OnDamage(kA);
  tails_[kA] = "one";
  tails_[kB] = "two";
  Tell(Kind::kMutationApplied, kA, v(1), 200, 2);
  Tell(Kind::kMutationApplied, kB, v(1), 200, 2);
  EXPECT_EQ(Broken(), "");
}
TEST_F(ProtocolCheckerTest, AckMembers) {
  Written(100);
  Tell(Kind::kMutationApplied, kA, v(1), 200, 2);
  Tell(Kind::kMutationApplied, kB, v(1), 200, 2);
  Tell(Kind::kAcknowledged, kA, v(1), 200);
  EXPECT_EQ(Broken(), "ack-members");
}
TEST_F(ProtocolCheckerTest, AckedLostInAGrant) {
  Written(100);
  Regranted({kB, kC}, 60);
  EXPECT_EQ(Broken(), "acked-lost");
}
TEST_F(ProtocolCheckerTest, AckedLostInASeal) {
  Written(100);
  Tell(Kind::kChunkSealed, {}, v(1), 60, 5);
  EXPECT_EQ(Broken(), "acked-lost");
}
TEST_F(ProtocolCheckerTest, LossIsLawfulWhenNobodyIsLeftWhoHadTheBytes) {
  Written(100);
  checker_.OnPowerLoss(kA);
  checker_.OnDamage(kB);
  gone_ = {kC};
  Regranted({kA, kB}, 60);
  EXPECT_EQ(Broken(), "");
}
TEST_F(ProtocolCheckerTest, WhatAMarkPromisedSurvivesAPowerLoss) {
  Written(100);
  Regranted({kA, kB}, 100);
  for (ServerId s : {kA, kB, kC}) checker_.OnPowerLoss(s);
  Tell(Kind::kChunkSealed, {}, v(2), 60, 5);
  EXPECT_EQ(Broken(), "acked-lost");
}
TEST_F(ProtocolCheckerTest, SealDigest) {
  Written(100);
  Tell(Kind::kReplicaSealed, kA, v(1), 100, 5);
  Tell(Kind::kReplicaSealed, kB, v(1), 100, 6);
  EXPECT_EQ(Broken(), "seal-digest");
}

TEST_F(ProtocolCheckerTest, ATruncationTakesAwayLawfullyDownToItsLengthOnly) {
  Written(100);
  Tell(Kind::kVersionMinted, {}, v(2));
  Tell(Kind::kChunkTruncated, {}, v(2), 60);
  for (ServerId s : {kA, kB, kC}) Tell(Kind::kMarkRaised, s, v(2), 0, 60);
  Tell(Kind::kVersionCommitted, {}, v(2), 60, 3);
  Tell(Kind::kChunkSealed, {}, v(2), 60, 5);
  EXPECT_EQ(Broken(), "");
  Tell(Kind::kVersionMinted, {}, v(3));
  Tell(Kind::kVersionCommitted, {}, v(3), 0, 3);
  EXPECT_EQ(Broken(), "acked-lost");
}
TEST_F(ProtocolCheckerTest, AnAnswerFromBeforeATruncationComesLate) {
  Written(100);
  Tell(Kind::kVersionMinted, {}, v(2));
  Tell(Kind::kChunkTruncated, {}, v(2), 60);
  for (ServerId s : {kA, kB}) Tell(Kind::kMarkRaised, s, v(2), 0, 60);
  Tell(Kind::kVersionCommitted, {}, v(2), 60, 2);
  Tell(Kind::kAcknowledged, {}, v(1), 100);
  Tell(Kind::kVersionMinted, {}, v(3));
  for (ServerId s : {kA, kB}) Tell(Kind::kMarkRaised, s, v(3), 0, 60);
  Tell(Kind::kVersionCommitted, {}, v(3), 60, 2);
  EXPECT_EQ(Broken(), "");
}
TEST_F(ProtocolCheckerTest, OverwrittenBytesAreMovedIntoPlaceLater) {
  Written(100);
  tails_[kA] = "new";
  tails_[kB] = "old";
  for (ServerId s : {kA, kB}) Tell(Kind::kOverwriteApplied, s, v(1), 50, 2);
  for (ServerId s : {kA, kB}) Tell(Kind::kMutationApplied, s, v(1), 120, 3);
  EXPECT_EQ(Broken(), "");
  Tell(Kind::kOverwriteApplied, kC, v(1), 60, 2);
  EXPECT_EQ(Broken(), "serial-bytes");
}
TEST_F(ProtocolCheckerTest, AnOverwriteOfAnOldVersionIsStaleToo) {
  Written(100);
  Regranted({kB, kC}, 100);
  Tell(Kind::kOverwriteApplied, kB, v(1), 50, 2);
  EXPECT_EQ(Broken(), "stale-apply");
}
TEST_F(ProtocolCheckerTest, StaleWriter) {
  Written(100);
  Tell(Kind::kVersionMinted, {}, v(2));
  checker_.OnEvent({.kind = Kind::kMarkRaised,
                    .server = kA,
                    .chunk = kChunk,
                    .version = v(2),
                    .generation = Generation(1, 9),
                    .value = 100});
  checker_.OnEvent({.kind = Kind::kMutationApplied,
                    .server = kA,
                    .chunk = kChunk,
                    .version = v(2),
                    .generation = Generation(1, 8),
                    .length = 120,
                    .value = 1});
  EXPECT_EQ(Broken(), "stale-writer");
}
TEST_F(ProtocolCheckerTest, RecoveryOrder) {
  checker_.OnEvent({.kind = Kind::kRecoveryBegun, .generation = Generation(1, 5), .value = 3});
  checker_.OnEvent({.kind = Kind::kRecoveryBegun, .generation = Generation(1, 4), .value = 4});
  EXPECT_EQ(Broken(), "");
  checker_.OnEvent({.kind = Kind::kRecoveryBegun, .generation = Generation(1, 5), .value = 3});
  EXPECT_EQ(Broken(), "recovery-order");
}
TEST_F(ProtocolCheckerTest, AnAcknowledgedRecordIsOnEveryMember) {
  Written(100);
  Tell(Kind::kRecordAcknowledged, kA, v(1), 60, 7);
  EXPECT_EQ(Broken(), "");
  Tell(Kind::kRecordAcknowledged, kA, v(1), 100, 8);
  EXPECT_EQ(Broken(), "ack-members");
}
TEST_F(ProtocolCheckerTest, WhatIsRestoredIsNotBelowTheMarkAndPromisesNothing) {
  Written(100);
  Tell(Kind::kReplicaDeleted, kC, v(1));
  Tell(Kind::kReplicaCreated, kC, v(1));
  EXPECT_EQ(Broken(), "");
  Regranted({kA, kC}, 100);
  Tell(Kind::kReplicaDeleted, kC, v(2));
  Tell(Kind::kReplicaCreated, kC, v(1));
  EXPECT_EQ(Broken(), "mark-order");
}

TEST(NamespaceModel, DoesWhatTheMasterMustDo) {
  NamespaceModel m;
  EXPECT_EQ(m.Mkdir("/a/b", false), Code::kNotFound);
  EXPECT_EQ(m.Mkdir("/a/b", true), Code::kOk);
  EXPECT_EQ(m.Mkdir("/a/b", true), Code::kOk);
  EXPECT_EQ(m.Mkdir("/a/b", false), Code::kAlreadyExists);
  EXPECT_EQ(m.Create("/a/f", false, {.size = 3}), Code::kOk);
  EXPECT_EQ(m.Create("/a/f", false, {}), Code::kAlreadyExists);
  EXPECT_EQ(m.Create("/a/b", true, {}), Code::kIsDirectory);
  EXPECT_EQ(m.Create("/a/f/x", false, {}), Code::kNotDirectory);
  EXPECT_EQ(m.Rename("/a", "/a/b/c", false), Code::kInvalidArgument);
  EXPECT_EQ(m.Rename("/a/f", "/a/b", true), Code::kAlreadyExists);
  EXPECT_EQ(m.Rename("/a/b", "/a/f", true), Code::kNotDirectory);
  EXPECT_EQ(m.Rename("/a/f", "/a/b/g", false), Code::kOk);
  EXPECT_EQ(m.Find("/a/b/g")->file.size, 3u);
  EXPECT_EQ(m.Remove("/a", false), Code::kNotEmpty);
  EXPECT_EQ(m.Paths(), (std::vector<std::string>{"/a", "/a/b", "/a/b/g"}));
  EXPECT_EQ(m.Remove("/a", true), Code::kOk);
  EXPECT_EQ(m.Find("/a"), nullptr);
}
TEST(NamespaceModel, TaintReachesUpAndDown) {
  NamespaceModel m;
  m.Taint("/a/b");
  EXPECT_TRUE(m.UnderTaint("/a/b/c"));
  EXPECT_FALSE(m.UnderTaint("/a"));
  EXPECT_TRUE(m.Tainted("/a"));
  EXPECT_FALSE(m.Tainted("/a/bc"));
}

class ByteModelTest : public testing::Test {
 protected:
  uint32_t Written(uint64_t offset, std::string_view bytes, bool synced = false) {
    const uint32_t write = model_.Begin(offset, bytes.size());
    model_.Acknowledge(write, offset, bytes, synced);
    return write;
  }
  std::optional<uint64_t> Differs(const ByteModel::Promise& before, std::string_view content) const {
    return model_.Differs(before, content, [](bool) { return false; });
  }
  ByteModel model_;
};
TEST_F(ByteModelTest, AcknowledgedBytesStayUntilSomebodyWritesThere) {
  Written(0, "aaaa");
  const auto before = model_.Now();
  EXPECT_EQ(Differs(before, "aaaa"), std::nullopt);
  EXPECT_EQ(Differs(before, "aaab"), 3u);
  EXPECT_EQ(Differs(before, "aaa"), 3u);
  const uint32_t write = model_.Begin(2, 4);
  EXPECT_EQ(Differs(before, "aax"), std::nullopt);
  Written(3, "c");
  model_.Acknowledge(write, 2, "bbbb", false);
  EXPECT_EQ(Differs(model_.Now(), "aabcbb"), std::nullopt);
  EXPECT_EQ(Differs(model_.Now(), "aabbbb"), 3u);
  EXPECT_EQ(model_.end(), 6u);
}
TEST_F(ByteModelTest, ACutTakesAwayWhatLiesBeyond) {
  const uint32_t write = Written(0, "aaaa");
  auto before = model_.Now();
  model_.BeginCut(2);
  EXPECT_EQ(model_.end(), 2u);
  EXPECT_EQ(Differs(before, ""), std::nullopt);
  before = model_.Now();
  EXPECT_EQ(Differs(before, "a"), 1u);
  model_.EndCut(2, true);
  EXPECT_EQ(Differs(before, ""), std::nullopt);
  model_.Acknowledge(write, 0, "aaaa", false);  // late
  EXPECT_EQ(model_.end(), 2u);
  model_.BeginCut(1);
  model_.EndCut(1, false);
  EXPECT_EQ(model_.end(), 2u);
  model_.BeginCut(1);
  model_.EndCut(1, std::nullopt);
  EXPECT_EQ(model_.end(), 1u);
}

TEST(FaultScript, SurvivesItsText) {
  for (uint64_t seed = 1; seed < 200; ++seed) {
    const auto faults = DrawFaults(Rng(seed), {.chunkservers = 4, .clients = 2, .from = 1s, .to = 60s});
    std::string text = "# a comment\n\n";
    for (const Fault& f : faults) text += ToText(f) + "\n";
    auto parsed = ParseFaults(text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    ASSERT_EQ(parsed->size(), faults.size());
    for (size_t i = 0; i < faults.size(); ++i) {
      EXPECT_EQ(ToText((*parsed)[i]), ToText(faults[i]));
      EXPECT_EQ((*parsed)[i].at, faults[i].at);
      EXPECT_EQ((*parsed)[i].lasts, faults[i].lasts);
    }
  }
  EXPECT_EQ(ParseFaults("1.0 nonsense s1 - 1 0").error().code, Code::kInvalidArgument);
}
TEST(FaultScript, OnlyOneChunkserversDiskIsEverDamaged) {
  for (uint64_t seed = 1; seed < 300; ++seed) {
    std::set<std::string> damaged;
    for (const Fault& f : DrawFaults(Rng(seed), {.chunkservers = 5, .clients = 2, .from = 1s, .to = 120s})) {
      const bool damages = f.kind == FaultKind::kReadErrors || f.kind == FaultKind::kWriteErrors ||
                           f.kind == FaultKind::kSyncErrors || f.kind == FaultKind::kBitRot;
      if (damages && f.node[0] == 's') damaged.insert(f.node);
    }
    EXPECT_LE(damaged.size(), 1u);
  }
}

TEST(Pattern, TellsTheFirstDifference) {
  Buffer bytes = PatternBuffer(5, 1003, 500);
  EXPECT_EQ(PatternDiffers(5, 1003, bytes.span()), std::nullopt);
  EXPECT_TRUE(PatternDiffers(5, 1004, bytes.span()).has_value());
  bytes.data()[100] ^= std::byte{1};
  const auto at = PatternDiffers(5, 1003, bytes.span());
  ASSERT_TRUE(at);
  EXPECT_LE(*at, 1103u);
  EXPECT_GT(*at + 8, 1103u);
}

}  // namespace
}  // namespace picket::sim
