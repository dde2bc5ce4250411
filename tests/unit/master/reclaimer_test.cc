// The reclaimer's steps: all or nothing, in memory as on the disk.
#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

class ReclaimerTest : public MetadataTest {
 protected:
  ReclaimerTest() {
    background = false;
    Restart();
  }
  bool Step() {
    auto stepped = sim::RunTask(world, node, half().reclaimer.Step());
    return stepped && *stepped;
  }
};

// A step that fails at its second file has not ended the session of its first one.
TEST_F(ReclaimerTest, AStepThatFailsChangesNothingInMemory) {
  Mkdir("/d");
  auto open = Create("/d/open");
  ASSERT_TRUE(open);
  const InodeId writing(open->status().inode());
  const InodeId broken(Put("/broken"));
  AddChunk(broken, true, 10);
  const std::string place = keys::FileChunk(broken, 7);
  Batch damage;
  damage.Put(place, keys::EncodeU64(4711));  // a chunk that has no record
  ASSERT_TRUE(*sim::RunTask(world, node, half().store.Commit(std::move(damage))));
  ASSERT_TRUE(Delete("/d", true, true));
  ASSERT_TRUE(Delete("/broken", false, true));
  ASSERT_TRUE(half().sessions.IsOpen(writing));

  EXPECT_FALSE(Step());
  EXPECT_TRUE(half().sessions.IsOpen(writing));
  EXPECT_EQ(half().names.inode_count(), 4u);

  Batch repair;
  repair.Remove(place);
  ASSERT_TRUE(*sim::RunTask(world, node, half().store.Commit(std::move(repair))));
  while (!PurgeQueueEmpty()) ASSERT_TRUE(Step());
  EXPECT_FALSE(half().sessions.IsOpen(writing));
  EXPECT_EQ(half().names.inode_count(), 1u);
}

}  // namespace
}  // namespace picket::test
