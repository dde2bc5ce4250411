#include "client/cli/text.h"

#include <gtest/gtest.h>

namespace picket::cli {
namespace {

TEST(Escaped, ControlCharactersCannotReachTheTerminal) {
  EXPECT_EQ(Escaped("plain ünïcödé 名"), "plain ünïcödé 名");
  EXPECT_EQ(Escaped("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(Escaped("\x1b[2Jx\x7f"), "\\x1b[2Jx\\x7f");
  EXPECT_EQ(Escaped("\xc2\x9b"
                    "31m"),
            "\\xc2\\x9b31m");  // C1: an 8-bit CSI
  EXPECT_EQ(Escaped("a\xe2\x80\xae"
                    "b"),
            "a\\xe2\\x80\\xae"
            "b");  // right-to-left override
}

TEST(Escaped, BytesThatAreNotUtf8) {
  EXPECT_EQ(Escaped("\xff"), "\\xff");
  EXPECT_EQ(Escaped("\xc3"), "\\xc3");                    // cut short
  EXPECT_EQ(Escaped("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(Escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
}

TEST(HumanBytes, PowersOf1024) {
  EXPECT_EQ(HumanBytes(0), "0");
  EXPECT_EQ(HumanBytes(1023), "1023");
  EXPECT_EQ(HumanBytes(1024), "1.0 K");
  EXPECT_EQ(HumanBytes(1536), "1.5 K");
  EXPECT_EQ(HumanBytes(64 << 20), "64 M");
  EXPECT_EQ(HumanBytes((1 << 20) - 1), "1.0 M");
  EXPECT_EQ(HumanBytes(UINT64_MAX), "16 E");
}

TEST(ParseBytes, UnitsInAnyCommonSpelling) {
  EXPECT_EQ(ParseBytes("0"), 0u);
  EXPECT_EQ(ParseBytes("67108864"), 64u << 20);
  for (const char* text : {"64M", "64m", "64MiB", "64 MB", "64mb"}) EXPECT_EQ(ParseBytes(text), 64u << 20) << text;
  EXPECT_EQ(ParseBytes("1g"), 1u << 30);
  for (const char* text : {"", "M", "-1", "1x", "1Mx", "99999999999999999999", "16777216T", "1.5M"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
  }
}

TEST(Times, UtcIsIso8601) {
  EXPECT_EQ(UtcTime(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(UtcTime(1'700'000'000'000'000'000), "2023-11-14T22:13:20Z");
  EXPECT_EQ(UtcTime(1'700'000'000'000'000'005), "2023-11-14T22:13:20.000000005Z");
  EXPECT_EQ(UtcTime(-1), "1969-12-31T23:59:59.999999999Z");
}

TEST(Times, LocalTimeFollowsTheZone) {
  setenv("TZ", "UTC-2", 1);  // two hours east
  tzset();
  EXPECT_EQ(LocalTime(1'700'000'000'000'000'000, "%Y-%m-%d %H:%M"), "2023-11-15 00:13");
  unsetenv("TZ");
  tzset();
}

TEST(Words, ModesTokensDurations) {
  EXPECT_EQ(PermissionText(0644), "rw-r--r--");
  EXPECT_EQ(PermissionText(01777), "rwxrwxrwt");
  EXPECT_EQ(TokenText((uint64_t{3} << 32) | 17), "3.17");
  EXPECT_EQ(TokenText(0), "-");
  EXPECT_EQ(DurationText(59), "59 s");
  EXPECT_EQ(DurationText(125), "2:05");
  EXPECT_EQ(DurationText(3723), "1:02:03");
  EXPECT_EQ(HexId(0x1234), "0000000000001234");
}

TEST(EditDistance, CountsSlips) {
  EXPECT_EQ(EditDistance("ls", "ls"), 0);
  EXPECT_EQ(EditDistance("sl", "ls"), 1);  // swapped
  EXPECT_EQ(EditDistance("mkdri", "mkdir"), 1);
  EXPECT_EQ(EditDistance("", "put"), 3);
}

}  // namespace
}  // namespace picket::cli
