#include "common/base/rng.h"

#include <gtest/gtest.h>

#include <array>

namespace picket {
namespace {

// Fixed for ever: recorded seeds would otherwise replay other runs.
TEST(Rng, SequenceIsSplitmix64) {
  Rng rng(1234567);
  EXPECT_EQ(rng.Next(), 6457827717110365317ull);
  EXPECT_EQ(rng.Next(), 3203168211198807973ull);
  EXPECT_EQ(rng.Next(), 9817491932198370423ull);
}

TEST(Rng, BelowStaysBelowAndReachesAll) {
  Rng rng(1);
  std::array<int, 5> seen{};
  for (int i = 0; i < 5000; ++i) ++seen[rng.Below(5)];
  for (const int n : seen) EXPECT_NEAR(n, 1000, 200);
  EXPECT_EQ(rng.Below(0), 0u);
  EXPECT_EQ(rng.Below(1), 0u);
}

TEST(Rng, RangeIncludesBothEnds) {
  Rng rng(2);
  bool low = false, high = false;
  for (int i = 0; i < 200; ++i) {
    const int64_t v = rng.Range(-1, 1);
    ASSERT_GE(v, -1);
    ASSERT_LE(v, 1);
    low |= v == -1;
    high |= v == 1;
  }
  EXPECT_TRUE(low && high);
}

TEST(Rng, ChanceOfExtremes) {
  Rng rng(3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(rng.Chance(0.0));
    EXPECT_TRUE(rng.Chance(1.0));
  }
}

}  // namespace
}  // namespace picket
