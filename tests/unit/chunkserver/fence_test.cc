// Every check of the fence, one by one: each test fails when its check is switched off.
#include "chunkserver/fence.h"

#include <gtest/gtest.h>

namespace picket::cs {
namespace {

constexpr Version kOld(1, 6), kMark(1, 7), kNext(1, 8);
constexpr Generation kOldSession(1, 2), kSession(1, 3), kNextSession(1, 4);
constexpr Incarnation kBoot(5), kEarlierBoot(4);

Self Me() { return Self{"c1", ServerId(1), kBoot}; }

Marks Open() {
  Marks m;
  m.chunk = ChunkId(77);
  m.state = ReplicaState::kOpen;
  m.version = kMark;
  m.generation = kSession;
  m.raised_in = kBoot;
  m.instance = InstanceId(9);
  m.attempt = AttemptId(11);
  m.length = 1000;
  return m;
}
Marks Sealed() {
  Marks m = Open();
  m.state = ReplicaState::kSealed;
  m.sealed_generation = kSession;
  m.raised_in = kEarlierBoot;
  return m;
}
Marks With(ReplicaState state) {
  Marks m = Open();
  m.state = state;
  return m;
}
MutationTokens Tokens(Version v = kMark, Generation g = kSession, Incarnation target = kBoot) {
  return MutationTokens{v, g, target};
}

template <class R>
Code CodeOf(const R& r) {
  return r ? Code::kOk : r.error().code;
}

TEST(FenceMutation, AcceptsTheMarkItself) { EXPECT_TRUE(FenceMutation(Open(), Me(), Tokens())); }

TEST(FenceMutation, RefusesAnOldVersionWithBothTokensAndTheNextStep) {
  auto refused = FenceMutation(Open(), Me(), Tokens(kOld));
  ASSERT_EQ(CodeOf(refused), Code::kStaleVersion);
  EXPECT_EQ(refused.error().token, kOld.value);
  EXPECT_EQ(refused.error().mark, kMark.value);
  EXPECT_FALSE(refused.error().next_step.empty());
}
TEST(FenceMutation, NeverRaisesTheMarkByItself) {
  EXPECT_EQ(CodeOf(FenceMutation(Open(), Me(), Tokens(kNext))), Code::kReplicaBehind);
}
TEST(FenceMutation, RefusesAnOldWriter) {
  EXPECT_EQ(CodeOf(FenceMutation(Open(), Me(), Tokens(kMark, kOldSession))), Code::kStaleGeneration);
}
TEST(FenceMutation, RefusesAWriterItHasNotHeardOf) {
  EXPECT_EQ(CodeOf(FenceMutation(Open(), Me(), Tokens(kMark, kNextSession))), Code::kReplicaBehind);
}
TEST(FenceMutation, RefusesWhatWasMeantForAnotherBoot) {
  EXPECT_EQ(CodeOf(FenceMutation(Open(), Me(), Tokens(kMark, kSession, kEarlierBoot))), Code::kReplicaUnclean);
}
TEST(FenceMutation, RefusesAReplicaThatIsUncleanSinceARestart) {
  Marks m = Open();
  m.raised_in = kEarlierBoot;
  EXPECT_EQ(CodeOf(FenceMutation(m, Me(), Tokens())), Code::kReplicaUnclean);
}
TEST(FenceMutation, RefusesWhatIsNotOpen) {
  EXPECT_EQ(CodeOf(FenceMutation(With(ReplicaState::kSealed), Me(), Tokens())), Code::kConflict);
  EXPECT_EQ(CodeOf(FenceMutation(With(ReplicaState::kCreating), Me(), Tokens())), Code::kConflict);
}
TEST(FenceMutation, RefusesWhatIsNotThere) {
  EXPECT_EQ(CodeOf(FenceMutation(With(ReplicaState::kNone), Me(), Tokens())), Code::kNotFound);
  EXPECT_EQ(CodeOf(FenceMutation(With(ReplicaState::kTombstone), Me(), Tokens())), Code::kNotFound);
}
TEST(FenceMutation, RefusesACorruptReplica) {
  EXPECT_EQ(CodeOf(FenceMutation(With(ReplicaState::kCorrupt), Me(), Tokens())), Code::kCorrupt);
}

TEST(FenceSequence, TakesTheNextPacketAtTheEnd) {
  EXPECT_TRUE(FenceSequence(Open(), 4, 5, 1000, false));
  EXPECT_EQ(CodeOf(FenceSequence(Open(), 4, 4, 1000, false)), Code::kOutOfOrder);
  EXPECT_EQ(CodeOf(FenceSequence(Open(), 4, 6, 1000, false)), Code::kOutOfOrder);
}
TEST(FenceSequence, TakesNoHoleAndNoOverlap) {
  EXPECT_EQ(CodeOf(FenceSequence(Open(), 4, 5, 999, false)), Code::kOutOfOrder);
  EXPECT_EQ(CodeOf(FenceSequence(Open(), 4, 5, 1001, false)), Code::kOutOfOrder);
}
TEST(FenceSequence, LetsAnEmptyPacketRepeatTheLastSerial) {
  EXPECT_TRUE(FenceSequence(Open(), 4, 4, 1000, true));
  EXPECT_TRUE(FenceSequence(Open(), 4, 5, 1000, true));
  EXPECT_EQ(CodeOf(FenceSequence(Open(), 4, 3, 1000, true)), Code::kOutOfOrder);
}

TEST(FenceOverwrite, EndsAtOrBelowTheEnd) {
  const Marks m = Open();
  EXPECT_TRUE(FenceOverwrite(m, 4, 5, 0, m.length));
  EXPECT_TRUE(FenceOverwrite(m, 4, 5, m.length - 1, 1));
  EXPECT_EQ(CodeOf(FenceOverwrite(m, 4, 5, m.length - 1, 2)), Code::kOutOfOrder);
  EXPECT_EQ(CodeOf(FenceOverwrite(m, 4, 5, m.length, 1)), Code::kOutOfOrder) << "that would be an append";
  EXPECT_EQ(CodeOf(FenceOverwrite(m, 4, 5, UINT64_MAX, 2)), Code::kOutOfOrder);
  EXPECT_EQ(CodeOf(FenceOverwrite(m, 4, 5, 0, 0)), Code::kOutOfOrder);
  const Status refused = FenceOverwrite(m, 4, 5, m.length, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().token, m.length + 1);
  EXPECT_EQ(refused.error().mark, m.length);
}

TEST(FenceOverwrite, ComesInTurnAndOnlyOnce) {
  const Marks m = Open();
  EXPECT_EQ(CodeOf(FenceOverwrite(m, 4, 4, 0, 1)), Code::kOutOfOrder);
  EXPECT_EQ(CodeOf(FenceOverwrite(m, 4, 6, 0, 1)), Code::kOutOfOrder);
}

TEST(FenceSeal, SealsAtExactlyTheLength) {
  auto step = FenceSeal(Open(), Me(), Tokens(), 1000);
  ASSERT_TRUE(step);
  EXPECT_EQ(*step, SealStep::kSeal);
  EXPECT_EQ(CodeOf(FenceSeal(Open(), Me(), Tokens(), 1001)), Code::kShort);
  EXPECT_EQ(CodeOf(FenceSeal(Open(), Me(), Tokens(), 999)), Code::kConflict);
}
TEST(FenceSeal, AnswersARepeatAgainAlsoAfterARestart) {
  auto step = FenceSeal(Sealed(), Me(), Tokens(), 1000);
  ASSERT_TRUE(step);
  EXPECT_EQ(*step, SealStep::kAlreadySealed);
  EXPECT_EQ(CodeOf(FenceSeal(Sealed(), Me(), Tokens(), 999)), Code::kConflict);
}
TEST(FenceSeal, ASealOfAnotherSessionIsNoRepeat) {
  Marks m = Sealed();
  m.sealed_generation = kOldSession;
  EXPECT_EQ(CodeOf(FenceSeal(m, Me(), Tokens(), 1000)), Code::kConflict);
}
TEST(FenceSeal, RefusesStaleTokensAndUncleanReplicas) {
  EXPECT_EQ(CodeOf(FenceSeal(Open(), Me(), Tokens(kOld), 1000)), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(FenceSeal(Open(), Me(), Tokens(kMark, kOldSession), 1000)), Code::kStaleGeneration);
  Marks m = Open();
  m.raised_in = kEarlierBoot;
  EXPECT_EQ(CodeOf(FenceSeal(m, Me(), Tokens(), 1000)), Code::kReplicaUnclean);
}

TEST(FenceRead, ServesTheMarkOnly) {
  EXPECT_TRUE(FenceRead(Open(), Me(), kMark, kMark));
  EXPECT_TRUE(FenceRead(Sealed(), Me(), kMark, kMark));
  EXPECT_EQ(CodeOf(FenceRead(Sealed(), Me(), kMark, kOld)), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(FenceRead(Sealed(), Me(), kMark, kNext)), Code::kReplicaBehind);
}
TEST(FenceRead, ServesNothingThatIsBeingFilled) {
  EXPECT_EQ(CodeOf(FenceRead(With(ReplicaState::kCreating), Me(), kMark, kMark)), Code::kReplicaBehind);
}
TEST(FenceRead, ServesNoUncleanReplica) {
  Marks m = Open();
  m.raised_in = kEarlierBoot;
  EXPECT_EQ(CodeOf(FenceRead(m, Me(), kMark, kMark)), Code::kReplicaUnclean);
}
TEST(FenceRead, ServesWhatAnAttemptLeftBetweenTwoSets) {
  for (ReplicaState state : {ReplicaState::kOpen, ReplicaState::kRecovering, ReplicaState::kSealed}) {
    EXPECT_TRUE(FenceRead(With(state), Me(), kOld, kOld));
    EXPECT_TRUE(FenceRead(With(state), Me(), kOld, kMark));
    EXPECT_EQ(CodeOf(FenceRead(With(state), Me(), kOld, kNext)), Code::kReplicaBehind);
  }
}
TEST(FenceRead, RefusesWhatIsOlderThanTheLastCommittedSet) {
  auto refused = FenceRead(With(ReplicaState::kRecovering), Me(), kMark, kOld);
  ASSERT_EQ(CodeOf(refused), Code::kStaleVersion);
  EXPECT_EQ(refused.error().mark, kMark.value);
}

TEST(FenceRead, ServesNobodyWhileItIsNotKnownWhatWasAcknowledged) {
  for (ReplicaState state : {ReplicaState::kOpen, ReplicaState::kRecovering}) {
    EXPECT_EQ(CodeOf(FenceRead(With(state), Me(), std::nullopt, kMark)), Code::kReplicaUnclean);
  }
  EXPECT_TRUE(FenceRead(Sealed(), Me(), std::nullopt, kMark));
}

TEST(FenceSource, ServesExactlyTheNamedMark) {
  EXPECT_TRUE(FenceSource(Open(), kMark));
  EXPECT_EQ(CodeOf(FenceSource(Open(), kOld)), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(FenceSource(With(ReplicaState::kCreating), kMark)), Code::kConflict);
}

// ---- orders ----

OrderTokens Order(uint32_t epoch = 3, uint64_t nonce = 33) {
  return OrderTokens{"c1", Epoch{epoch, nonce}, ServerId(1), kBoot};
}
constexpr Epoch kEpoch{3, 33};

TEST(FenceOrder, AcceptsTheMarkedEpochAndNewerOnes) {
  EXPECT_TRUE(FenceOrder(Me(), kEpoch, Order()));
  EXPECT_TRUE(FenceOrder(Me(), kEpoch, Order(4, 44)));
}
TEST(FenceOrder, RefusesAnOldMaster) { EXPECT_EQ(CodeOf(FenceOrder(Me(), kEpoch, Order(2, 22))), Code::kStaleEpoch); }
TEST(FenceOrder, RefusesAnotherHistory) {
  EXPECT_EQ(CodeOf(FenceOrder(Me(), kEpoch, Order(3, 34))), Code::kHistoryLost);
}
TEST(FenceOrder, RefusesAnotherCluster) {
  OrderTokens o = Order();
  o.cluster = "c2";
  EXPECT_EQ(CodeOf(FenceOrder(Me(), kEpoch, o)), Code::kWrongCluster);
}
TEST(FenceOrder, RefusesWhatWasMeantForAnotherServer) {
  OrderTokens o = Order();
  o.server = ServerId(2);
  EXPECT_EQ(CodeOf(FenceOrder(Me(), kEpoch, o)), Code::kConflict);
}
TEST(FenceOrder, RefusesWhatWasMeantForAnotherBoot) {
  OrderTokens o = Order();
  o.incarnation = kEarlierBoot;
  EXPECT_EQ(CodeOf(FenceOrder(Me(), kEpoch, o)), Code::kConflict);
}

TEST(FenceCreate, CreatesAboveEveryMark) {
  Marks none;
  none.chunk = ChunkId(77);
  EXPECT_EQ(*FenceCreate(none, kMark, kSession, AttemptId(11)), CreateStep::kCreate);
  EXPECT_EQ(*FenceCreate(With(ReplicaState::kTombstone), kNext, kSession, AttemptId(12)), CreateStep::kCreate);
  EXPECT_EQ(*FenceCreate(Open(), kNext, kSession, AttemptId(12)), CreateStep::kCreate);
}
TEST(FenceCreate, AnswersTheSameOrderAgain) {
  EXPECT_EQ(*FenceCreate(Open(), kMark, kSession, AttemptId(11)), CreateStep::kAlreadyCreated);
}
TEST(FenceCreate, RefusesALateOrder) {  // F21: tombstones
  EXPECT_EQ(CodeOf(FenceCreate(With(ReplicaState::kTombstone), kMark, kSession, AttemptId(11))), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(FenceCreate(Open(), kMark, kSession, AttemptId(12))), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(FenceCreate(Open(), kOld, kSession, AttemptId(11))), Code::kStaleVersion);
}
TEST(FenceCreate, NeverLowersTheGeneration) {
  EXPECT_EQ(CodeOf(FenceCreate(Open(), kNext, kOldSession, AttemptId(12))), Code::kStaleGeneration);
}

AdvanceTokens Advance(Version from = kMark, Version to = kNext, Generation g = kSession) {
  AdvanceTokens o;
  o.from = from;
  o.to = to;
  o.generation = g;
  return o;
}
TEST(FenceAdvance, RaisesFromExactlyTheMark) {
  EXPECT_EQ(*FenceAdvance(Open(), Advance()), AdvanceStep::kRaise);
  EXPECT_EQ(*FenceAdvance(Open(), Advance(kMark, kNext, kNextSession)), AdvanceStep::kRaise);
}
TEST(FenceAdvance, ANewerOrderDoesNotHideMissedBytes) {  // F3
  EXPECT_EQ(CodeOf(FenceAdvance(Open(), Advance(kNext, Version(1, 9)))), Code::kReplicaBehind);
}
TEST(FenceAdvance, RefusesAnAttemptThatWasOvertaken) {
  EXPECT_EQ(CodeOf(FenceAdvance(Open(), Advance(Version(1, 4), kOld))), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(FenceAdvance(Open(), Advance(kOld, kNext))), Code::kStaleVersion);
}
TEST(FenceAdvance, IsExecutedOnce) {  // F2
  AdvanceTokens o = Advance(kOld, kMark);
  o.set = true;
  auto step = FenceAdvance(Open(), o);
  ASSERT_TRUE(step);
  EXPECT_EQ(*step, AdvanceStep::kAlreadyThere);
}
TEST(FenceAdvance, RaisesSomething) {
  EXPECT_EQ(CodeOf(FenceAdvance(Open(), Advance(kMark, kMark))), Code::kInvalidArgument);
}
TEST(FenceAdvance, NeverLowersTheGeneration) {  // F17
  EXPECT_EQ(CodeOf(FenceAdvance(Open(), Advance(kMark, kNext, kOldSession))), Code::kStaleGeneration);
}
TEST(FenceAdvance, ReplacesSealedBytesOnlyWhenItReopens) {
  AdvanceTokens o = Advance();
  o.set = true;
  EXPECT_EQ(CodeOf(FenceAdvance(Sealed(), o)), Code::kConflict);
  o.reopen = true;
  EXPECT_EQ(*FenceAdvance(Sealed(), o), AdvanceStep::kRaise);
}
TEST(FenceAdvance, RefusesWhatIsNotThere) {
  EXPECT_EQ(CodeOf(FenceAdvance(With(ReplicaState::kTombstone), Advance())), Code::kNotFound);
  EXPECT_EQ(CodeOf(FenceAdvance(With(ReplicaState::kCorrupt), Advance())), Code::kCorrupt);
}

TEST(FenceGrant, GrantsOnlyTheOpenCleanReplicaAtTheMark) {
  EXPECT_TRUE(FenceGrant(Open(), Me(), kMark, kSession));
  EXPECT_EQ(CodeOf(FenceGrant(Open(), Me(), kOld, kSession)), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(FenceGrant(Open(), Me(), kMark, kOldSession)), Code::kStaleGeneration);
  EXPECT_EQ(CodeOf(FenceGrant(With(ReplicaState::kSealed), Me(), kMark, kSession)), Code::kConflict);
  Marks m = Open();
  m.raised_in = kEarlierBoot;
  EXPECT_EQ(CodeOf(FenceGrant(m, Me(), kMark, kSession)), Code::kReplicaUnclean);
}

TEST(FenceDelete, DeletesExactlyOneInstanceAtOneVersion) {
  EXPECT_EQ(*FenceDelete(Open(), kMark, InstanceId(9)), DeleteStep::kDelete);
}
TEST(FenceDelete, SparesTheInstanceThatCameBack) {  // F13
  EXPECT_EQ(CodeOf(FenceDelete(Open(), kMark, InstanceId(8))), Code::kConflict);
}
TEST(FenceDelete, SparesAnotherVersion) {
  EXPECT_EQ(CodeOf(FenceDelete(Open(), kOld, InstanceId(9))), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(FenceDelete(Open(), kNext, InstanceId(9))), Code::kReplicaBehind);
}
TEST(FenceDelete, IsDoneWhenItIsGone) {
  EXPECT_EQ(*FenceDelete(With(ReplicaState::kNone), kMark, InstanceId(9)), DeleteStep::kAlreadyGone);
  EXPECT_EQ(*FenceDelete(With(ReplicaState::kTombstone), kMark, InstanceId(9)), DeleteStep::kAlreadyGone);
  EXPECT_EQ(CodeOf(FenceDelete(With(ReplicaState::kTombstone), kNext, InstanceId(9))), Code::kNotFound);
}
TEST(FenceDelete, TakesACorruptReplicaAway) {
  EXPECT_EQ(*FenceDelete(With(ReplicaState::kCorrupt), kMark, InstanceId(9)), DeleteStep::kDelete);
}

// ---- lease recovery ----

BeginTokens Begin(Version from = kMark, Version to = kNext, Generation g = kNextSession) {
  return BeginTokens{from, to, g};
}

TEST(FenceBegin, RaisesAMemberAndOneThatAnUncommittedAttemptRaised) {
  EXPECT_EQ(*FenceBeginRecovery(Open(), Begin()), BeginStep::kBegin);
  EXPECT_EQ(*FenceBeginRecovery(Open(), Begin(kOld, kNext)), BeginStep::kBegin);
  EXPECT_EQ(*FenceBeginRecovery(Sealed(), Begin()), BeginStep::kBegin);
  EXPECT_EQ(*FenceBeginRecovery(With(ReplicaState::kRecovering), Begin(kOld, kNext)), BeginStep::kBegin);
}
TEST(FenceBegin, LeavesAReplicaThatMissedASetAsItIs) {  // F3
  auto refused = FenceBeginRecovery(Open(), Begin(kNext, Version(1, 9)));
  ASSERT_EQ(CodeOf(refused), Code::kReplicaBehind);
  EXPECT_EQ(refused.error().token, kNext.value);
  EXPECT_EQ(refused.error().mark, kMark.value);
}
TEST(FenceBegin, RefusesAnAttemptThatWasOvertaken) {
  EXPECT_EQ(CodeOf(FenceBeginRecovery(With(ReplicaState::kRecovering), Begin(Version(1, 5), kOld))),
            Code::kStaleVersion);
}
TEST(FenceBegin, RaisesSomething) {
  EXPECT_EQ(CodeOf(FenceBeginRecovery(Open(), Begin(kNext, kMark))), Code::kInvalidArgument);
}
TEST(FenceBegin, NeverLowersTheGeneration) {
  EXPECT_EQ(CodeOf(FenceBeginRecovery(Open(), Begin(kMark, kNext, kOldSession))), Code::kStaleGeneration);
}
TEST(FenceBegin, IsAnsweredAgainAndNotExecuted) {
  Marks m = With(ReplicaState::kRecovering);
  EXPECT_EQ(*FenceBeginRecovery(m, Begin(kOld, kMark, kSession)), BeginStep::kAlreadyBegun);
  EXPECT_EQ(*FenceBeginRecovery(Sealed(), Begin(kOld, kMark, kSession)), BeginStep::kAlreadyBegun);
  EXPECT_EQ(CodeOf(FenceBeginRecovery(m, Begin(kOld, kMark, kOldSession))), Code::kStaleGeneration);
  EXPECT_EQ(CodeOf(FenceBeginRecovery(Open(), Begin(kOld, kMark, kSession))), Code::kConflict);
}
TEST(FenceBegin, AReplicaThatIsStillToBeFilledIsNoMember) {
  EXPECT_EQ(CodeOf(FenceBeginRecovery(With(ReplicaState::kCreating), Begin())), Code::kReplicaBehind);
}
TEST(FenceBegin, RefusesWhatIsNotThere) {
  EXPECT_EQ(CodeOf(FenceBeginRecovery(With(ReplicaState::kTombstone), Begin())), Code::kNotFound);
  EXPECT_EQ(CodeOf(FenceBeginRecovery(With(ReplicaState::kCorrupt), Begin())), Code::kCorrupt);
}

FinishTokens Finish(Version v = kMark, Generation g = kSession, uint64_t length = 1000, uint32_t digest = 5) {
  return FinishTokens{v, g, length, digest, false};
}

TEST(FenceFinish, IsExecutedAtExactlyTheMarks) {  // F7
  const Marks m = With(ReplicaState::kRecovering);
  EXPECT_EQ(*FenceFinishRecovery(m, 0, Finish()), FinishStep::kFinish);
  EXPECT_EQ(CodeOf(FenceFinishRecovery(m, 0, Finish(kOld))), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(FenceFinishRecovery(m, 0, Finish(kNext))), Code::kReplicaBehind);
  EXPECT_EQ(CodeOf(FenceFinishRecovery(m, 0, Finish(kMark, kOldSession))), Code::kStaleGeneration);
  EXPECT_EQ(CodeOf(FenceFinishRecovery(m, 0, Finish(kMark, kNextSession))), Code::kReplicaBehind);
}
TEST(FenceFinish, IsExecutedInStateRecoveringOnly) {
  EXPECT_EQ(CodeOf(FenceFinishRecovery(Open(), 0, Finish())), Code::kConflict);
  Marks m = Sealed();
  m.sealed_generation = kOldSession;  // another seal at the same marks is none of this recovery
  EXPECT_EQ(CodeOf(FenceFinishRecovery(m, 0, Finish())), Code::kConflict);
}
TEST(FenceFinish, IsDoneOnce) {
  Marks m = Sealed();
  m.digest = 5;
  EXPECT_EQ(*FenceFinishRecovery(m, 0, Finish()), FinishStep::kAlreadyFinished);
  EXPECT_EQ(CodeOf(FenceFinishRecovery(m, 0, Finish(kMark, kSession, 999))), Code::kConflict);
  EXPECT_EQ(CodeOf(FenceFinishRecovery(m, 0, Finish(kMark, kSession, 1000, 6))), Code::kConflict);
}
TEST(FenceFinish, TakesAcknowledgedBytesOnlyForATruncation) {  // F6
  const Marks m = With(ReplicaState::kRecovering);
  FinishTokens order = Finish(kMark, kSession, 500);
  EXPECT_TRUE(FenceFinishRecovery(m, 500, order));
  EXPECT_EQ(CodeOf(FenceFinishRecovery(m, 501, order)), Code::kIntegrity);
  order.truncation = true;
  EXPECT_TRUE(FenceFinishRecovery(m, 501, order));
}

// ---- quarantine ----

TEST(FenceRestore, BringsNothingBackBelowAMark) {
  EXPECT_TRUE(FenceRestore(With(ReplicaState::kNone), kMark, kSession));
  EXPECT_TRUE(FenceRestore(With(ReplicaState::kTombstone), kMark, kSession));
  EXPECT_TRUE(FenceRestore(With(ReplicaState::kTombstone), kNext, kSession));
  EXPECT_EQ(CodeOf(FenceRestore(With(ReplicaState::kTombstone), kOld, kSession)), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(FenceRestore(With(ReplicaState::kTombstone), kMark, kOldSession)), Code::kStaleGeneration);
}
TEST(FenceRestore, NeverReplacesAReplica) {
  EXPECT_EQ(CodeOf(FenceRestore(Open(), kNext, kNextSession)), Code::kConflict);
  EXPECT_EQ(CodeOf(FenceRestore(With(ReplicaState::kCorrupt), kNext, kNextSession)), Code::kConflict);
}

}  // namespace
}  // namespace picket::cs
