// Deleting: the trash, its expiry, and the reclaimer.
#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

class TrashTest : public MetadataTest {
 protected:
  // A tree of `files` files with two chunks each, spread over nested directories.
  size_t MakeTree(const std::string& top, int directories, int files) {
    MetadataHalf& m = half();
    Mkdir(top);
    Entry at = *m.names.Resolve(*Path::Parse(top));
    for (int d = 0; d < directories; ++d) {
      Batch batch;
      for (int f = 0; f < files; ++f) {
        Entry file = m.names.NewInode(&batch, kFileInode, Namespace::Ownership{"ann", "staff", 0644});
        file.inode.set_chunk_count(2);
        m.names.Link(&batch, at.id, "f" + std::to_string(f), &file);
        for (uint64_t i = 0; i < 2; ++i) {
          record::Chunk chunk;
          chunk.set_inode(file.id.value);
          chunk.set_index(i);
          chunk.set_sealed(true);
          m.chunks.Put(&batch, m.chunks.NewId(), chunk);
        }
      }
      Entry next = m.names.NewInode(&batch, kDirectoryInode, Namespace::Ownership{"ann", "staff", 0755});
      m.names.Link(&batch, at.id, "next", &next);
      EXPECT_TRUE(m.store.Stage(std::move(batch)));
      at = next;
    }
    return static_cast<size_t>(directories) * static_cast<size_t>(files);
  }
};

TEST_F(TrashTest, DeleteMovesIntoTheTrashAndMovingBackRestores) {
  Mkdir("/d/e");
  const uint64_t file = Put("/d/e/f");
  auto deleted = Delete("/d", true);
  ASSERT_TRUE(deleted) << deleted.error().ToString();
  EXPECT_TRUE(deleted->trash_path().starts_with("/.Trash/ann/d.")) << deleted->trash_path();
  EXPECT_FALSE(Exists("/d"));
  EXPECT_EQ(Stat(deleted->trash_path() + "/e/f")->inode(), file);
  EXPECT_EQ(Stat("/.Trash")->mode(), 01777u);
  EXPECT_EQ(Stat("/.Trash/ann")->mode(), 0700u);
  EXPECT_EQ(Stat("/.Trash/ann")->owner(), "ann");
  ASSERT_TRUE(Rename(deleted->trash_path(), "/back"));
  EXPECT_EQ(Stat("/back/e/f")->inode(), file);
  world.RunFor(std::chrono::hours(24 * 4));
  EXPECT_TRUE(Exists("/back/e/f")) << "what was moved out does not expire";
  auto again = Delete("/back", true);
  ASSERT_TRUE(again);
  EXPECT_TRUE(Exists(again->trash_path()));
}

TEST_F(TrashTest, TwoOfTheSameNameAndLongNamesFit) {
  const std::string longest = "/" + std::string(253, 'x') + "é";
  Put(longest);
  auto first = Delete(longest);
  Put(longest);
  auto second = Delete(longest);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->trash_path(), second->trash_path());
  EXPECT_TRUE(Exists(first->trash_path()));
  EXPECT_TRUE(Exists(second->trash_path()));
}

TEST_F(TrashTest, DeleteRefusals) {
  Mkdir("/d/e");
  const uint64_t file = Put("/f");
  EXPECT_EQ(CodeOf(Delete("/none")), Code::kNotFound);
  EXPECT_EQ(CodeOf(Delete("/d")), Code::kNotEmpty);
  EXPECT_TRUE(Delete("/d/e")) << "an empty directory goes without -r";
  proto::DeleteRequest r;
  Identify(r.mutable_mutation());
  r.set_path("/f");
  r.set_only_inode(file + 1);
  auto conflict = Call<proto::DeleteResponse>(proto::DELETE, r);
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().code, Code::kConflict);
  EXPECT_EQ(conflict.error().mark, file);
  Identify(r.mutable_mutation());
  r.set_only_inode(file);
  EXPECT_TRUE(Call<proto::DeleteResponse>(proto::DELETE, r));
}

TEST_F(TrashTest, OnlyADeletePutsThingsIntoTheTrash) {
  Put("/f");
  auto deleted = Delete("/f");
  Put("/g");
  EXPECT_EQ(CodeOf(Rename("/g", "/.Trash/ann/g")), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Mkdir("/.Trash/ann/d")), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Rename("/.Trash", "/x")), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Rename("/.Trash/ann", "/x")), Code::kInvalidArgument);
  EXPECT_TRUE(Exists(deleted->trash_path()));
}

