#include "common/base/coding.h"

#include <gtest/gtest.h>

namespace picket {
namespace {

TEST(Coding, FixedIsLittleEndian) {
  std::string out;
  PutFixed(&out, uint32_t{0x04030201});
  EXPECT_EQ(out, std::string("\x01\x02\x03\x04"));
  EXPECT_EQ(LoadFixed<uint32_t>(out.data()), 0x04030201u);
  EXPECT_EQ(LoadFixed<uint16_t>(out.data() + 1), 0x0302u);  // unaligned
}

TEST(Coding, StoreTouchesOnlyItsBytes) {
  char bytes[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  StoreFixed(bytes + 3, uint16_t{0x0201});
  EXPECT_EQ(std::string(bytes, 8), std::string("\x09\x09\x09\x01\x02\x09\x09\x09"));
}

TEST(Coding, BigEndianBytesOrderAsNumbers) {
  const uint64_t numbers[] = {0, 1, 255, 256, uint64_t{1} << 32, (uint64_t{1} << 63) - 1, uint64_t{1} << 63, UINT64_MAX};
  std::string last;
  for (const uint64_t n : numbers) {
    std::string key;
    PutBigEndian64(&key, n);
    EXPECT_EQ(LoadBigEndian64(key.data()), n);
    if (n != 0) EXPECT_LT(last, key);
    last = key;
  }
}

}  // namespace
}  // namespace picket
