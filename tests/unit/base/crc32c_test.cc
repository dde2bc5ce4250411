#include "common/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/rng.h"

namespace picket {
namespace {

// Bit by bit, from the definition.
uint32_t Reference(std::string_view bytes) {
  uint32_t state = ~0u;
  for (const char c : bytes) {
    state ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~state;
}

TEST(Crc32c, CheckVector) { EXPECT_EQ(Crc32c("123456789"), 0xe3069283u); }

TEST(Crc32c, OfNothingIsZero) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c(std::string_view(), 0x12345678u), 0x12345678u);
}

// RFC 3720, appendix B.4.
TEST(Crc32c, IscsiVectors) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(Crc32c(rising), 0x46dd794eu);
}

TEST(Crc32c, ChainsAtEverySplitAndAlignment) {
  Rng rng(7);
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += static_cast<char>(rng.Next());
  const uint32_t whole = Reference(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const std::string_view view = bytes;
    EXPECT_EQ(Crc32c(view.substr(cut), Crc32c(view.substr(0, cut))), whole) << cut;
    EXPECT_EQ(Crc32c(view.substr(cut)), Reference(view.substr(cut))) << cut;
  }
}

}  // namespace
}  // namespace picket