TEST_F(TrashTest, DeleteInsideTheTrashAndSkipTrashAreForGood) {
  AddChunk(InodeId(Put("/f")), true);
  auto deleted = Delete("/f");
  auto twice = Delete(deleted->trash_path());
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->trash_path(), "");
  EXPECT_FALSE(Exists(deleted->trash_path()));
  AddChunk(InodeId(Put("/g")), true);
  ASSERT_TRUE(Delete("/g", false, true));
  WaitForReclaim();
  EXPECT_EQ(half().chunks.Garbage(ChunkId(), 10)->size(), 2u);
  EXPECT_TRUE(half().store.Scan(keys::kTrash, "", 10)->empty());
  EXPECT_EQ(half().names.inode_count(), 3u) << "the root and the trash";
}

TEST_F(TrashTest, TheTrashExpiresAfterThreeDays) {
  AddChunk(InodeId(Put("/f")), true);
  auto deleted = Delete("/f");
  world.RunFor(std::chrono::hours(71));
  EXPECT_TRUE(Exists(deleted->trash_path()));
  Restart();
  world.RunFor(std::chrono::hours(1) + 2min);
  EXPECT_FALSE(Exists(deleted->trash_path()));
  WaitForReclaim();
  EXPECT_EQ(half().chunks.Garbage(ChunkId(), 10)->size(), 1u);
  EXPECT_TRUE(half().store.Scan(keys::kTrash, "", 10)->empty());
}

TEST_F(TrashTest, MoreThanOneBatchExpires) {
  for (size_t i = 0; i < Trash::kMaxExpiredAtOnce * 2 + 3; ++i) {
    Put("/f");
    Delete("/f");
  }
  world.RunFor(std::chrono::hours(73));
  EXPECT_EQ(Names("/.Trash/ann"), std::vector<std::string>{});
  WaitForReclaim();
  EXPECT_EQ(half().names.inode_count(), 3u);
}

TEST_F(TrashTest, ADeletedOpenFileCanStillBeClosed) {
  auto created = Create("/f");
  auto deleted = Delete("/f");
  ASSERT_TRUE(deleted);
  ASSERT_TRUE(Close(*created));
  EXPECT_FALSE(Stat(deleted->trash_path())->open());
}

TEST_F(TrashTest, DeletingAnOpenFileForGoodEndsItsSession) {
  auto created = Create("/f");
  ASSERT_TRUE(Delete("/f", false, true));
  EXPECT_EQ(half().sessions.open_count(), 0u);
  EXPECT_FALSE(Close(*created));
}

TEST_F(TrashTest, ABigTreeGoesAtOnceAndIsTakenApartInSteps) {
  const size_t files = MakeTree("/big", 12, 100);
  const size_t kept = MakeTree("/kept", 2, 10);
  const Nanos began = world.now();
  ASSERT_TRUE(Delete("/big", true, true));
  EXPECT_LT(world.now() - began, 500ms);
  EXPECT_FALSE(PurgeQueueEmpty()) << "the answer does not wait for the reclaimer";
  EXPECT_FALSE(Exists("/big"));
  WaitForReclaim();
  EXPECT_EQ(half().chunks.Garbage(ChunkId(), 10000)->size(), 2 * files);
  EXPECT_EQ(half().names.inode_count(), 1u + kept + 2 + 1);
  EXPECT_TRUE(Exists("/kept/next/f3"));
  EXPECT_EQ(half().store.Scan(keys::kInodes, "", 10000)->size(), half().names.inode_count());
}

// Power is lost again and again while a tree is taken apart: it goes on, and nothing is left over.
TEST_F(TrashTest, ReclaimGoesOnAfterCrashes) {
  const size_t files = MakeTree("/big", 8, 60);
  ASSERT_TRUE(Delete("/big", true, true));
  int crashes = 0;
  while (!PurgeQueueEmpty() && crashes < 200) {
    world.RunFor(3ms);
    Restart(crashes++ % 2 == 0 ? sim::Node::Death::kPower : sim::Node::Death::kProcess);
  }
  EXPECT_GT(crashes, 1);
  WaitForReclaim();
  EXPECT_EQ(half().chunks.Garbage(ChunkId(), 10000)->size(), 2 * files);
  EXPECT_EQ(half().names.inode_count(), 1u);
  EXPECT_EQ(half().store.Scan(keys::kInodes, "", 10000)->size(), 1u);
  EXPECT_TRUE(half().store.Scan(keys::kDentries, "", 10)->empty());
}

}  // namespace
}  // namespace picket::test
