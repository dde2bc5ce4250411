// Bytes that are replaced: through crashes at every step each block is old or new, and what was promised is
// there (F10, D13).
#include "tests/unit/chunkserver/disk_rig.h"

namespace picket::cs {
namespace {

using namespace disk_test;

// What was asked of the replica, as whole contents: [0] is durable, the last but one or the last is there.
struct Story {
  bool created = false;
  std::vector<std::string> contents{""};
  bool pending = false;         // the last of `contents` was begun and not yet returned from
  bool overwritten = false;     // since the last seal, as promised to survive a crash of the process
  bool overwritten_durably = false;
  bool sealed = false;
  bool finished = false;
  Version version{3, 1};

  const std::string& now() const { return contents[contents.size() - (pending ? 2 : 1)]; }
};

Task<Status> Append(Rig* rig, Story* s, uint64_t seed, size_t size) {
  const std::string bytes = RandomBytes(seed, size);
  s->contents.push_back(s->now() + bytes);
  s->pending = true;
  auto file = rig->replica()->file;
  Buffer buffer = Buffer::Copy(bytes);
  PICKET_CO_TRY(co_await file->Append(buffer, PieceCrcs(file->length(), bytes), true));
  s->pending = false;
  co_return Status();
}

Task<Status> Overwrite(Rig* rig, Story* s, uint64_t seed, uint64_t offset, size_t size) {
  const std::string bytes = RandomBytes(seed, size);
  std::string after = s->now();
  after.replace(offset, size, bytes);
  s->contents.push_back(std::move(after));
  s->pending = true;
  auto file = rig->replica()->file;
  Buffer buffer = Buffer::Copy(bytes);
  PICKET_CO_TRY(co_await file->Overwrite(offset, buffer, PieceCrcs(offset, bytes)));
  s->pending = false;
  s->overwritten = true;
  co_return Status();
}

// Everything so far is durable from here on.
void Durable(Story* s) {
  s->contents = {s->contents.back()};
  s->overwritten_durably = s->overwritten;
}

Task<Status> Sync(Rig* rig, Story* s) {
  auto file = rig->replica()->file;
  PICKET_CO_TRY(co_await file->SyncUpTo(file->length(), file->slot().lineage));
  Durable(s);
  co_return Status();
}

Task<Status> Raise(Rig* rig, Story* s) {
  auto file = rig->replica()->file;
  s->version = Version(s->version.value + 1);
  PICKET_CO_TRY(co_await file->Raise(At(rig, s->version)));
  Durable(s);
  co_return Status();
}

Task<Status> Cut(Rig* rig, Story* s, uint64_t length) {
  auto file = rig->replica()->file;
  const std::string after = s->now().substr(0, length);
  s->version = Version(s->version.value + 1);
  s->contents.push_back(after);
  s->pending = true;
  PICKET_CO_TRY(co_await file->RaiseAndCut(At(rig, s->version), length,
                                           length % kBlockSize == 0 ? 0 : BlocksOf(after).back()));
  s->pending = false;
  Durable(s);
  co_return Status();
}

Task<Status> Seal(Rig* rig, Story* s, bool sync) {
  PICKET_CO_TRY(co_await rig->replica()->file->Seal(kSession, sync));
  Durable(s);
  s->sealed = true;
  s->overwritten = s->overwritten_durably = false;
  co_return Status();
}

Task<Status> Script(Rig* rig, Story* s) {
  PICKET_CO_TRY(co_await rig->store->Create(rig->store->FindOrAdd(kChunk), rig->NewSlot()));
  s->created = true;
  PICKET_CO_TRY(co_await Append(rig, s, 1, 200000));
  PICKET_CO_TRY(co_await Overwrite(rig, s, 2, 10, 100));             // never synced, within a block
  PICKET_CO_TRY(co_await Sync(rig, s));
  PICKET_CO_TRY(co_await Overwrite(rig, s, 3, 60000, 140000));       // up to the end: the partial tail
  PICKET_CO_TRY(co_await Append(rig, s, 4, 3000));                   // goes on in the overwritten tail
  PICKET_CO_TRY(co_await Overwrite(rig, s, 5, 199990, 20));          // across the old end
  PICKET_CO_TRY(co_await Append(rig, s, 6, 70000));                  // makes the tail whole
  PICKET_CO_TRY(co_await Overwrite(rig, s, 7, 131072, 65536));       // exactly a block
  PICKET_CO_TRY(co_await Sync(rig, s));
  PICKET_CO_TRY(co_await Overwrite(rig, s, 8, 131080, 5));
  PICKET_CO_TRY(co_await Overwrite(rig, s, 9, 131070, 9));           // the same block again
  PICKET_CO_TRY(co_await Raise(rig, s));
  PICKET_CO_TRY(co_await Overwrite(rig, s, 10, 0, 150000));
  PICKET_CO_TRY(co_await Cut(rig, s, 140001));                       // inside an overwritten block
  PICKET_CO_TRY(co_await Overwrite(rig, s, 11, 139000, 1001));
  PICKET_CO_TRY(co_await Append(rig, s, 12, 100000));
  PICKET_CO_TRY(co_await Seal(rig, s, true));
  // Opened again.
  s->sealed = false;
  PICKET_CO_TRY(co_await Raise(rig, s));
  PICKET_CO_TRY(co_await Overwrite(rig, s, 13, 65530, 12));
  PICKET_CO_TRY(co_await Overwrite(rig, s, 14, 239000, 1001));
  PICKET_CO_TRY(co_await Seal(rig, s, false));
  s->finished = true;
  co_return Status();
}

void Check(Rig* rig, const Story& s, bool power) {
  if (!s.created && !rig->replica()) return;
  ASSERT_TRUE(rig->replica());
  auto file = rig->replica()->file;
  ASSERT_NE(file->slot().state, ReplicaState::kCorrupt);
  const std::string content = rig->Content();
  ASSERT_EQ(content.size(), file->length());
  const size_t first = power ? 0 : s.contents.size() - (s.pending ? 2 : 1);
  size_t least = SIZE_MAX;
  for (size_t i = first; i < s.contents.size(); ++i) least = std::min(least, s.contents[i].size());
  EXPECT_GE(content.size(), least);
  for (size_t at = 0; at < content.size(); at += kBlockSize) {
    const std::string_view block = std::string_view(content).substr(at, kBlockSize);
    bool known = false;
    for (size_t i = first; i < s.contents.size() && !known; ++i) {
      const std::string& whole = s.contents[i];
      known = whole.size() >= at + block.size() && std::string_view(whole).substr(at, block.size()) == block;
    }
    EXPECT_TRUE(known) << "the block at " << at << " is neither old nor new";
  }
  auto verified = rig->Run(file->VerifyBlocks(0, BlocksIn(content.size())));
  EXPECT_TRUE(verified && *verified && **verified);
  // A seal under way may have cleared it.
  if ((power ? s.overwritten_durably : s.overwritten) && file->slot().state != ReplicaState::kSealed) {
    EXPECT_TRUE(file->overwritten());
  }
}

// The survivor takes part in a grant, loses power, and still is what it promised to be.
void Continue(Rig* rig) {
  if (!rig->replica()) return;
  auto file = rig->replica()->file;
  const std::string content = rig->Content();
  if (file->slot().state == ReplicaState::kOpen) {
    ASSERT_TRUE(*rig->Run(file->Raise(At(rig, Version(9, 1)))));
  } else {
    ASSERT_TRUE(*rig->Run(file->Settle()));
  }
  rig->Down(Node::Death::kPower);
  rig->Boot();
  ASSERT_TRUE(rig->replica());
  ASSERT_NE(rig->replica()->marks().state, ReplicaState::kCorrupt);
  EXPECT_TRUE(rig->Content() == content);
}

class OverwriteDurabilityTest : public testing::TestWithParam<uint64_t> {};

TEST_P(OverwriteDurabilityTest, PowerIsLostAtEveryChange) {
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE("power lost at change " + std::to_string(at));
    Rig rig(GetParam());
    Story s;
    rig.node.disk().faults.lose_power_at = at;
    auto ended = rig.Run(Script(&rig, &s));
    const bool finished = ended && *ended;
    rig.Down(Node::Death::kPower);
    rig.Boot();
    Check(&rig, s, true);
    Continue(&rig);
    if (finished || HasFailure()) break;
    ASSERT_LT(at, 2000u);
  }
}

TEST_P(OverwriteDurabilityTest, TheProcessIsKilledAtEveryStep) {
  for (int steps = 1;; steps += 3) {
    SCOPED_TRACE("killed after step " + std::to_string(steps));
    Rig rig(GetParam());
    Story s;
    struct Runner {
      static Task<> Go(Rig* r, Story* story) {
        Status done = co_await Script(r, story);
        EXPECT_TRUE(done) << done.error().ToString();
      }
    };
    rig.node.Spawn(Runner::Go(&rig, &s));
    for (int i = 0; i < steps && !s.finished; ++i) rig.world.Step();
    rig.Down(Node::Death::kProcess);
    rig.Boot();
    Check(&rig, s, false);
    Continue(&rig);
    if (s.finished || HasFailure()) break;
    ASSERT_LT(steps, 40000);
  }
}

// A start that itself loses power while it puts blocks into place finds them again.
TEST_P(OverwriteDurabilityTest, PowerIsLostAtEveryChangeOfARecovery) {
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE("power lost at change " + std::to_string(at) + " of the start");
    Rig rig(GetParam());
    Story s;
    struct Prepare {
      static Task<Status> Go(Rig* r, Story* story) {
        PICKET_CO_TRY(co_await r->store->Create(r->store->FindOrAdd(kChunk), r->NewSlot()));
        story->created = true;
        PICKET_CO_TRY(co_await Append(r, story, 1, 200000));
        PICKET_CO_TRY(co_await Sync(r, story));
        PICKET_CO_TRY(co_await Overwrite(r, story, 2, 60000, 140000));
        co_return co_await Append(r, story, 3, 3000);
      }
    };
    ASSERT_TRUE(*rig.Run(Prepare::Go(&rig, &s)));
    rig.Down(Node::Death::kProcess);
    rig.node.Start();
    rig.node.disk().faults.lose_power_at = at;
    rig.state = std::make_unique<ServerState>(rig.node);
    rig.store = std::make_unique<ReplicaStore>(rig.node, rig.StoreOptions());
    auto up = rig.Run(rig.OpenAll(rig.state.get(), rig.store.get()));
    const bool finished = up && *up && rig.node.alive();
    rig.Down(Node::Death::kPower);
    rig.Boot();
    Check(&rig, s, true);
    Continue(&rig);
    if (finished || HasFailure()) break;
    ASSERT_LT(at, 200u);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, OverwriteDurabilityTest, testing::Range<uint64_t>(1, 5));

// ---- single cases ----

class OverwriteTest : public testing::Test {
 protected:
  OverwriteTest() : rig_(11) {
    EXPECT_TRUE(*rig_.Run(rig_.store->Create(rig_.store->FindOrAdd(kChunk), rig_.NewSlot())));
  }
  std::shared_ptr<ReplicaFile> file() { return rig_.replica()->file; }
  Status Add(uint64_t seed, size_t size) { return *rig_.Run(Append(&rig_, &s_, seed, size)); }
  Status Put(uint64_t seed, uint64_t offset, size_t size) { return *rig_.Run(Overwrite(&rig_, &s_, seed, offset, size)); }
  static std::string DataPath() { return "d/replicas/" + ReplicaFile::DataName(kChunk); }
  static std::string RedoPath() { return "d/replicas/" + ReplicaFile::RedoName(kChunk); }
  bool RedoExists() { return rig_.node.disk().Exists(RedoPath()); }
  Rig rig_;
  Story s_;
};

TEST_F(OverwriteTest, IsReadAtOnceAndMovedIntoPlaceByASync) {
  ASSERT_TRUE(Add(1, 200000));
  EXPECT_FALSE(file()->overwritten());
  EXPECT_FALSE(RedoExists()) << "nothing is paid for what is not used";
  ASSERT_TRUE(Put(2, 65000, 70000));
  EXPECT_TRUE(file()->overwritten());
  EXPECT_TRUE(file()->dirty());
  EXPECT_TRUE(rig_.Content() == s_.now());
  EXPECT_EQ(file()->BlockCrcs(), BlocksOf(s_.now()));
  EXPECT_NE(rig_.node.disk().Contents(DataPath())->substr(0, 200000), s_.now());
  ASSERT_TRUE(*rig_.Run(Sync(&rig_, &s_)));
  EXPECT_EQ(rig_.node.disk().Contents(DataPath())->substr(0, 200000), s_.now());
  EXPECT_FALSE(file()->dirty());
  EXPECT_TRUE(file()->overwritten()) << "until it is sealed";
  EXPECT_EQ(rig_.node.disk().Contents(RedoPath())->size(), 0u);
}

TEST_F(OverwriteTest, ASealLeavesNoRedoFileAndClearsTheFlag) {
  ASSERT_TRUE(Add(1, 200000));
  ASSERT_TRUE(Put(2, 1, 2));
  ASSERT_TRUE(*rig_.Run(file()->Seal(kSession, false)));
  EXPECT_FALSE(file()->overwritten());
  EXPECT_FALSE(RedoExists());
  EXPECT_EQ(*rig_.node.disk().Contents(DataPath()), s_.now()) << "sendfile sends the data file";
  const auto crcs = BlocksOf(s_.now());
  EXPECT_EQ(file()->slot().digest, Crc32c(crcs.data(), crcs.size() * 4));
}

TEST_F(OverwriteTest, TheFlagSurvivesARestart) {
  ASSERT_TRUE(Add(1, 1000));
  ASSERT_TRUE(Put(2, 1, 2));
  rig_.Down(Node::Death::kProcess);
  rig_.Boot();
  EXPECT_TRUE(file()->overwritten());
  EXPECT_TRUE(rig_.Content() == s_.now());
  EXPECT_FALSE(RedoExists()) << "a start puts everything into place";
  rig_.Down(Node::Death::kPower);
  rig_.Boot();
  EXPECT_TRUE(file()->overwritten());
  EXPECT_TRUE(rig_.Content() == s_.now());
}

TEST_F(OverwriteTest, RottenBytesBesideTheNewOnesAreNoticed) {
  ASSERT_TRUE(Add(1, 200000));
  ASSERT_TRUE(rig_.node.disk().FlipBit(DataPath(), 70000, 3));
  EXPECT_EQ(Put(2, 66000, 100).error().code, Code::kCorrupt);
  EXPECT_EQ(rig_.replica()->marks().state, ReplicaState::kCorrupt);
}

TEST_F(OverwriteTest, ABlockReplacedAsAWholeIsNotRead) {
  ASSERT_TRUE(Add(1, 200000));
  ASSERT_TRUE(rig_.node.disk().FlipBit(DataPath(), 70000, 3));
  EXPECT_TRUE(Put(2, kBlockSize, kBlockSize));
  EXPECT_TRUE(**rig_.Run(file()->VerifyBlocks(0, 4)));
}

TEST_F(OverwriteTest, TheRedoFileIsBounded) {
  ASSERT_TRUE(Add(1, 1 << 20));
  for (uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(Put(i, 0, 1 << 20));
  EXPECT_LT(rig_.node.disk().Contents(RedoPath())->size(), RedoLog::kMaxSize);
  EXPECT_TRUE(rig_.Content() == s_.now());
}

TEST_F(OverwriteTest, AFullDiskLeavesTheOldBytes) {
  ASSERT_TRUE(Add(1, 200000));
  ASSERT_TRUE(*rig_.Run(Sync(&rig_, &s_)));
  rig_.node.disk().faults.full = true;
  EXPECT_EQ(Put(2, 0, 200000).error().code, Code::kNoSpace);
  rig_.node.disk().faults.full = false;
  EXPECT_TRUE(rig_.Content() == s_.now());
  EXPECT_TRUE(**rig_.Run(file()->VerifyBlocks(0, 4)));
}

TEST_F(OverwriteTest, AFailedSyncGivesTheReplicaUp) {
  ASSERT_TRUE(Add(1, 1000));
  ASSERT_TRUE(*rig_.Run(Sync(&rig_, &s_)));
  ASSERT_TRUE(Put(2, 0, 100));
  rig_.node.disk().faults.fail_syncs = true;
  EXPECT_EQ(rig_.Run(file()->SyncUpTo(1000, file()->slot().lineage))->error().code, Code::kIoError);
  EXPECT_EQ(rig_.replica()->marks().state, ReplicaState::kCorrupt);
}

// Between the writes of a sync another one waits, and a reader reads the same bytes as before.
TEST_F(OverwriteTest, ReadersAndWritersGoOnDuringASync) {
  ASSERT_TRUE(Add(1, 200000));
  ASSERT_TRUE(Put(2, 0, 200000));
  const std::string before = s_.now();
  std::vector<Task<bool>> all;
  struct Part {
    static Task<bool> Syncs(Rig* rig) {
      auto f = rig->replica()->file;
      Status done = co_await f->SyncUpTo(f->length(), f->slot().lineage);
      co_return done.has_value();
    }
    static Task<bool> Uses(Rig* rig, Story* s, std::string expected) {
      auto ticket = co_await rig->replica()->lock().Lock();
      auto bytes = co_await rig->replica()->file->Read(0, 200000);
      if (!bytes || bytes->view() != expected) co_return false;
      Status appended = co_await Append(rig, s, 3, 5000);
      Status put = co_await Overwrite(rig, s, 4, 199000, 3000);
      co_return appended && put;
    }
  };
  all.push_back(Part::Syncs(&rig_));
  all.push_back(Part::Uses(&rig_, &s_, before));
  all.push_back(Part::Syncs(&rig_));
  auto done = rig_.Run(WhenAll(&rig_.node, std::move(all)));
  for (bool good : *done) EXPECT_TRUE(good);
  EXPECT_TRUE(rig_.Content() == s_.now());
  rig_.Down(Node::Death::kProcess);
  rig_.Boot();
  EXPECT_TRUE(rig_.Content() == s_.now());
}

TEST_F(OverwriteTest, ADeletedReplicaGoesToQuarantineWithItsOverwrites) {
  ASSERT_TRUE(Add(1, 1000));
  ASSERT_TRUE(Put(2, 100, 100));
  ASSERT_TRUE(*rig_.Run(rig_.store->Delete(rig_.replica(), {})));
  EXPECT_FALSE(RedoExists());
  bool found = false;
  for (const std::string& path : rig_.node.disk().Files()) {
    if (path.starts_with("d/quarantine/") && path.ends_with(".data")) {
      found = true;
      EXPECT_EQ(*rig_.node.disk().Contents(path), s_.now());
    }
  }
  EXPECT_TRUE(found);
}

// Records of another instance, or that a slot has made void, change nothing.
TEST_F(OverwriteTest, RecordsCountForOneSlotOnly) {
  ASSERT_TRUE(Add(1, 1000));
  ASSERT_TRUE(Put(2, 100, 100));
  const std::string stale = *rig_.node.disk().Contents(RedoPath());
  ASSERT_TRUE(*rig_.Run(Sync(&rig_, &s_)));
  ASSERT_TRUE(Put(3, 100, 100));
  ASSERT_TRUE(*rig_.Run(Sync(&rig_, &s_)));
  auto inode = rig_.node.disk().Find(RedoPath());
  ASSERT_TRUE(rig_.node.disk().Write(*inode, 0, std::as_bytes(std::span(stale))));
  rig_.Down(Node::Death::kProcess);
  rig_.Boot();
  EXPECT_TRUE(rig_.Content() == s_.now());
}

TEST_F(OverwriteTest, ARedoFileBesideASealedReplicaIsRemoved) {
  ASSERT_TRUE(Add(1, 1000));
  ASSERT_TRUE(*rig_.Run(Seal(&rig_, &s_, true)));
  ASSERT_TRUE(rig_.node.disk().Open(RedoPath(), OpenMode::kCreate));
  rig_.Down(Node::Death::kProcess);
  rig_.Boot();
  EXPECT_FALSE(RedoExists());
  EXPECT_TRUE(rig_.Content() == s_.now());
}

TEST(RedoFormat, ARecordsHeadIsReadBackAndADamagedOneIsNone) {
  RedoHead head;
  head.instance = InstanceId(7);
  head.sequence = 9;
  head.block = 3;
  head.size = 65536;
  head.crc = 0x12345678;
  std::string bytes = EncodeRedoHead(head);
  ASSERT_EQ(bytes.size(), kRedoHeadSize);
  EXPECT_EQ(DecodeRedoHead(bytes), head);
  EXPECT_FALSE(DecodeRedoHead(bytes.substr(0, kRedoHeadSize - 1)));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_FALSE(DecodeRedoHead(damaged)) << i;
  }
}

}  // namespace
}  // namespace picket::cs
