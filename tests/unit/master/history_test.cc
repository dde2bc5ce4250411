#include "master/history.h"

#include <gtest/gtest.h>

namespace picket {
namespace {

record::Activation Row(uint32_t epoch, uint64_t nonce, uint64_t first_revision) {
  record::Activation a;
  a.set_epoch(epoch);
  a.set_nonce(nonce);
  a.set_first_revision(first_revision);
  return a;
}

struct Case {
  const char* name;
  SeenMark seen;
  bool lost;
};

// Epoch 1 was revisions 1–9, epoch 2 10–19, epoch 3 began at 20 and is at 25.
TEST(History, JudgedByTheActivationTable) {
  const std::vector<record::Activation> table = {Row(1, 11, 1), Row(2, 22, 10), Row(3, 33, 20)};
  const Case cases[] = {
      {"a new server", {Epoch{0, 0}, 0}, false},
      {"an old epoch", {Epoch{1, 11}, 9}, false},
      {"an old epoch, no revision", {Epoch{2, 22}, 0}, false},
      {"the present one", {Epoch{3, 33}, 25}, false},
      {"an epoch above", {Epoch{4, 44}, 1}, true},
      {"another nonce", {Epoch{3, 34}, 21}, true},
      {"another nonce in the past", {Epoch{1, 12}, 1}, true},
      {"beyond the end of an old epoch", {Epoch{1, 11}, 10}, true},
      {"beyond the end of the one before", {Epoch{2, 22}, 20}, true},
      {"beyond the present", {Epoch{3, 33}, 26}, true},
  };
  for (const Case& c : cases) {
    const Status judged = JudgeHistory(table, 25, c.seen);
    EXPECT_EQ(!judged, c.lost) << c.name;
    if (!judged) EXPECT_EQ(judged.error().code, Code::kHistoryLost) << c.name;
  }
}

// A backup of epoch 1 was restored: this activation calls itself 2, as the lost one did.
TEST(History, AnAdoptionAcceptsWhateverServersHadSeenBelowItsEpoch) {
  std::vector<record::Activation> table = {Row(1, 11, 1), Row(2, 22, 10), Row(8, 88, 20)};
  table.back().set_adopted(true);
  EXPECT_TRUE(JudgeHistory(table, 25, {Epoch{7, 77}, 1000}));
  EXPECT_TRUE(JudgeHistory(table, 25, {Epoch{2, 99}, 1000}));
  EXPECT_TRUE(JudgeHistory(table, 25, {Epoch{8, 88}, 25}));
  EXPECT_FALSE(JudgeHistory(table, 25, {Epoch{8, 89}, 1}));
  EXPECT_FALSE(JudgeHistory(table, 25, {Epoch{9, 99}, 1}));
  table.push_back(Row(9, 99, 30));
  EXPECT_TRUE(JudgeHistory(table, 35, {Epoch{7, 77}, 1000}));
  EXPECT_FALSE(JudgeHistory(table, 35, {Epoch{8, 88}, 30}));
}

TEST(History, F12RestoredBackupIsNoticed) {
  const std::vector<record::Activation> restored = {Row(1, 11, 1), Row(2, 99, 6)};
  EXPECT_FALSE(JudgeHistory(restored, 6, SeenMark{Epoch{2, 22}, 12}));  // lost epoch 2 has another nonce
  EXPECT_FALSE(JudgeHistory(restored, 6, SeenMark{Epoch{1, 11}, 8}));   // epoch 1 went further than the backup
  EXPECT_TRUE(JudgeHistory(restored, 6, SeenMark{Epoch{1, 11}, 5}));
}

TEST(History, MissingRowIsLost) {
  EXPECT_FALSE(JudgeHistory({Row(1, 11, 1), Row(3, 33, 20)}, 25, SeenMark{Epoch{2, 22}, 12}));
}

}  // namespace
}  // namespace picket
