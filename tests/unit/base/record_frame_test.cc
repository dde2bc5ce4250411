#include "common/base/record_frame.h"

#include <gtest/gtest.h>

#include "common/base/crc32c.h"

namespace picket {
namespace {

RecordHeader Sample() {
  RecordHeader h;
  h.length = 5;
  h.client = 0x1122334455667788;
  h.sequence = 42;
  h.crc = Crc32c("hello");
  return h;
}

TEST(RecordFrame, ComesBackAsItWentIn) {
  const std::string bytes = EncodeRecordHeader(Sample());
  ASSERT_EQ(bytes.size(), kRecordHeaderSize);
  auto h = DecodeRecordHeader(bytes);
  ASSERT_TRUE(h) << h.error().ToString();
  EXPECT_FALSE(h->padding);
  EXPECT_EQ(h->length, 5u);
  EXPECT_EQ(h->client, 0x1122334455667788u);
  EXPECT_EQ(h->sequence, 42u);
  EXPECT_EQ(h->crc, Crc32c("hello"));
  EXPECT_EQ(h->frame_size(), 37u);
}

TEST(RecordFrame, HasTheDocumentedBytes) {
  const std::string bytes = EncodeRecordHeader(Sample());
  EXPECT_EQ(bytes.substr(0, 4), "PRec");
  EXPECT_EQ(bytes.substr(4, 4), std::string("\5\0\0\0", 4));
  EXPECT_EQ(bytes.substr(8, 8), "\x88\x77\x66\x55\x44\x33\x22\x11");
}

TEST(RecordFrame, EveryFlippedBitIsNoticed) {
  const std::string good = EncodeRecordHeader(Sample());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    auto h = DecodeRecordHeader(bad);
    ASSERT_FALSE(h) << "bit " << bit;
    EXPECT_EQ(h.error().code, Code::kCorrupt);
  }
  EXPECT_FALSE(DecodeRecordHeader(std::string(kRecordHeaderSize, '\0')));
}

TEST(RecordFrame, PaddingFillsTheRoomExactly) {
  for (uint64_t room : {uint64_t{1}, uint64_t{31}, uint64_t{32}, uint64_t{33}, uint64_t{5000}}) {
    const std::string bytes = MakePadding(room);
    ASSERT_EQ(bytes.size(), room);
    if (room < kRecordHeaderSize) {
      EXPECT_EQ(bytes, std::string(room, '\0'));
      continue;
    }
    auto h = DecodeRecordHeader(std::string_view(bytes).substr(0, kRecordHeaderSize));
    ASSERT_TRUE(h);
    EXPECT_TRUE(h->padding);
    EXPECT_EQ(h->frame_size(), room);
    EXPECT_EQ(bytes.substr(kRecordHeaderSize), std::string(room - kRecordHeaderSize, '\0'));
  }
}

TEST(RecordFrame, AFewBytesMayBeginARecordOrNot) {
  const std::string bytes = EncodeRecordHeader(Sample());
  for (size_t n = 0; n < kRecordHeaderSize; ++n) EXPECT_TRUE(MayBeginRecord(std::string_view(bytes).substr(0, n)));
  EXPECT_TRUE(MayBeginRecord("PPa"));
  EXPECT_FALSE(MayBeginRecord("hello"));
  EXPECT_FALSE(MayBeginRecord(std::string(4, '\0')));
}

TEST(RecordFrame, ARecordIsAtMostAQuarterOfAChunkAndOnePacket) {
  EXPECT_EQ(MaxRecord(1 << 20), (256u << 10) - 32);
  EXPECT_EQ(MaxRecord(4 << 20), (1u << 20) - 32);
  EXPECT_EQ(MaxRecord(64 << 20), (1u << 20) - 32);
}

}  // namespace
}  // namespace picket
