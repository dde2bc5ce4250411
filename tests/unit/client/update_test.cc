// Update: read, compute, swap under a condition, redo.
#include <gmock/gmock.h>

#include "client/core/update.h"
#include "tests/unit/client/fake_cluster.h"

namespace picket {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class UpdateTest : public FakeCluster {
 protected:
  Result<proto::FileStatus> Change(const std::string& path, UpdateFunction change, UpdateOptions options = {}) {
    return Run(Update(&files(), path, std::move(change), options));
  }
  // Puts `bytes` in the place of what is there, as somebody else.
  void Meanwhile(const std::string& path, const std::string& bytes) {
    names.erase(path);
    Store(path, bytes);
  }
};

Result<std::optional<std::string>> AppendLine(const FileContent& now) { return now.bytes + "line\n"; }

TEST_F(UpdateTest, ReplacesWhatItRead) {
  Store("/f", "one\n");
  auto changed = Change("/f", AppendLine);
  ASSERT_TRUE(changed) << changed.error().ToString();
  EXPECT_EQ(changed->length(), 9u);
  EXPECT_EQ(Stored("/f"), "one\nline\n");
  const auto created = Asked<proto::CreateRequest>(master, proto::CREATE);
  ASSERT_EQ(created.size(), 1u);
  EXPECT_TRUE(created[0].overwrite());
  EXPECT_TRUE(created[0].conditions().has_if_version());
}

TEST_F(UpdateTest, OffersAMissingFileAsAbsent) {
  bool existed = true;
  auto changed = Change("/f", [&](const FileContent& now) -> Result<std::optional<std::string>> {
    existed = now.exists;
    return "new";
  });
  ASSERT_TRUE(changed) << changed.error().ToString();
  EXPECT_FALSE(existed);
  EXPECT_EQ(Stored("/f"), "new");
  const auto created = Asked<proto::CreateRequest>(master, proto::CREATE);
  ASSERT_EQ(created.size(), 1u);
  EXPECT_FALSE(created[0].overwrite());
  EXPECT_TRUE(created[0].conditions().if_absent());
}

TEST_F(UpdateTest, AChangeInBetweenIsNotLost) {
  Store("/f", "a");
  std::vector<std::string> seen;
  auto changed = Change("/f", [&](const FileContent& now) -> Result<std::optional<std::string>> {
    seen.push_back(now.bytes);
    if (seen.size() == 1) Meanwhile("/f", "ab");
    return now.bytes + "c";
  });
  ASSERT_TRUE(changed) << changed.error().ToString();
  EXPECT_THAT(seen, ElementsAre("a", "ab"));
  EXPECT_EQ(Stored("/f"), "abc");
}

TEST_F(UpdateTest, AChangeWhileItWritesIsNotLostEither) {
  Store("/f", "a");
  chunkservers[0]->script.twists[proto::WRITE_PACKET] = {Twist::Delay(2s)};
  auto changed = Begin(Update(&files(), "/f", AppendLine, {}));
  world.RunFor(1s);
  ASSERT_EQ(Asked<proto::CreateRequest>(master, proto::CREATE).size(), 1u);
  Meanwhile("/f", "b");
  ASSERT_TRUE(Await(changed));
  ASSERT_TRUE(**changed) << (*changed)->error().ToString();
  EXPECT_EQ(Stored("/f"), "bline\n");
  EXPECT_EQ(Asked<proto::AbandonRequest>(master, proto::ABANDON).size(), 1u) << "the first attempt leaves nothing";
}

TEST_F(UpdateTest, ManyAtOnceLoseNothing) {
  constexpr size_t kUpdaters = 5;
  std::vector<std::shared_ptr<std::optional<Result<proto::FileStatus>>>> updates;
  for (size_t i = 0; i < kUpdaters; ++i) {
    updates.push_back(Begin(Update(&files(), "/f", AppendLine, {})));
  }
  for (auto& update : updates) {
    ASSERT_TRUE(Await(update));
    ASSERT_TRUE(**update) << (*update)->error().ToString();
  }
  EXPECT_EQ(Stored("/f").size(), kUpdaters * 5);
}

TEST_F(UpdateTest, LeavesTheFileAloneOnDemand) {
  Store("/f", "a");
  auto left = Change("/f", [](const FileContent&) -> Result<std::optional<std::string>> { return std::nullopt; });
  ASSERT_TRUE(left);
  EXPECT_EQ(left->length(), 1u);
  EXPECT_TRUE(Asked<proto::CreateRequest>(master, proto::CREATE).empty());
}

TEST_F(UpdateTest, AnErrorOfTheFunctionEndsIt) {
  Store("/f", "a");
  auto ended = Change("/f", [](const FileContent&) -> Result<std::optional<std::string>> {
    return Fail(Code::kConflict, "no such entry");
  });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "no such entry");
}

TEST_F(UpdateTest, GivesUpWhenOthersAreAlwaysFaster) {
  Store("/f", "a");
  int calls = 0;
  UpdateOptions options;
  options.max_attempts = 3;
  auto lost = Change(
      "/f",
      [&](const FileContent&) -> Result<std::optional<std::string>> {
        Meanwhile("/f", std::to_string(++calls));
        return "mine";
      },
      options);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kConflict);
  EXPECT_THAT(lost.error().next_step, HasSubstr("try again"));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(Stored("/f"), "3");
}

TEST_F(UpdateTest, WaitsForAWriterToEnd) {
  Store("/f", "a");
  file("/f").status.set_open(true);
  auto changed = Begin(Update(&files(), "/f", AppendLine, {}));
  world.RunFor(1s);
  EXPECT_FALSE(changed->has_value());
  EXPECT_TRUE(Asked<proto::CreateRequest>(master, proto::CREATE).empty());
  file("/f").status.set_open(false);
  ASSERT_TRUE(Await(changed));
  ASSERT_TRUE(**changed) << (*changed)->error().ToString();
  EXPECT_EQ(Stored("/f"), "aline\n");
}

TEST_F(UpdateTest, DoesNotReadMoreThanItMay) {
  Store("/f", Pattern(1000));
  UpdateOptions options;
  options.max_bytes = 999;
  auto refused = Change("/f", AppendLine, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace picket
