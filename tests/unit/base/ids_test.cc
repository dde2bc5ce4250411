#include "common/base/ids.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace picket {
namespace {

static_assert(!std::is_convertible_v<ChunkId, InodeId>);
static_assert(!std::is_convertible_v<uint64_t, ChunkId>);
static_assert(!std::is_convertible_v<Version, Generation>);

TEST(Ids, HexIsSixteenLowerCaseDigits) {
  EXPECT_EQ(ToHex(0), "0000000000000000");
  EXPECT_EQ(ToHex(0xDEADBEEF), "00000000deadbeef");
  EXPECT_EQ(ToHex(UINT64_MAX), "ffffffffffffffff");
  EXPECT_EQ(ToString(ChunkId(0x1f)), "000000000000001f");
}

TEST(Ids, FromHexReadsBackWhatToHexWrote) {
  for (const uint64_t v : {uint64_t{0}, uint64_t{1}, uint64_t{0x0123456789abcdef}, UINT64_MAX}) {
    uint64_t read = ~v;
    ASSERT_TRUE(FromHex(ToHex(v), &read));
    EXPECT_EQ(read, v);
  }
}

TEST(Ids, FromHexRefusesWhatIsNotExactlyHex) {
  for (const char* text : {"", "g", "0x1f", "1f ", " 1f", "-1", "+1", "00000000000000000"}) {
    uint64_t v = 42;
    EXPECT_FALSE(FromHex(text, &v)) << text;
    EXPECT_EQ(v, 42u) << text;
  }
}

TEST(Ids, TokensOrderByEpochThenCounter) {
  EXPECT_LT(Version(1, 0xffffffff), Version(2, 0));
  EXPECT_LT(Version(2, 1), Version(2, 2));
  EXPECT_EQ(Version(3, 17).ToString(), "3.17");
  EXPECT_EQ(Version(3, 17).epoch(), 3u);
  EXPECT_EQ(Version(3, 17).counter(), 17u);
  EXPECT_FALSE(Version());
  EXPECT_TRUE(Version(1, 0));
}

TEST(Ids, EpochsOfOneNumberDifferByNonce) {
  EXPECT_NE((Epoch{4, 1}), (Epoch{4, 2}));
  EXPECT_LT((Epoch{4, 9}), (Epoch{5, 1}));
}

}  // namespace
}  // namespace picket
