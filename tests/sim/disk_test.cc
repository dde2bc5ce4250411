// What a power loss may take from a simulated disk, and what it may not.
#include "tests/sim/disk.h"

#include <gtest/gtest.h>

#include "tests/sim/node.h"

namespace picket::sim {
namespace {

std::span<const std::byte> Bytes(std::string_view s) { return std::as_bytes(std::span(s)); }

class SimDiskTest : public testing::TestWithParam<uint64_t> {
 protected:
  SimDiskTest() : world_({}, GetParam()), node_(world_.AddNode("a")) { node_.Start(); }
  SimDisk& disk() { return node_.disk(); }
  InodePtr Make(const std::string& path) { return *disk().Open(path, OpenMode::kCreate); }
  void LosePower() {
    node_.Crash(Node::Death::kPower);
    node_.Start();
  }
  World world_;
  Node& node_;
};

TEST_P(SimDiskTest, SyncedBytesUnderASyncedNameSurvive) {
  auto file = Make("f");
  const std::string text(10'000, 'a');
  ASSERT_TRUE(disk().Write(*file, 100, Bytes(text)));
  ASSERT_TRUE(disk().SyncInode(*file, false));
  ASSERT_TRUE(disk().SyncDir("."));
  ASSERT_TRUE(disk().Write(*file, 5000, Bytes(std::string(3000, 'b'))));
  LosePower();
  const auto content = disk().Contents("f");
  ASSERT_TRUE(content);
  EXPECT_EQ(content->size(), 10'100u);
  EXPECT_EQ(content->substr(0, 100), std::string(100, '\0'));
  EXPECT_EQ(content->substr(100, 4508), std::string(4508, 'a'));  // up to the first touched sector
  for (char c : content->substr(100)) EXPECT_TRUE(c == 'a' || c == 'b');
}

TEST_P(SimDiskTest, AKilledProcessLosesNothingWritten) {
  auto file = Make("f");
  ASSERT_TRUE(disk().Write(*file, 0, Bytes("written")));
  node_.Crash(Node::Death::kProcess);
  node_.Start();
  EXPECT_EQ(disk().Contents("f"), "written");
}

TEST_P(SimDiskTest, NamesSurviveAsAPrefixPerDirectory) {
  ASSERT_TRUE(disk().MakeDir("d"));
  ASSERT_TRUE(disk().SyncDir("."));
  for (int i = 0; i < 8; ++i) Make("d/" + std::to_string(i));
  LosePower();
  bool gone = false;
  for (int i = 0; i < 8; ++i) {
    const bool there = disk().Exists("d/" + std::to_string(i));
    EXPECT_FALSE(there && gone) << i;
    gone = gone || !there;
  }
}

TEST_P(SimDiskTest, ARenameAcrossDirectoriesIsInBothOrNeither) {
  ASSERT_TRUE(disk().MakeDir("a"));
  ASSERT_TRUE(disk().MakeDir("b"));
  Make("a/f");
  ASSERT_TRUE(disk().SyncDir("."));
  ASSERT_TRUE(disk().SyncDir("a"));
  ASSERT_TRUE(disk().Rename("a/f", "b/f"));
  LosePower();
  EXPECT_NE(disk().Exists("a/f"), disk().Exists("b/f"));
}

TEST_P(SimDiskTest, SyncOfATargetDirectoryKeepsTheRename) {
  Make("f.tmp");
  ASSERT_TRUE(disk().Rename("f.tmp", "f"));
  ASSERT_TRUE(disk().SyncDir("."));
  LosePower();
  EXPECT_TRUE(disk().Exists("f"));
  EXPECT_FALSE(disk().Exists("f.tmp"));
}

TEST_P(SimDiskTest, AFailedSyncForgetsWhatWasDirty) {
  auto file = Make("f");
  ASSERT_TRUE(disk().SyncDir("."));
  ASSERT_TRUE(disk().Write(*file, 0, Bytes("old")));
  ASSERT_TRUE(disk().SyncInode(*file, false));
  ASSERT_TRUE(disk().Write(*file, 0, Bytes("new")));
  disk().faults.fail_syncs = true;
  EXPECT_EQ(disk().SyncInode(*file, false).error().code, Code::kIoError);
  disk().faults.fail_syncs = false;
  EXPECT_EQ(disk().Contents("f"), "new");
  ASSERT_TRUE(disk().SyncInode(*file, false));  // success, and a lie
  LosePower();
  EXPECT_EQ(disk().Contents("f"), "old");
}

TEST_P(SimDiskTest, TruncateThenGrowReadsZeros) {
  auto file = Make("f");
  ASSERT_TRUE(disk().SyncDir("."));
  ASSERT_TRUE(disk().Write(*file, 0, Bytes(std::string(9000, 'x'))));
  ASSERT_TRUE(disk().SyncInode(*file, false));
  ASSERT_TRUE(disk().Truncate(*file, 4500));
  ASSERT_TRUE(disk().Truncate(*file, 9000));
  EXPECT_EQ(disk().Contents("f"), std::string(4500, 'x') + std::string(4500, '\0'));
  ASSERT_TRUE(disk().SyncInode(*file, false));
  LosePower();
  EXPECT_EQ(disk().Contents("f"), std::string(4500, 'x') + std::string(4500, '\0'));
}

TEST_P(SimDiskTest, AFullDiskTakesOverwritesAndReservedSpace) {
  auto file = Make("f");
  ASSERT_TRUE(disk().Reserve(*file, 8192));
  disk().faults.full = true;
  EXPECT_TRUE(disk().Write(*file, 0, Bytes(std::string(8192, 'x'))));
  EXPECT_TRUE(disk().Write(*file, 0, Bytes("again")));
  EXPECT_EQ(disk().Write(*file, 8192, Bytes("more")).error().code, Code::kNoSpace);
  EXPECT_EQ(disk().Space().free_bytes, 0u);
}

TEST_P(SimDiskTest, ListsOnlyItsOwnEntriesInOrder) {
  ASSERT_TRUE(disk().MakeDir("a"));
  ASSERT_TRUE(disk().MakeDir("a/b"));
  Make("a/b/deep");
  Make("a/b-x");
  Make("a/c");
  Make("top");
  EXPECT_EQ(*disk().List("a"), (std::vector<std::string>{"b", "b-x", "c"}));
  EXPECT_EQ(*disk().List("."), (std::vector<std::string>{"a", "top"}));
  EXPECT_EQ(disk().List("top").error().code, Code::kNotDirectory);
}

TEST_P(SimDiskTest, LosesPowerAtTheNthChange) {
  disk().faults.lose_power_at = 3;
  auto file = Make("f");
  EXPECT_TRUE(disk().Write(*file, 0, Bytes("1")));
  EXPECT_FALSE(disk().Write(*file, 1, Bytes("2")));
  EXPECT_FALSE(node_.alive());
  node_.Start();
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimDiskTest, testing::Range<uint64_t>(1, 9));

}  // namespace
}  // namespace picket::sim
