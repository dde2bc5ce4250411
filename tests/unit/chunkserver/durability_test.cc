// A replica through crashes at every single step: marks never go back, what was promised is there, what
// is there verifies.
#include "tests/unit/chunkserver/disk_rig.h"

namespace picket::cs {
namespace {

using namespace disk_test;

// What the script was promised, and what an interrupted step may have done.
struct Witness {
  bool created = false;
  bool sealed = false;
  Version version, next_version;
  uint64_t applied = 0;  // survives a crash of the process
  uint64_t durable = 0;  // survives a power cut
  std::string content;   // as far as written
  std::string other;     // what the interrupted step would have made of it
  bool finished = false;
};

Task<Status> Append(Rig* rig, Witness* w, uint64_t seed, size_t size) {
  auto file = rig->replica()->file;
  const std::string bytes = RandomBytes(seed, size);
  w->other = w->content + bytes;
  Buffer buffer = Buffer::Copy(bytes);
  PICKET_CO_TRY(co_await file->Append(buffer, PieceCrcs(file->length(), bytes), true));
  w->content = w->other;
  w->applied = w->content.size();
  co_return Status();
}

Task<Status> Sync(Rig* rig, Witness* w) {
  auto file = rig->replica()->file;
  PICKET_CO_TRY(co_await file->SyncUpTo(file->length(), file->slot().lineage));
  w->durable = w->applied;
  co_return Status();
}

Task<Status> Raise(Rig* rig, Witness* w) {
  auto file = rig->replica()->file;
  w->next_version = Version(w->version.value + 1);
  PICKET_CO_TRY(co_await file->Raise(At(rig, w->next_version)));
  w->version = w->next_version;
  w->durable = w->applied;
  co_return Status();
}

// As the master's reconciliation does: equal content is kept, the rest is given up and filled anew.
Task<Status> Reconcile(Rig* rig, Witness* w, std::string target) {
  auto file = rig->replica()->file;
  const std::vector<uint32_t> crcs = BlocksOf(target);
  w->next_version = Version(w->version.value + 1);
  w->other = target;
  auto equal = co_await file->EqualPrefix(target.size(), crcs);
  if (!equal) co_return Fail(equal.error());
  w->applied = w->durable = std::min<uint64_t>(w->durable, *equal);
  if (*equal == target.size()) {
    const uint32_t tail = target.size() % kBlockSize == 0 ? 0 : crcs.back();
    PICKET_CO_TRY(co_await file->RaiseAndCut(At(rig, w->next_version), target.size(), tail));
  } else {
    if (*equal < file->length()) PICKET_CO_TRY(co_await file->Cut(*equal));
    const std::string rest = target.substr(*equal);
    Buffer buffer = Buffer::Copy(rest);
    PICKET_CO_TRY(co_await file->Append(buffer, PieceCrcs(*equal, rest), true));
    PICKET_CO_TRY(co_await file->Raise(At(rig, w->next_version)));
  }
  w->version = w->next_version;
  w->content = target;
  w->applied = w->durable = target.size();
  co_return Status();
}

Task<Status> Script(Rig* rig, Witness* w) {
  ReplicaPtr replica = rig->store->FindOrAdd(kChunk);
  w->next_version = Version(3, 1);
  PICKET_CO_TRY(co_await rig->store->Create(replica, rig->NewSlot()));
  w->created = true;
  w->version = w->next_version;
  PICKET_CO_TRY(co_await Append(rig, w, 1, 100));
  PICKET_CO_TRY(co_await Append(rig, w, 2, 65436));  // to the block's end
  PICKET_CO_TRY(co_await Append(rig, w, 3, 70000));
  PICKET_CO_TRY(co_await Sync(rig, w));
  PICKET_CO_TRY(co_await Append(rig, w, 4, 5));
  PICKET_CO_TRY(co_await Sync(rig, w));
  PICKET_CO_TRY(co_await Append(rig, w, 5, 200000));
  PICKET_CO_TRY(co_await Raise(rig, w));
  PICKET_CO_TRY(co_await Append(rig, w, 6, 3000));
  PICKET_CO_TRY(co_await Reconcile(rig, w, w->content.substr(0, 140001)));  // cut inside a block
  PICKET_CO_TRY(co_await Append(rig, w, 7, 131072));
  PICKET_CO_TRY(co_await Sync(rig, w));
  PICKET_CO_TRY(co_await Reconcile(rig, w, w->content.substr(0, 80000) + RandomBytes(8, 90000)));  // other bytes
  PICKET_CO_TRY(co_await Append(rig, w, 9, 10000));
  w->other = w->content;
  PICKET_CO_TRY(co_await rig->replica()->file->Seal(kSession, true));
  w->sealed = true;
  w->durable = w->applied;
  w->finished = true;
  co_return Status();
}

void Check(Rig* rig, const Witness& w, bool power) {
  ReplicaPtr replica = rig->replica();
  if (!w.created && !replica) return;
  ASSERT_TRUE(replica);
  const Marks marks = replica->marks();
  ASSERT_NE(marks.state, ReplicaState::kCorrupt);
  EXPECT_GE(marks.version, w.version) << "the mark went back";
  EXPECT_LE(marks.version, w.next_version);
  if (w.sealed) {
    EXPECT_EQ(marks.state, ReplicaState::kSealed);
  }
  EXPECT_GE(marks.length, power ? w.durable : w.applied);
  const std::string content = rig->Content();
  ASSERT_EQ(content.size(), marks.length);
  EXPECT_TRUE(content == w.content.substr(0, content.size()) || content == w.other.substr(0, content.size()))
      << "at length " << content.size();
  auto verified = rig->Run(replica->file->VerifyBlocks(0, BlocksIn(marks.length)));
  EXPECT_TRUE(verified && *verified && **verified);
}

// An answer that is given from the slot as it is found holds from then on.
void AnswerAgain(Rig* rig, const Witness& w) {
  if (!rig->replica()) return;
  const Marks answered = rig->replica()->marks();
  ASSERT_TRUE(*rig->Run(rig->replica()->file->Settle()));
  rig->Down(Node::Death::kPower);
  rig->Boot();
  ASSERT_TRUE(rig->replica());
  EXPECT_EQ(rig->replica()->marks().version, answered.version) << "the mark went back";
  EXPECT_EQ(rig->replica()->marks().state, answered.state);
  Check(rig, w, true);
}

// The survivor takes part in a grant, loses power, and still is what it promised to be.
void Continue(Rig* rig) {
  if (!rig->replica() || rig->replica()->marks().state != ReplicaState::kOpen) return;
  auto file = rig->replica()->file;
  const uint64_t length = file->length();
  const std::string content = rig->Content();
  ASSERT_TRUE(*rig->Run(file->Raise(At(rig, Version(9, 1)))));
  rig->Down(Node::Death::kPower);
  rig->Boot();
  ASSERT_TRUE(rig->replica());
  EXPECT_EQ(rig->replica()->marks().version, Version(9, 1));
  EXPECT_EQ(rig->replica()->marks().length, length);
  EXPECT_TRUE(rig->Content() == content);
}

class DurabilityTest : public testing::TestWithParam<uint64_t> {};

TEST_P(DurabilityTest, PowerIsLostAtEveryChange) {
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE("power lost at change " + std::to_string(at));
    Rig rig(GetParam());
    Witness w;
    rig.node.disk().faults.lose_power_at = at;
    auto ended = rig.Run(Script(&rig, &w));
    const bool finished = ended && *ended;  // else it died, or saw its disk go
    rig.Down(Node::Death::kPower);
    rig.Boot();
    Check(&rig, w, true);
    Continue(&rig);
    if (finished || testing::Test::HasFailure()) break;
    ASSERT_LT(at, 1000u);
  }
}

TEST_P(DurabilityTest, TheProcessIsKilledAtEveryStep) {
  for (int steps = 1;; steps += 3) {
    SCOPED_TRACE("killed after step " + std::to_string(steps));
    Rig rig(GetParam());
    Witness w;
    auto ended = std::make_shared<std::optional<Status>>();
    struct Runner {
      static Task<> Go(Rig* r, Witness* witness, std::shared_ptr<std::optional<Status>> end) {
        Status s = co_await Script(r, witness);
        *end = std::move(s);
      }
    };
    rig.node.Spawn(Runner::Go(&rig, &w, ended));
    for (int i = 0; i < steps && !ended->has_value(); ++i) rig.world.Step();
    if (*ended) {
      ASSERT_TRUE(**ended) << (*ended)->error().ToString();
    }
    rig.Down(Node::Death::kProcess);
    rig.Boot();
    Check(&rig, w, false);
    if (steps % 2 == 0) AnswerAgain(&rig, w);
    Continue(&rig);
    if (w.finished || testing::Test::HasFailure()) break;
    ASSERT_LT(steps, 20000);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DurabilityTest, testing::Range<uint64_t>(1, 5));

// ---- single cases ----

class ReplicaFileTest : public testing::Test {
 protected:
  ReplicaFileTest() : rig_(11) {
    EXPECT_TRUE(*rig_.Run(rig_.store->Create(rig_.store->FindOrAdd(kChunk), rig_.NewSlot())));
    w_.version = w_.next_version = Version(3, 1);
  }
  std::shared_ptr<ReplicaFile> file() { return rig_.replica()->file; }
  Status Add(uint64_t seed, size_t size) { return *rig_.Run(Append(&rig_, &w_, seed, size)); }
  static std::string DataPath() { return "d/replicas/" + ReplicaFile::DataName(kChunk); }
  static std::string MetaPath() { return "d/replicas/" + ReplicaFile::MetaName(kChunk); }
  Rig rig_;
  Witness w_;
};

TEST_F(ReplicaFileTest, AFailedSyncGivesTheReplicaUp) {
  ASSERT_TRUE(Add(1, 1000));
  rig_.node.disk().faults.fail_syncs = true;
  auto failed = rig_.Run(file()->SyncUpTo(1000, file()->slot().lineage));
  EXPECT_EQ(failed->error().code, Code::kIoError);
  rig_.node.disk().faults.fail_syncs = false;
  // Never retried: the bytes may be gone although reads show them.
  EXPECT_FALSE(*rig_.Run(file()->SyncUpTo(1000, file()->slot().lineage)));
  EXPECT_FALSE(Add(2, 10));
  EXPECT_FALSE(*rig_.Run(file()->Raise(At(&rig_, Version(3, 2)))));
  EXPECT_EQ(rig_.replica()->marks().state, ReplicaState::kCorrupt);
}

TEST_F(ReplicaFileTest, AFullDiskLeavesAValidReplica) {
  ASSERT_TRUE(Add(1, 70000));
  rig_.node.disk().faults.full = true;
  (void)Add(2, 300000);
  const std::string kept = w_.content;
  rig_.node.disk().faults.full = false;
  EXPECT_EQ(file()->length(), kept.size());
  EXPECT_TRUE(rig_.Content() == kept);
  w_.content = kept;
  ASSERT_TRUE(Add(3, 10));
  rig_.Down(Node::Death::kProcess);
  rig_.Boot();
  EXPECT_TRUE(rig_.Content() == w_.content);
}

TEST_F(ReplicaFileTest, AFullDiskCreatesNothing) {
  rig_.node.disk().faults.full = true;
  ReplicaPtr other = rig_.store->FindOrAdd(ChunkId(0x99));
  auto made = rig_.Run(rig_.store->Create(other, rig_.NewSlot()));
  EXPECT_EQ(made->error().code, Code::kNoSpace);
  EXPECT_FALSE(rig_.node.disk().Exists("d/replicas/" + ReplicaFile::DataName(ChunkId(0x99))));
  EXPECT_FALSE(rig_.node.disk().Exists("d/replicas/" + ReplicaFile::MetaName(ChunkId(0x99))));
}

TEST_F(ReplicaFileTest, RotBelowTheDurableLengthIsCorruptNotShort) {
  ASSERT_TRUE(Add(1, 70000));
  ASSERT_TRUE(*rig_.Run(Sync(&rig_, &w_)));
  rig_.Down(Node::Death::kProcess);
  ASSERT_TRUE(rig_.node.disk().FlipBit(DataPath(), 66000, 3));
  rig_.Boot();
  EXPECT_EQ(rig_.replica()->marks().state, ReplicaState::kCorrupt);
  EXPECT_EQ(rig_.replica()->marks().version, Version(3, 1));
  rig_.Down(Node::Death::kProcess);
  rig_.Boot();
  EXPECT_EQ(rig_.replica()->marks().state, ReplicaState::kCorrupt);
}

TEST_F(ReplicaFileTest, AShortOrMissingDataFileIsCorrupt) {
  ASSERT_TRUE(Add(1, 70000));
  ASSERT_TRUE(*rig_.Run(Sync(&rig_, &w_)));
  rig_.Down(Node::Death::kProcess);
  rig_.node.Start();
  ASSERT_TRUE(rig_.node.disk().Truncate(*rig_.node.disk().Find(DataPath()), 69999));
  rig_.Boot();
  EXPECT_EQ(rig_.replica()->marks().state, ReplicaState::kCorrupt);
}

TEST_F(ReplicaFileTest, RotBeyondTheDurableLengthEndsTheVerifiedPrefix) {
  ASSERT_TRUE(Add(1, 70000));
  ASSERT_TRUE(*rig_.Run(Sync(&rig_, &w_)));
  ASSERT_TRUE(Add(2, 200000));
  rig_.Down(Node::Death::kProcess);
  ASSERT_TRUE(rig_.node.disk().FlipBit(DataPath(), 140000, 3));
  rig_.Boot();
  EXPECT_EQ(rig_.replica()->marks().state, ReplicaState::kOpen);
  EXPECT_EQ(rig_.replica()->marks().length, 2 * kBlockSize);
  EXPECT_TRUE(rig_.Content() == w_.content.substr(0, 2 * kBlockSize));
}

TEST_F(ReplicaFileTest, VerificationFindsARottenBlock) {
  ASSERT_TRUE(Add(1, 200000));
  EXPECT_TRUE(**rig_.Run(file()->VerifyBlocks(0, 4)));
  ASSERT_TRUE(rig_.node.disk().FlipBit(DataPath(), 140000, 3));
  EXPECT_TRUE(**rig_.Run(file()->VerifyBlocks(0, 2)));
  EXPECT_FALSE(**rig_.Run(file()->VerifyBlocks(2, 1)));
}

TEST_F(ReplicaFileTest, ASealWithoutASyncSurvivesTheProcessAndIsJudgedAfterAPowerCut) {
  ASSERT_TRUE(Add(1, 200000));
  ASSERT_TRUE(*rig_.Run(file()->Seal(kSession, false)));
  EXPECT_TRUE(file()->dirty());
  rig_.Down(Node::Death::kProcess);
  rig_.Boot();
  EXPECT_EQ(rig_.replica()->marks().state, ReplicaState::kSealed);
  EXPECT_FALSE(file()->dirty());  // verified, and durable now
  rig_.Down(Node::Death::kPower);
  rig_.Boot();
  EXPECT_EQ(rig_.replica()->marks().state, ReplicaState::kSealed);
  EXPECT_TRUE(rig_.Content() == w_.content);
}

TEST(UnsyncedSeal, APowerCutNeverLeavesASealedReplicaThatDoesNotVerify) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rig rig(seed);
    Witness w;
    ASSERT_TRUE(*rig.Run(rig.store->Create(rig.store->FindOrAdd(kChunk), rig.NewSlot())));
    ASSERT_TRUE(*rig.Run(Append(&rig, &w, seed, 200000)));
    ASSERT_TRUE(*rig.Run(rig.replica()->file->Seal(kSession, false)));
    rig.Down(Node::Death::kPower);
    rig.Boot();
    if (rig.replica()->marks().state == ReplicaState::kSealed) EXPECT_EQ(rig.Content(), w.content) << seed;
  }
}

