#include "common/base/error.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/ids.h"

namespace picket {
namespace {

// Every code in the closed list, found through its name.
std::vector<Code> AllCodes() {
  std::vector<Code> out;
  for (uint32_t c = 0; c <= UINT16_MAX; ++c) {
    if (CodeName(static_cast<Code>(c)) != "UNKNOWN") out.push_back(static_cast<Code>(c));
  }
  return out;
}

TEST(Error, CodesHaveDistinctNames) {
  std::set<std::string_view> names;
  for (const Code c : AllCodes()) EXPECT_TRUE(names.insert(CodeName(c)).second) << CodeName(c);
  EXPECT_EQ(names.size(), 41u);
}

// Numbers are on the wire: these may never change.
TEST(Error, FencingCodesKeepTheirNumbers) {
  EXPECT_EQ(static_cast<int>(Code::kStaleEpoch), 40);
  EXPECT_EQ(static_cast<int>(Code::kStaleVersion), 41);
  EXPECT_EQ(static_cast<int>(Code::kStaleGeneration), 42);
  EXPECT_EQ(static_cast<int>(Code::kReplicaBehind), 50);
  EXPECT_EQ(static_cast<int>(Code::kHistoryLost), 71);
}

TEST(Error, FencedIsFinal) {
  for (const Code c : AllCodes()) {
    if (IsFenced(c)) EXPECT_FALSE(IsRetryable(c)) << CodeName(c);
  }
  EXPECT_TRUE(IsFenced(Code::kStaleGeneration));
  EXPECT_FALSE(IsFenced(Code::kReplicaBehind));
  EXPECT_TRUE(IsRetryable(Code::kReplicaBehind));
  EXPECT_FALSE(IsRetryable(Code::kCorrupt));
}

TEST(Error, TextNamesTokensHolderAndNextStep) {
  EXPECT_EQ(Error(Code::kNotFound, "no such file").ToString(), "NOT_FOUND: no such file");
  const Error e = Error(Code::kStaleVersion, "chunk 1f")
                      .WithTokens(Version(3, 7).value, Version(3, 9).value)
                      .WithHolder("writer-2")
                      .WithNextStep("ask the master for a new grant");
  EXPECT_EQ(e.ToString(),
            "STALE_VERSION: chunk 1f (token 3.7, mark 3.9, holder writer-2); ask the master for a new grant");
  EXPECT_EQ(Error(Code::kConflict, "open").WithHolder("w").ToString(), "CONFLICT: open (holder w)");
}

Status Outer(Status inner, bool* went_on) {
  PICKET_TRY(std::move(inner));
  *went_on = true;
  return {};
}

TEST(Error, TryReturnsTheErrorOrGoesOn) {
  bool went_on = false;
  const Status failed = Outer(Fail(Code::kNoSpace, "disk 1"), &went_on);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "disk 1");
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(Outer({}, &went_on));
  EXPECT_TRUE(went_on);
}

}  // namespace
}  // namespace picket
