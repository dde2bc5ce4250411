// Lease recovery at the master, against chunkservers that misbehave. Each test of a finding bears its name.
#include "common/base/block.h"
#include "tests/unit/master/recovery_half.h"

namespace picket::test {
namespace {

using testing::HasSubstr;
using Act = FakeDisk::Act;
using Kind = ProtocolEvent::Kind;

// ---- the plain case -----------------------------------------------------------------------------------

TEST_F(RecoveryTest, AnotherWriterTakesOverWithinTwoSeconds) {
  Open("acknowledged");
  const Nanos begin = world.now();
  auto recovered = Recover();
  ASSERT_TRUE(recovered) << recovered.error().ToString();
  EXPECT_TRUE(recovered->closed());
  auto opened = OpenFor(99);
  ASSERT_TRUE(opened) << opened.error().ToString();
  EXPECT_LE(world.now() - begin, 2s);
  EXPECT_GT(opened->generation(), recovered->generation());
  EXPECT_EQ(opened->status().length(), 12u);
  // The old writer is told so, whatever it asks for.
  EXPECT_EQ(Grant(file, grant, {}, 12).error().code, Code::kStaleGeneration);
  EXPECT_EQ(AddChunk(file, 1).error().code, Code::kStaleGeneration);
  EXPECT_EQ(CommitSeal(Seal(file, grant)).error().code, Code::kStaleGeneration);
}

TEST_F(RecoveryTest, ClosesWithWhatAllMembersHave) {
  Open("one");
  At(server(0)).bytes += "two";  // applied, not acknowledged
  ASSERT_TRUE(Recover());
  ExpectClosed("one", All());
  EXPECT_EQ(EventsOf(Kind::kRecoveryBegun).size(), 1u);
  const auto sealed = EventsOf(Kind::kChunkSealed);
  ASSERT_EQ(sealed.size(), 1u);
  EXPECT_EQ(sealed[0].length, 3u);
  EXPECT_EQ(sealed[0].value, DigestOf("one"));
  EXPECT_EQ(sealed[0].version.value, Committed(chunk).back());
}

TEST_F(RecoveryTest, AnEmptyChunkIsDroppedAndAFileWithoutOneIsClosed) {
  Open("");
  ASSERT_TRUE(Recover());
  auto seen = GetFile("/f");
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->status().open());
  EXPECT_EQ(seen->chunks_size(), 0);
  EXPECT_EQ(seen->status().chunk_count(), 0u);
  Create("/g");
  ASSERT_TRUE(Recover(true, "/g"));
  EXPECT_FALSE(GetFile("/g")->status().open());
}

TEST_F(RecoveryTest, AClosedFileIsSuccessAndWithoutWaitTheFenceIsAnswered) {
  Open("one");
  auto release = Hold(server(1), proto::BEGIN_RECOVERY);
  auto release_2 = Hold(server(2), proto::BEGIN_RECOVERY);
  auto fenced = Recover(false);
  ASSERT_TRUE(fenced) << fenced.error().ToString();
  EXPECT_FALSE(fenced->closed());
  EXPECT_GT(fenced->generation(), file.generation);
  EXPECT_EQ(Grant(file, grant, {}, 3).error().code, Code::kStaleGeneration);
  *release = *release_2 = true;
  ASSERT_TRUE(AwaitClosed(10s));
  auto again = Recover();
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_TRUE(again->closed());
}

// The answer of a repeat is the first one's: whoever opened the file since is not fenced.
TEST_F(RecoveryTest, ARepeatedCallDoesNotFenceWhoeverCameAfter) {
  Open("one");
  const proto::RecoverLeaseRequest request = RecoverRequest(true);
  ASSERT_TRUE(Call<proto::RecoverLeaseResponse>(proto::RECOVER_LEASE, request));
  auto opened = OpenFor(99);
  ASSERT_TRUE(opened) << opened.error().ToString();
  RestartMaster();
  ASSERT_TRUE(AwaitLive(3));
  auto again = Call<proto::RecoverLeaseResponse>(proto::RECOVER_LEASE, request);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_TRUE(again->closed());
  EXPECT_EQ(Show().lease().generation(), opened->generation());
}

// ---- findings -----------------------------------------------------------------------------------------

// A replica that was left out of the set has been sealed once, under an old version: it does not win.
TEST_F(RecoveryTest, F3StaleSealedReplicaDoesNotWin) {
  Open("one");
  const uint64_t stale = server(2);
  Kill(stale);
  auto again = Grant(file, grant, {stale}, 3);
  ASSERT_TRUE(again) << again.error().ToString();
  Write(*again, "two");
  At(stale).state = proto::SEALED;
  const uint64_t mark = At(stale).version;
  Boot(stale);
  ASSERT_TRUE(AwaitLive(3));
  world.RunFor(5s);
  ASSERT_TRUE(Recover());
  ExpectClosed("onetwo", {server(0), server(1)});
  EXPECT_EQ(At(stale).version, mark);
}

// An attempt that reaches only a stale replica leaves its mark alone: the evidence stays.
TEST_F(RecoveryTest, F3AnAttemptDoesNotRaiseAStaleMark) {
  Open("one");
  const uint64_t stale = server(2);
  Kill(stale);
  auto again = Grant(file, grant, {stale}, 3);
  ASSERT_TRUE(again) << again.error().ToString();
  Write(*again, "two");
  At(stale).bytes.clear();
  const uint64_t mark = At(stale).version;
  Boot(stale);
  ASSERT_TRUE(AwaitLive(3));
  world.RunFor(5s);
  world.Cut(master_node, node_of(server(0)));
  world.Cut(master_node, node_of(server(1)));
  auto waiting = Recover(true, "/f", 5s);
  ASSERT_FALSE(waiting);
  EXPECT_EQ(waiting.error().code, Code::kWaitingFor) << waiting.error().ToString();
  EXPECT_EQ(At(stale).version, mark);
  world.HealAll();
  ASSERT_TRUE(AwaitClosed(30s));
  ExpectClosed("onetwo", {server(0), server(1)});
}

// The claimant writes under a generation and a version of its own, never those of the recovery.
TEST_F(RecoveryTest, F7ClaimantHasItsOwnGenerationAndVersion) {
  Open("one");
  world.RunFor(31s);
  auto claimed = OpenFor(99);
  ASSERT_TRUE(claimed) << claimed.error().ToString();
  EXPECT_EQ(claimed->status().length(), 3u);
  const auto begun = EventsOf(Kind::kRecoveryBegun);
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_GT(claimed->generation(), begun[0].generation.value);
  EXPECT_GT(begun[0].generation.value, file.generation);
  EXPECT_EQ(Show().lease().holders(0).client(), 99u);
  EXPECT_EQ(Chunk(chunk).generation(), begun[0].generation.value);
}

TEST_F(RecoveryTest, F7EachAttemptHasAFreshGenerationAndVersion) {
  Open("one");
  for (uint64_t id : All()) {
    for (int i = 0; i < 3; ++i) Rule(id, proto::FINISH_RECOVERY, Act::kRefuse);
  }
  ASSERT_TRUE(Recover());
  const auto begun = EventsOf(Kind::kRecoveryBegun);
  ASSERT_GE(begun.size(), 2u);
  for (size_t i = 1; i < begun.size(); ++i) {
    EXPECT_GT(begun[i].generation, begun[i - 1].generation);
    EXPECT_GT(begun[i].version, begun[i - 1].version);
  }
  world.RunFor(20s);
  ExpectClosed("one", All());
}

// A recovery of a master that died wakes up late: it can neither finish nor commit.
TEST_F(RecoveryTest, F8SupersededRecoveryHasNoEffect) {
  Open("one");
  std::vector<std::shared_ptr<bool>> releases;
  for (uint64_t id : All()) releases.push_back(Hold(id, proto::FINISH_RECOVERY));
  ASSERT_TRUE(Recover(false));
  const auto rules = [&] { return disk(0).rules.size() + disk(1).rules.size() + disk(2).rules.size(); };
  ASSERT_TRUE(world.RunUntil([&] { return rules() == 2; }, 5s));  // it is on its way to the source
  for (uint64_t id : All()) disk_of(id).rules.clear();
  RestartMaster();
  ASSERT_TRUE(AwaitLive(3));
  ASSERT_TRUE(AwaitClosed(30s));
  for (auto& release : releases) *release = true;
  world.RunFor(5s);
  ExpectClosed("one", All());
  EXPECT_EQ(EventsOf(Kind::kChunkSealed).size(), 1u);
  EXPECT_EQ(EventsOf(Kind::kRecoveryBegun).size(), 2u);
}

// A source that hangs is not the source of the next attempt, where another has the same content.
TEST_F(RecoveryTest, ASourceThatHangsIsReplaced) {
  Open("one");
  for (int i = 0; i < 100; ++i) Rule(server(0), proto::FINISH_RECOVERY, Act::kLoseRequest);
  ASSERT_TRUE(Recover());
  ExpectClosed("one", {server(1), server(2)});
  EXPECT_LE(EventsOf(Kind::kRecoveryBegun).size(), 2u);
}

TEST_F(RecoveryTest, F8FileDeletedMeanwhileIsNotSealed) {
  Open("one");
  std::vector<std::shared_ptr<bool>> releases;
  for (uint64_t id : All()) releases.push_back(Hold(id, proto::FINISH_RECOVERY));
  auto recovery = Begin<proto::RecoverLeaseResponse>(proto::RECOVER_LEASE, RecoverRequest(true));
  ASSERT_TRUE(world.RunUntil([&] { return At(server(0)).state == proto::RECOVERING; }, 5s));
  proto::DeleteRequest remove;
  Identify(remove.mutable_mutation());
  remove.set_path("/f");
  remove.set_skip_trash(true);
  ASSERT_TRUE(Call<proto::DeleteResponse>(proto::DELETE, remove));
  for (auto& release : releases) *release = true;
  ASSERT_TRUE(world.RunUntil([&] { return recovery->has_value(); }, 1min));
  EXPECT_TRUE(EventsOf(Kind::kChunkSealed).empty());
  EXPECT_EQ(Committed(chunk).size(), 1u);
  EXPECT_EQ(Report().open_files(), 0u);
  EXPECT_EQ(GetFile("/f").error().code, Code::kNotFound);
}

// The master learns that its metadata is an older copy while an order is out: nothing is committed any more.
TEST_F(RecoveryTest, F8NothingIsCommittedAfterTheHistoryIsLost) {
  Open("one");
  std::vector<std::shared_ptr<bool>> releases;
  for (uint64_t id : All()) releases.push_back(Hold(id, proto::FINISH_RECOVERY));
  ASSERT_TRUE(Recover(false));
  size_t other = 0;  // not the one that has the order
  ASSERT_TRUE(world.RunUntil(
      [&] {
        for (size_t i = 0; i < 3; ++i) {
          if (disk(i).rules.empty()) other = (i + 1) % 3;
        }
        return disk(0).rules.size() + disk(1).rules.size() + disk(2).rules.size() == 2;
      },
      5s));
  Kill(disk(other).id.value);
  disk(other).mark.mutable_epoch()->set_number(9);
  Boot(disk(other).id.value);
  world.RunFor(2s);
  for (auto& release : releases) *release = true;
  world.RunFor(60s);
  EXPECT_TRUE(EventsOf(Kind::kChunkSealed).empty());
  EXPECT_EQ(Committed(chunk).size(), 1u);
}

// A chunk that was being added when the writer was fenced hangs on no closed file.
TEST_F(RecoveryTest, F8AddChunkInFlightDuringTheFenceFails) {
  file = Create("/f");
  std::vector<std::shared_ptr<bool>> releases;
  for (size_t i = 0; i < 3; ++i) releases.push_back(Hold(disk(i).id.value, proto::CREATE_REPLICA));
  auto adding = Begin<proto::WriteGrant>(proto::ADD_CHUNK, AddRequest(file, 0));
  world.RunFor(1s);
  ASSERT_TRUE(Recover());
  for (auto& release : releases) *release = true;
  ASSERT_TRUE(world.RunUntil([&] { return adding->has_value(); }, 1min));
  ASSERT_FALSE((*adding)->has_value());
  EXPECT_EQ((*adding)->error().code, Code::kStaleGeneration) << (*adding)->error().ToString();
  EXPECT_EQ(GetFile("/f")->chunks_size(), 0);
}

// An overwrite that nobody acknowledged is on one member only: one content on all, sealed with its digest.
TEST_F(RecoveryTest, F10ContentThatDiffersIsMadeEqual) {
  Open(std::string(3 * kBlockSize, 'a'));
  At(server(0)).bytes.replace(kBlockSize, 5, "bbbbb");
  At(server(0)).overwritten = true;
  ASSERT_TRUE(Recover());
  const std::string content = At(server(0)).bytes;
  EXPECT_EQ(content.size(), 3 * kBlockSize);
  ExpectClosed(content, All());
}

// Two attempts have each sealed one replica and died: the newest knew all that the first did.
TEST_F(RecoveryTest, F11TheNewestSealWins) {
  Open("one");
  At(server(0)).state = At(server(1)).state = proto::SEALED;
  At(server(1)).bytes.clear();
  At(server(1)).generation -= 1;
  ASSERT_TRUE(Recover());
  ExpectClosed("one", All());
}

TEST_F(RecoveryTest, F20WithNobodyToSayItTheFileStaysOpen) {
  Open("acknowledged");
  Kill(server(0));
  At(server(0)).bytes.clear();
  Boot(server(0));  // has lost what was not synced
  Kill(server(1));
  Kill(server(2));
  world.RunFor(70s);  // dead by now
  auto waiting = Recover(true, "/f", 10s);
  ASSERT_FALSE(waiting);
  EXPECT_EQ(waiting.error().code, Code::kWaitingFor) << waiting.error().ToString();
  const proto::LeaseInfo lease = Show().lease();
  EXPECT_TRUE(lease.recovering());
  EXPECT_EQ(lease.phase(), "waiting");
  EXPECT_THAT(lease.waiting_for(), HasSubstr(ToHex(server(1)) + ": dead"));
  EXPECT_THAT(lease.waiting_for(), testing::Not(HasSubstr(ToHex(server(0)))));
  EXPECT_EQ(lease.stalled_holder(), kWriter);
  ASSERT_EQ(lease.answers_size(), 3);
  EXPECT_EQ(std::ranges::count(lease.answers(), "gone", &proto::LeaseInfo::Answer::state), 2);
  EXPECT_TRUE(EventsOf(Kind::kChunkSealed).empty());
  // One of them comes back with what it had.
  Boot(server(1));
  ASSERT_TRUE(AwaitClosed(30s));
  ExpectClosed("acknowledged", {server(0), server(1)});
}

// ---- members --------------------------------------------------------------------------------------------

TEST_F(RecoveryTest, D7OneCleanMemberWaitsForTheOthersUntilTheyAreDead) {
  Open("one");
  Kill(server(1));
  Kill(server(2));
  const Nanos killed = world.now();
  auto waiting = Recover(true, "/f", 10s);
  ASSERT_FALSE(waiting);
  EXPECT_EQ(waiting.error().code, Code::kWaitingFor);
  EXPECT_THAT(waiting.error().message, HasSubstr(ToHex(server(1))));
  ASSERT_TRUE(AwaitClosed(80s));
  EXPECT_GE(world.now() - killed, 55s);
  ExpectClosed("one", {server(0)});
}

TEST_F(RecoveryTest, D7TwoOfThreeAreEnough) {
  Open("one");
  Kill(server(0));  // the primary, with its lease
  const Nanos begin = world.now();
  ASSERT_TRUE(Recover());
  EXPECT_LE(world.now() - begin, 2s);
  ExpectClosed("one", {server(1), server(2)});
}

// Who finishes late is finished all the same, and counts by its digest.
TEST_F(RecoveryTest, D8LateParticipantIsFinishedAndCounted) {
  Open("one");
  At(server(2)).bytes += "un-acknowledged";
  auto release = Hold(server(2), proto::FINISH_RECOVERY);
  const Nanos begin = world.now();
  ASSERT_TRUE(Recover());
  EXPECT_LE(world.now() - begin, 2s);
  ExpectClosed("one", {server(0), server(1)});
  *release = true;
  world.RunFor(10s);
  ExpectClosed("one", All());
}

TEST_F(RecoveryTest, D8MemberThatComesBackAfterTheCommitIsFinished) {
  Open("one");
  Kill(server(2));
  ASSERT_TRUE(Recover());
  ExpectClosed("one", {server(0), server(1)});
  At(server(2)).bytes = "on";
  Boot(server(2));
  world.RunFor(20s);
  ExpectClosed("one", All());
}

TEST_F(RecoveryTest, AcknowledgedBytesMissingStopTheChunkLoudly) {
  Open("one");
  At(server(0)).known_acked = 3;
  At(server(1)).bytes.clear();
  auto refused = Recover(true, "/f", 5s);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().ToString(), HasSubstr("INTEGRITY"));
  EXPECT_TRUE(EventsOf(Kind::kChunkSealed).empty());
  const size_t begun = EventsOf(Kind::kRecoveryBegun).size();
  world.RunFor(5min);  // no number is spent on it any more
  EXPECT_EQ(EventsOf(Kind::kRecoveryBegun).size(), begun);
  EXPECT_THAT(Show().lease().waiting_for(), HasSubstr("INTEGRITY"));
}

}  // namespace
}  // namespace picket::test
