// Lease recovery at the master, against chunkservers that misbehave and a master that dies. Each test of a
// finding bears its name.
#include <gmock/gmock.h>

#include <algorithm>

#include "common/base/block.h"
#include "tests/unit/master/cluster_half.h"

namespace picket::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using Act = FakeDisk::Act;
using Kind = ProtocolEvent::Kind;

class RecoveryTest : public ClusterTest {
 protected:
  explicit RecoveryTest(size_t servers = 3) : ClusterTest(servers, Options()) {}
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& line : world.log()) std::fprintf(stderr, "%s\n", line.c_str());
  }
  static MasterOptions Options() {
    MasterOptions o;
    o.soft_limit = 30s;
    o.hard_limit = 120s;
    return o;
  }
  // A file with one open chunk on every server.
  void Open(const std::string& bytes, const std::string& path = "/f") {
    file = Create(path);
    auto added = AddChunk(file);
    ASSERT_TRUE(added) << added.error().ToString();
    grant = *added;
    chunk = grant.token().chunk();
    Write(grant, bytes);
  }
  uint64_t server(int i) const { return grant.chain(i).server(); }
  sim::Node& node_of(uint64_t id) { return server_node(index_of(id)); }
  FakeReplica& At(uint64_t id) { return disk_of(id).replicas.at(chunk); }
  void Rule(uint64_t id, proto::Method method, Act act, Code code = Code::kIoError) {
    FakeDisk::Rule rule;
    rule.method = method;
    rule.act = act;
    rule.error = Error(code, "as the test wants");
    rule.release = std::make_shared<bool>(false);
    disk_of(id).rules.push_back(rule);
  }
  std::shared_ptr<bool> Hold(uint64_t id, proto::Method method) {
    Rule(id, method, Act::kHold);
    return disk_of(id).rules.back().release;
  }
  void Kill(uint64_t id) { node_of(id).Crash(sim::Node::Death::kProcess); }
  void Boot(uint64_t id) { StartServer(index_of(id)); }

  proto::RecoverLeaseRequest RecoverRequest(bool wait, const std::string& path = "/f") {
    proto::RecoverLeaseRequest r;
    Identify(r.mutable_mutation());
    r.set_path(path);
    r.set_wait(wait);
    return r;
  }
  Result<proto::RecoverLeaseResponse> Recover(bool wait = true, const std::string& path = "/f", Nanos timeout = 30s) {
    return Call<proto::RecoverLeaseResponse>(proto::RECOVER_LEASE, RecoverRequest(wait, path), timeout);
  }
  proto::ShowLeaseResponse Show(const std::string& path = "/f") {
    proto::ShowLeaseRequest r;
    r.set_path(path);
    auto shown = Call<proto::ShowLeaseResponse>(proto::SHOW_LEASE, r);
    EXPECT_TRUE(shown) << shown.error().ToString();
    return shown ? *shown : proto::ShowLeaseResponse();
  }
  bool AwaitClosed(Nanos limit, const std::string& path = "/f") {
    const Nanos end = world.now() + limit;
    while (world.now() < end) {
      auto seen = GetFile(path);
      if (seen && !seen->status().open()) return true;
      world.RunFor(100ms);
    }
    return false;
  }
  // The file is closed with exactly these bytes, on every one of `servers`.
  void ExpectClosed(const std::string& bytes, std::vector<uint64_t> servers, const std::string& path = "/f") {
    auto seen = GetFile(path);
    ASSERT_TRUE(seen) << seen.error().ToString();
    EXPECT_FALSE(seen->status().open());
    EXPECT_EQ(seen->status().length(), bytes.size());
    EXPECT_EQ(seen->status().stored_bytes(), bytes.size());
    ASSERT_EQ(seen->chunks_size(), 1);
    const proto::ChunkLocation& location = seen->chunks(0);
    EXPECT_TRUE(location.sealed());
    EXPECT_EQ(location.minted(), location.version());
    EXPECT_EQ(location.length(), bytes.size());
    EXPECT_EQ(location.digest(), DigestOf(bytes));
    std::vector<uint64_t> counted;
    for (const auto& replica : location.replicas()) counted.push_back(replica.hop().server());
    EXPECT_THAT(counted, testing::UnorderedElementsAreArray(servers));
    for (uint64_t id : servers) {
      const FakeReplica& replica = disk_of(id).replicas.at(location.chunk());
      EXPECT_EQ(replica.state, proto::SEALED) << id;
      EXPECT_EQ(replica.version, location.version()) << id;
      EXPECT_TRUE(replica.bytes == bytes) << id << " has " << replica.bytes.size() << " bytes";
    }
  }
  std::vector<uint64_t> All() const { return {server(0), server(1), server(2)}; }
  std::vector<ProtocolEvent> EventsOf(Kind kind) const {
    std::vector<ProtocolEvent> out;
    std::ranges::copy_if(events, std::back_inserter(out), [&](const ProtocolEvent& e) { return e.kind == kind; });
    return out;
  }
  Result<proto::OpenResponse> OpenFor(uint64_t holder, const std::string& path = "/f",
                                      proto::SessionMode mode = proto::EXCLUSIVE, bool lock = false) {
    proto::OpenRequest r;
    r.mutable_mutation()->set_client(holder);
    r.mutable_mutation()->set_sequence(++sequence);
    r.mutable_mutation()->set_first_unacked(sequence);
    r.set_path(path);
    r.set_mode(mode);
    r.set_holder(holder);
    r.set_lock(lock);
    return Call<proto::OpenResponse>(proto::OPEN_FILE, r, 30s);
  }

  OpenFile file;
  proto::WriteGrant grant;
  uint64_t chunk = 0;
};

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

