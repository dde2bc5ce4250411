#include "chunkserver/replica_format.h"

#include <gtest/gtest.h>

namespace picket::cs {
namespace {

Slot Sample() {
  Slot s;
  s.sequence = 12;
  s.cluster = "00112233445566ff";
  s.chunk = ChunkId(0x123456789abcdef0);
  s.inode = InodeId(42);
  s.version = Version(3, 9);
  s.generation = Generation(3, 2);
  s.state = ReplicaState::kSealed;
  s.length = 70000;
  s.durable_length = 66000;
  s.tail_crc = 0xdeadbeef;
  s.digest = 0xfeedface;
  s.raised_in = Incarnation(7);
  s.instance = InstanceId(1025);
  s.attempt = AttemptId(88);
  s.chunk_size = 64 << 20;
  s.sealed_generation = Generation(3, 1);
  s.lineage = 5;
  s.epoch = Epoch{3, 99};
  s.revision = 1234;
  s.deleted_ns = -5;
  return s;
}

TEST(ReplicaFormat, SlotsRoundTrip) {
  const std::string bytes = EncodeSlot(Sample());
  EXPECT_EQ(bytes.size(), kSlotSize);
  auto slot = DecodeSlot(bytes);
  ASSERT_TRUE(slot) << slot.error().ToString();
  EXPECT_EQ(*slot, Sample());
}

TEST(ReplicaFormat, EveryFlippedBitOfASlotIsSeen) {
  const std::string good = EncodeSlot(Sample());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(DecodeSlot(bad)) << "bit " << bit;
  }
}

TEST(ReplicaFormat, EveryTruncatedSlotIsSeen) {
  const std::string good = EncodeSlot(Sample());
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(DecodeSlot(std::string_view(good).substr(0, n))) << n;
}

TEST(ReplicaFormat, TheHigherSequenceCountsAndATornSlotLeavesTheOther) {
  Slot older = Sample(), newer = Sample();
  newer.sequence = 13;
  const std::string a = EncodeSlot(older), b = EncodeSlot(newer);
  EXPECT_EQ((*NewestSlot(a + b))->sequence, 13u);
  EXPECT_EQ((*NewestSlot(b + a))->sequence, 13u);
  std::string torn = b.substr(0, 512) + a.substr(512);
  EXPECT_EQ((*NewestSlot(a + torn))->sequence, 12u);
  EXPECT_EQ((*NewestSlot(a))->sequence, 12u);
}

TEST(ReplicaFormat, ZerosAreAnInterruptedCreationAndGarbageIsNot) {
  EXPECT_FALSE(NewestSlot(std::string(2 * kSlotSize, '\0'))->has_value());
  EXPECT_FALSE(NewestSlot("")->has_value());
  EXPECT_EQ(NewestSlot(std::string(2 * kSlotSize, 'x')).error().code, Code::kCorrupt);
}

TEST(ReplicaFormat, ContradictoryLengthsAreRefused) {
  Slot s = Sample();
  s.durable_length = s.length + 1;
  EXPECT_FALSE(DecodeSlot(EncodeSlot(s)));
  s = Sample();
  s.chunk_size = 3 << 20;
  EXPECT_FALSE(DecodeSlot(EncodeSlot(s)));
}

TEST(ReplicaFormat, ProgressRoundTripsAndDamageIsSeen) {
  Progress p;
  p.lineage = 4;
  p.length = 1 << 20;
  p.tail_crc = 17;
  const std::string good = EncodeProgress(p);
  EXPECT_EQ(good.size(), kProgressSize);
  auto back = DecodeProgress(good);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->length, p.length);
  EXPECT_EQ(back->lineage, p.lineage);
  EXPECT_EQ(back->tail_crc, p.tail_crc);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    EXPECT_FALSE(DecodeProgress(bad)) << i;
  }
  EXPECT_FALSE(DecodeProgress(good.substr(0, 31)));
}

TEST(ReplicaFormat, TheTableIsSizedByTheChunk) {
  EXPECT_EQ(TableBytes(1 << 20), 4096u);
  EXPECT_EQ(TableBytes(64 << 20), 4096u);
  EXPECT_EQ(TableBytes(1 << 30), 65536u);
  EXPECT_TRUE(ValidChunkSize(1 << 30));
  EXPECT_FALSE(ValidChunkSize(1 << 19));
  EXPECT_FALSE(ValidChunkSize((64 << 20) + 1));
}

}  // namespace
}  // namespace picket::cs