TEST_F(ReplicaFileTest, ARottenTableOfASealedReplicaIsSeen) {
  ASSERT_TRUE(Add(1, 200000));
  ASSERT_TRUE(*rig_.Run(file()->Seal(kSession, true)));
  rig_.Down(Node::Death::kProcess);
  ASSERT_TRUE(rig_.node.disk().FlipBit(MetaPath(), kTableOffset + 5, 3));
  rig_.Boot();
  EXPECT_EQ(rig_.replica()->marks().state, ReplicaState::kSealed);  // slots only are read at start
  EXPECT_EQ(rig_.Run(rig_.store->Use(rig_.replica()))->error().code, Code::kCorrupt);
  EXPECT_EQ(rig_.replica()->marks().state, ReplicaState::kCorrupt);
}

TEST_F(ReplicaFileTest, SyncsOfManyWaitersAreOne) {
  ASSERT_TRUE(Add(1, 100));
  std::vector<Task<Status>> syncs;
  const uint64_t before = rig_.node.disk().operations();
  for (int i = 0; i < 20; ++i) syncs.push_back(file()->SyncUpTo(100, file()->slot().lineage));
  const auto done = rig_.Run(WhenAll(&rig_.node, std::move(syncs)));
  for (const Status& s : *done) EXPECT_TRUE(s);
  EXPECT_LE(rig_.node.disk().operations() - before, 5u);
}

TEST_F(ReplicaFileTest, ASyncOfAPastLineageIsSuperseded) {
  ASSERT_TRUE(Add(1, 100));
  const uint64_t lineage = file()->slot().lineage;
  ASSERT_TRUE(*rig_.Run(file()->Raise(At(&rig_, Version(3, 2)))));
  EXPECT_EQ(rig_.Run(file()->SyncUpTo(100, lineage))->error().code, Code::kSuperseded);
}

TEST_F(ReplicaFileTest, SlicesHoldAReconciliationUp) {
  ASSERT_TRUE(Add(1, 100));
  auto slice = std::make_unique<FileSlice>(file()->Slice(0, 100));
  EXPECT_FALSE(*rig_.Run(file()->SlicesSent(rig_.node.Now() + 100ms)));
  rig_.node.At(rig_.node.Now() + 50ms, [&slice] { slice.reset(); });
  EXPECT_TRUE(*rig_.Run(file()->SlicesSent(rig_.node.Now() + 1s)));
}

}  // namespace
}  // namespace picket::cs