// ---- crashes --------------------------------------------------------------------------------------------

TEST_F(RecoveryTest, TheMasterLosesPowerAtEveryChangeOfItsDisk) {
  int deaths = 0;
  for (uint64_t at = 1;; ++at) {
    const std::string path = "/f" + std::to_string(at);
    Open("acknowledged", path);
    At(server(0)).bytes += "not";
    master_node.disk().faults.lose_power_at = at;
    auto recovery = Begin<proto::RecoverLeaseResponse>(proto::RECOVER_LEASE, RecoverRequest(true, path), 5s);
    world.RunUntil([&] { return recovery->has_value() || !master_node.alive(); }, 10s);
    const bool died = !master_node.alive();
    master_node.disk().faults.lose_power_at.reset();
    if (died) {
      ++deaths;
      RestartMaster(sim::Node::Death::kPower);
      ASSERT_TRUE(AwaitLive(3)) << at;
      // By itself, unless the fence was lost too: then the writer is none the wiser.
      if (!Show(path).lease().recovering() && Show(path).open()) {
        EXPECT_EQ(Show(path).lease().generation(), file.generation);
        ASSERT_TRUE(Recover(true, path)) << at;
      }
      ASSERT_TRUE(AwaitClosed(20s, path)) << at;
    }
    world.RunFor(5s);
    ExpectClosed("acknowledged", All(), path);
    if (HasFailure()) FAIL() << "at change " << at;
    if (!died) break;
  }
  EXPECT_GE(deaths, 2);
}

// The recovery itself is the holder, durably: a restarted master goes on with it and lets nobody in.
TEST_F(RecoveryTest, Hdfs1149TheMasterIsTheHolderAcrossItsRestart) {
  Open("one");
  std::vector<std::shared_ptr<bool>> releases;
  for (uint64_t id : All()) releases.push_back(Hold(id, proto::BEGIN_RECOVERY));
  ASSERT_TRUE(Recover(false));
  RestartMaster(sim::Node::Death::kPower);
  const proto::LeaseInfo lease = Show().lease();
  EXPECT_TRUE(lease.recovering());
  EXPECT_EQ(lease.stalled_holder(), kWriter);
  EXPECT_EQ(Grant(file, grant, {}, 3).error().code, Code::kStaleGeneration);
  for (auto& release : releases) *release = true;
  ASSERT_TRUE(AwaitLive(3));
  ASSERT_TRUE(AwaitClosed(20s));
  world.RunFor(5s);
  ExpectClosed("one", All());
}

