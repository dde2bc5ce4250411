#include "common/obs/units.h"

#include <gtest/gtest.h>

namespace picket {
namespace {

TEST(Units, SizesAreRead) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"0", 0},           {"512", 512},
      {"512B", 512},      {"1KiB", 1024},
      {"64MiB", 64u << 20}, {"64mib", 64u << 20},
      {"64M", 64u << 20}, {"64m", 64u << 20},
      {"64 MiB", 64u << 20}, {"1.5GiB", 3ull << 29},
      {"0.5K", 512},      {"2TiB", uint64_t{2} << 40},
      {"16383PiB", uint64_t{16383} << 50}, {"18446744073709551615", UINT64_MAX},
  };
  for (const auto& [text, bytes] : cases) {
    auto parsed = ParseSize(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(Units, SizesAreRefused) {
  for (const char* text : {"", "MiB", "-1", "1.MiB", ".5MiB", "64MX", "1MiBx", "0.3B", "16384PiB",
                           "18446744073709551616", "1e6", "0x10", "1.5", "nan"}) {
    EXPECT_FALSE(ParseSize(text)) << text;
  }
  auto decimal = ParseSize("64MB");
  ASSERT_FALSE(decimal);
  EXPECT_NE(decimal.error().message.find("write MiB"), std::string::npos) << decimal.error().message;
}

TEST(Units, SizesAreWrittenSoThatTheyReadBack) {
  EXPECT_EQ(FormatSize(0), "0B");
  EXPECT_EQ(FormatSize(1000), "1000B");
  EXPECT_EQ(FormatSize(64u << 20), "64MiB");
  EXPECT_EQ(FormatSize(1536), "1536B");
  EXPECT_EQ(FormatSize(3ull << 29), "1536MiB");
  for (const uint64_t v : {uint64_t{0}, uint64_t{1}, uint64_t{1023}, uint64_t{1024}, uint64_t{3} << 40, UINT64_MAX}) {
    EXPECT_EQ(ParseSize(FormatSize(v)), v);
  }
}

TEST(Units, RoundedSizesHaveThreeDigitsAtMost) {
  EXPECT_EQ(FormatSizeRounded(0), "0 B");
  EXPECT_EQ(FormatSizeRounded(1023), "1023 B");
  EXPECT_EQ(FormatSizeRounded(1024), "1 KiB");
  EXPECT_EQ(FormatSizeRounded(1536), "1.5 KiB");
  EXPECT_EQ(FormatSizeRounded(10 * 1024 + 600), "11 KiB");
  EXPECT_EQ(FormatSizeRounded(1023 * 1024), "1 MiB");
  EXPECT_EQ(FormatSizeRounded(uint64_t{640} << 20), "640 MiB");
  EXPECT_EQ(FormatSizeRounded(UINT64_MAX), "16384 PiB");
}

TEST(Units, DurationsAreRead) {
  EXPECT_EQ(ParseDuration("500ms"), Nanos(500ms));
  EXPECT_EQ(ParseDuration("60s"), Nanos(60s));
  EXPECT_EQ(ParseDuration("1.5s"), Nanos(1500ms));
  EXPECT_EQ(ParseDuration("5m"), Nanos(5min));
  EXPECT_EQ(ParseDuration("2h"), Nanos(2h));
  EXPECT_EQ(ParseDuration("3d"), Nanos(72h));
  EXPECT_EQ(ParseDuration("10us"), Nanos(10us));
  EXPECT_EQ(ParseDuration("0"), Nanos(0));
  for (const char* text : {"", "5", "s", "-1s", "1 s", "1M", "1min", "200000d", "1.0000000001us", "0.5"}) {
    EXPECT_FALSE(ParseDuration(text)) << text;
  }
}

TEST(Units, DurationsAreWrittenSoThatTheyReadBack) {
  EXPECT_EQ(FormatDuration(0s), "0s");
  EXPECT_EQ(FormatDuration(60s), "1m");
  EXPECT_EQ(FormatDuration(90s), "90s");
  EXPECT_EQ(FormatDuration(72h), "3d");
  EXPECT_EQ(FormatDuration(1500us), "1500us");
  for (const Nanos d : {Nanos(1us), Nanos(999ms), Nanos(61min), Nanos(0)}) EXPECT_EQ(ParseDuration(FormatDuration(d)), d);
}

}  // namespace
}  // namespace picket
