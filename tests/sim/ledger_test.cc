#include "tests/sim/ledger.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace picket::sim {
namespace {

LedgerEntry Entry(uint64_t first, uint64_t last, uint64_t violations = 0, std::string commit = "abc") {
  LedgerEntry e;
  e.key = {std::move(commit), "", 60};
  e.first = first;
  e.last = last;
  e.violations = violations;
  e.virtual_seconds = 100;
  e.wall_seconds = 10;
  return e;
}

TEST(Ledger, SaysWhatIsLeft) {
  EXPECT_EQ(SeedsLeft({}, {1, 10}, 4), (std::vector<SeedRange>{{1, 4}, {5, 8}, {9, 10}}));
  EXPECT_EQ(SeedsLeft({Entry(3, 5)}, {1, 10}, 100), (std::vector<SeedRange>{{1, 2}, {6, 10}}));
  EXPECT_EQ(SeedsLeft({Entry(4, 9), Entry(1, 4)}, {1, 10}, 100), (std::vector<SeedRange>{{10, 10}}));
  EXPECT_EQ(SeedsLeft({Entry(1, 100)}, {1, 10}, 100), std::vector<SeedRange>());
  EXPECT_EQ(SeedsLeft({Entry(50, 60)}, {1, 10}, 100), (std::vector<SeedRange>{{1, 10}}));
}

TEST(Ledger, CountsASeedOnce) {
  const LedgerSum sum = Sum({Entry(1, 10, 1), Entry(5, 20), Entry(30, 30)});
  EXPECT_EQ(sum.seeds, 21u);
  EXPECT_EQ(sum.violations, 1u);
  EXPECT_EQ(sum.virtual_seconds, 300);
}

TEST(Ledger, IsKeptPerCommitAndBearsForeignLines) {
  const std::string path = std::filesystem::temp_directory_path() / ("picket-ledger-" + std::to_string(::getpid()));
  std::filesystem::remove(path);
  EXPECT_TRUE(ReadLedger(path, Entry(1, 1).key).empty());
  std::ofstream(path) << "# a note\nhalf a li\n";
  ASSERT_TRUE(AppendToLedger(path, Entry(1, 100, 2)));
  ASSERT_TRUE(AppendToLedger(path, Entry(101, 200, 0, "def")));
  const auto entries = ReadLedger(path, Entry(1, 1).key);
  std::filesystem::remove(path);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(ToText(entries[0]), ToText(Entry(1, 100, 2)));
}

}  // namespace
}  // namespace picket::sim