// The closing batch fails: what is in memory is what was before.
TEST_F(RecoveryTest, Hdfs17861AFailedCommitLeavesTheFileInRecovery) {
  Open("one");
  std::vector<std::shared_ptr<bool>> releases;
  for (uint64_t id : All()) releases.push_back(Hold(id, proto::FINISH_RECOVERY));
  ASSERT_TRUE(Recover(false));
  ASSERT_TRUE(world.RunUntil([&] { return At(server(0)).state == proto::RECOVERING; }, 5s));
  master_node.disk().faults.fail_syncs = true;
  for (auto& release : releases) *release = true;
  world.RunFor(5s);
  EXPECT_EQ(At(server(0)).state, proto::SEALED);
  EXPECT_TRUE(EventsOf(Kind::kChunkSealed).empty());
  master_node.disk().faults.fail_syncs = false;
  RestartMaster(sim::Node::Death::kPower);
  ASSERT_TRUE(AwaitLive(3));
  ASSERT_TRUE(AwaitClosed(20s));
  world.RunFor(5s);
  ExpectClosed("one", All());
}

// ---- limits, locks, overwrites --------------------------------------------------------------------------

TEST_F(RecoveryTest, HardLimitRecoversByItself) {
  Open("one");
  world.RunFor(100s);
  EXPECT_TRUE(GetFile("/f")->status().open());
  ASSERT_TRUE(AwaitClosed(30s));
  ExpectClosed("one", All());
}

TEST_F(RecoveryTest, AStalledOverwriteIsAbandonedAndTheOldContentStays) {
  Open("old");
  ASSERT_TRUE(Recover());
  const uint64_t old_inode = file.inode;
  proto::CreateRequest r;
  Identify(r.mutable_mutation());
  r.set_path("/f");
  r.set_overwrite(true);
  r.set_replication(3);
  r.set_chunk_size(1 << 20);
  r.set_holder(kWriter);
  auto created = Call<proto::CreateResponse>(proto::CREATE, r);
  ASSERT_TRUE(created) << created.error().ToString();
  const OpenFile pending{created->status().inode(), created->generation()};
  auto added = AddChunk(pending);
  ASSERT_TRUE(added) << added.error().ToString();
  Write(*added, "new");
  EXPECT_EQ(Show().lease().replaces(), "/f");
  EXPECT_EQ(Show().lease().inode(), pending.inode);
  auto recovered = Recover();
  ASSERT_TRUE(recovered) << recovered.error().ToString();
  EXPECT_TRUE(recovered->closed());
  EXPECT_EQ(recovered->status().inode(), old_inode);
  EXPECT_FALSE(Show().open());
  ExpectClosed("old", All());
  auto late = CommitSeal(Seal(pending, *added));
  ASSERT_FALSE(late);
}

TEST_F(RecoveryTest, ALockEndsAtItsSoftLimitWithItsLockDelay) {
  Open("one");
  ASSERT_TRUE(Recover());
  auto locked = OpenFor(7, "/f", proto::EXCLUSIVE, true);
  ASSERT_TRUE(locked) << locked.error().ToString();
  const int64_t mtime = GetFile("/f")->status().mtime_ns();
  world.RunFor(40s);
  const proto::ShowLeaseResponse shown = Show();
  EXPECT_FALSE(shown.open());
  EXPECT_GT(shown.lock_delay_left_ms(), 0u);
  EXPECT_EQ(OpenFor(8, "/f", proto::EXCLUSIVE, true).error().code, Code::kLockDelayed);
  EXPECT_EQ(GetFile("/f")->status().mtime_ns(), mtime);
}

TEST_F(RecoveryTest, AnAppenderThatStoppedRenewingIsDroppedAlone) {
  Open("one");
  ASSERT_TRUE(Recover());
  auto first = OpenFor(7, "/f", proto::RECORD_APPEND);
  ASSERT_TRUE(first) << first.error().ToString();
  ASSERT_TRUE(OpenFor(8, "/f", proto::RECORD_APPEND));
  EXPECT_EQ(Show().lease().holders_size(), 2);
  for (int i = 0; i < 9; ++i) {
    proto::RenewRequest renew;
    renew.set_holder(8);
    auto* session = renew.add_sessions();
    session->set_inode(first->status().inode());
    session->set_generation(first->generation());
    ASSERT_TRUE(Call<proto::RenewResponse>(proto::RENEW, renew));
    world.RunFor(5s);
  }
  const proto::LeaseInfo lease = Show().lease();
  ASSERT_EQ(lease.holders_size(), 1);
  EXPECT_EQ(lease.holders(0).client(), 8u);
  EXPECT_EQ(lease.generation(), first->generation());
}

// ---- between two committed sets, and truncation ---------------------------------------------------------

// A grant that was to open a sealed chunk again has raised marks and died: recovery brings the chunk back.
TEST_F(RecoveryTest, AChunkBetweenTwoSetsIsSealedAgain) {
  Open("one");
  ASSERT_TRUE(Recover());
  world.RunFor(5s);
  auto opened = OpenFor(kWriter);
  ASSERT_TRUE(opened) << opened.error().ToString();
  file.generation = opened->generation();
  Rule(server(1), proto::ADVANCE_VERSION, Act::kRefuse);
  Rule(server(2), proto::ADVANCE_VERSION, Act::kRefuse);
  proto::GrantRequest request = GrantRequestFor(file, grant);
  request.set_reopen(true);
  ASSERT_FALSE(Call<proto::WriteGrant>(proto::GRANT, request, 5s));
  EXPECT_GT(Chunk(chunk).minted(), Chunk(chunk).version());
  EXPECT_EQ(Show().lease().open_chunk(), chunk);
  ASSERT_TRUE(Recover());
  ExpectClosed("one", All());
}

TEST_F(RecoveryTest, TruncationCutsTheBoundaryChunkAndDropsThoseBeyond) {
  Open(std::string(1 << 20, 'a'));
  ASSERT_TRUE(CommitSeal(Seal(file, grant)));
  auto second = AddChunk(file, 1);
  ASSERT_TRUE(second) << second.error().ToString();
  Write(*second, "beyond");
  proto::CommitSealRequest seal = Seal(file, *second);
  seal.set_close(true);
  ASSERT_TRUE(CommitSeal(seal));
  world.RunFor(5s);
  proto::TruncateRequest r;
  Identify(r.mutable_mutation());
  r.set_path("/f");
  r.set_length(100'000);
  r.set_holder(kWriter);
  auto release = Hold(server(0), proto::FINISH_RECOVERY);
  auto release_1 = Hold(server(1), proto::FINISH_RECOVERY);
  auto release_2 = Hold(server(2), proto::FINISH_RECOVERY);
  auto cutting = Begin<proto::TruncateResponse>(proto::TRUNCATE, r);
  ASSERT_TRUE(world.RunUntil([&] { return std::ranges::count(disk_of(server(0)).orders, proto::FINISH_RECOVERY) > 0 ||
                                          std::ranges::count(disk_of(server(1)).orders, proto::FINISH_RECOVERY) > 0 ||
                                          std::ranges::count(disk_of(server(2)).orders, proto::FINISH_RECOVERY) > 0; }, 5s));
  // The intent is told before any byte goes.
  ASSERT_EQ(EventsOf(Kind::kChunkTruncated).size(), 1u);
  EXPECT_EQ(EventsOf(Kind::kChunkTruncated)[0].length, 100'000u);
  EXPECT_EQ(At(server(0)).bytes.size(), size_t{1} << 20);
  *release = *release_1 = *release_2 = true;
  const proto::TruncateResponse cut = Await(cutting);
  EXPECT_EQ(cut.status().length(), 100'000u);
  world.RunFor(5s);
  ExpectClosed(std::string(100'000, 'a'), All());
  EXPECT_EQ(GetFile("/f")->status().chunk_count(), 1u);
  EXPECT_EQ(Chunk(second->token().chunk()).inode(), 0u);
}

TEST_F(RecoveryTest, TruncationSurvivesThePowerLossOfTheMasterAtEveryChange) {
  for (uint64_t at = 1;; ++at) {
    const std::string path = "/t" + std::to_string(at);
    Open("0123456789", path);
    proto::CommitSealRequest seal = Seal(file, grant);
    seal.set_close(true);
    ASSERT_TRUE(CommitSeal(seal));
    world.RunFor(4s);
    proto::TruncateRequest r;
    Identify(r.mutable_mutation());
    r.set_path(path);
    r.set_length(4);
    r.set_holder(kWriter);
    master_node.disk().faults.lose_power_at = at;
    auto cutting = Begin<proto::TruncateResponse>(proto::TRUNCATE, r, 5s);
    world.RunUntil([&] { return cutting->has_value() || !master_node.alive(); }, 10s);
    const bool died = !master_node.alive();
    master_node.disk().faults.lose_power_at.reset();
    if (died) {
      RestartMaster(sim::Node::Death::kPower);
      ASSERT_TRUE(AwaitLive(3));
      ASSERT_TRUE(AwaitClosed(20s, path)) << at;
      // The same request again: one effect, whether the first one had any.
      auto again = Call<proto::TruncateResponse>(proto::TRUNCATE, r);
      ASSERT_TRUE(again) << again.error().ToString();
      EXPECT_EQ(again->status().length(), 4u);
    }
    world.RunFor(5s);
    ExpectClosed("0123", All(), path);
    if (HasFailure()) FAIL() << "at change " << at;
    if (!died) break;
  }
}

// ---- showing --------------------------------------------------------------------------------------------

TEST_F(RecoveryTest, LeasesAreListedInPagesAndByPath) {
  proto::MkdirRequest mkdir;
  Identify(mkdir.mutable_mutation());
  mkdir.set_path("/d");
  mkdir.set_mode(0755);
  ASSERT_TRUE(Call<proto::MkdirResponse>(proto::MKDIR, mkdir));
  for (int i = 0; i < 3; ++i) {
    Create("/f" + std::to_string(i));
    Create("/d/f" + std::to_string(i));
  }
  proto::ListLeasesRequest r;
  r.set_limit(4);
  auto page = Call<proto::ListLeasesResponse>(proto::LIST_LEASES, r);
  ASSERT_TRUE(page) << page.error().ToString();
  ASSERT_EQ(page->leases_size(), 4);
  EXPECT_TRUE(page->more());
  const proto::LeaseInfo& lease = page->leases(0);
  EXPECT_EQ(lease.path(), "/f0");
  EXPECT_EQ(lease.holders(0).client(), kWriter);
  EXPECT_EQ(lease.soft_limit_ms(), 30'000u);
  EXPECT_LE(lease.soft_left_ms(), 30'000);
  EXPECT_FALSE(lease.recovering());
  r.set_start_after(page->leases(3).inode());
  page = Call<proto::ListLeasesResponse>(proto::LIST_LEASES, r);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->leases_size(), 2);
  EXPECT_FALSE(page->more());
  r.clear_start_after();
  r.set_under("/d");
  page = Call<proto::ListLeasesResponse>(proto::LIST_LEASES, r);
  ASSERT_TRUE(page);
  ASSERT_EQ(page->leases_size(), 3);
  for (const auto& each : page->leases()) EXPECT_THAT(each.path(), testing::StartsWith("/d/"));
}

}  // namespace
}  // namespace picket::test
