// The parts without I/O.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/core/block_check.h"
#include "client/core/location_cache.h"
#include "client/core/mutation_ids.h"
#include "client/core/packet.h"
#include "client/core/server_health.h"
#include "client/core/write_failure.h"
#include "common/base/crc32c.h"

namespace picket {
namespace {

std::string Bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

// ---- packets ---------------------------------------------------------------------------------------

// The CRC of each block's part of [offset, offset + bytes), the slow way.
std::vector<uint32_t> PieceCrcs(uint64_t offset, std::string_view bytes) {
  std::vector<uint32_t> crcs;
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(bytes.size(), kBlockSize - offset % kBlockSize);
    crcs.push_back(Crc32c(bytes.substr(0, size)));
    bytes.remove_prefix(size);
    offset += size;
  }
  return crcs;
}

TEST(Packet, HasACrcForEachBlockItTouches) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, kBlockSize - 1, kBlockSize, kMaxPacketSize + 777}) {
    for (const size_t size : {size_t{1}, size_t{kBlockSize}, size_t{kBlockSize + 1}, size_t{kMaxPacketSize}}) {
      const std::string bytes = Bytes(size);
      const Packet packet = MakePacket(offset, Buffer::Copy(bytes));
      EXPECT_EQ(packet.crcs, PieceCrcs(offset, bytes)) << offset << " " << size;
    }
  }
}

TEST(Packet, TailFromEveryKindOfPlace) {
  const std::string bytes = Bytes(3 * kBlockSize + 100);
  const uint64_t offset = kBlockSize + 5;
  const Packet packet = MakePacket(offset, Buffer::Copy(bytes));
  for (const uint64_t from : {offset, offset + 1, 2 * kBlockSize - 1, 2 * kBlockSize, 2 * kBlockSize + 1,
                              3 * kBlockSize, packet.end() - 1}) {
    auto tail = TailOf(packet, from);
    ASSERT_TRUE(tail);
    EXPECT_EQ(tail->offset, from);
    EXPECT_EQ(tail->end(), packet.end());
    EXPECT_EQ(tail->data.view(), std::string_view(bytes).substr(from - offset));
    EXPECT_EQ(tail->crcs, PieceCrcs(from, tail->data.view())) << from;
  }
}

TEST(Packet, AByteThatChangedInMemoryIsNotSigned) {
  const Packet packet = MakePacket(0, Buffer::Copy(Bytes(kBlockSize)));
  packet.data.data()[7] ^= std::byte{1};
  auto tail = TailOf(packet, 100);
  ASSERT_FALSE(tail);
  EXPECT_EQ(tail.error().code, Code::kCorrupt);
}

TEST(Packet, EndsAtItsBoundary) {
  EXPECT_EQ(PacketRoom(0, 64 * kMaxPacketSize), kMaxPacketSize);
  EXPECT_EQ(PacketRoom(5, 64 * kMaxPacketSize), kMaxPacketSize - 5);
  EXPECT_EQ(PacketRoom(3 * kMaxPacketSize - 1, 3 * kMaxPacketSize), 1u);
}

// ---- who is to blame (D18) -------------------------------------------------------------------------

struct Blame {
  Code code;
  uint64_t named;  // by the error
  bool repeated;
  WriteVerdict verdict;
  uint64_t blamed;
};
class WriteFailureTest : public testing::TestWithParam<Blame> {};

TEST_P(WriteFailureTest, Verdict) {
  const Blame& row = GetParam();
  Error error(row.code, "");
  error.server = row.named;
  const WriteFailure failure = JudgeWriteFailure(error, ServerId(1), row.repeated);
  EXPECT_EQ(failure.verdict, row.verdict) << CodeName(row.code);
  EXPECT_EQ(failure.blamed.value, row.blamed) << CodeName(row.code);
}

constexpr auto kFinal = WriteVerdict::kFinal;
constexpr auto kAskAgain = WriteVerdict::kAskAgain;
constexpr auto kBlame = WriteVerdict::kBlame;
constexpr auto kProbe = WriteVerdict::kProbe;
INSTANTIATE_TEST_SUITE_P(
    Table, WriteFailureTest,
    testing::Values(
        // Final for the session.
        Blame{Code::kStaleGeneration, 1, false, kFinal, 0},
        Blame{Code::kStaleEpoch, 1, false, kFinal, 0}, Blame{Code::kIntegrity, 2, false, kFinal, 0},
        Blame{Code::kInvalidArgument, 1, false, kFinal, 0}, Blame{Code::kNotLeaseHolder, 0, false, kFinal, 0},
        Blame{Code::kWrongCluster, 0, false, kFinal, 0}, Blame{Code::kTokenForged, 1, false, kFinal, 0},
        // The replica said where it stands; nobody is named, whoever answered.
        Blame{Code::kStaleVersion, 1, false, kAskAgain, 0},
        Blame{Code::kReplicaBehind, 2, false, kAskAgain, 0}, Blame{Code::kReplicaUnclean, 2, false, kAskAgain, 0},
        Blame{Code::kNotPrimary, 1, false, kAskAgain, 0}, Blame{Code::kTokenExpired, 1, false, kAskAgain, 0},
        Blame{Code::kOutOfOrder, 2, false, kAskAgain, 0}, Blame{Code::kSuperseded, 0, false, kAskAgain, 0},
        Blame{Code::kNotFound, 1, false, kAskAgain, 0},
        // A broken line is not a failed replica.
        Blame{Code::kConnectionLost, 0, false, kAskAgain, 0}, Blame{Code::kConnectionLost, 2, true, kAskAgain, 0},
        Blame{Code::kUnavailable, 2, false, kAskAgain, 0},
        // Silence.
        Blame{Code::kDeadlineExceeded, 0, false, kProbe, 0}, Blame{Code::kDeadlineExceeded, 2, false, kBlame, 2},
        // Disks.
        Blame{Code::kIoError, 0, false, kBlame, 1}, Blame{Code::kIoError, 3, false, kBlame, 3},
        Blame{Code::kNoSpace, 3, false, kBlame, 3}, Blame{Code::kReadOnly, 2, false, kBlame, 2},
        // Checksums: the receiver that names nobody cannot tell, the first time.
        Blame{Code::kCorrupt, 2, false, kBlame, 2}, Blame{Code::kCorrupt, 0, false, kAskAgain, 0},
        Blame{Code::kCorrupt, 0, true, kBlame, 1}));

// ---- verified reads --------------------------------------------------------------------------------

proto::ReadResponse AnswerFor(uint64_t offset, std::string_view payload, uint64_t readable) {
  proto::ReadResponse answer;
  answer.set_offset(offset);
  answer.set_readable_length(readable);
  for (size_t at = 0; at < payload.size(); at += kBlockSize) answer.add_block_crcs(Crc32c(payload.substr(at, kBlockSize)));
  return answer;
}

TEST(BlockCheck, CutsWhatWasAsked) {
  const std::string chunk = Bytes(3 * kBlockSize + 10);
  const auto answer = AnswerFor(kBlockSize, std::string_view(chunk).substr(kBlockSize), chunk.size());
  const Buffer payload = Buffer::Copy(std::string_view(chunk).substr(kBlockSize));
  for (const auto& [offset, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {kBlockSize, 1}, {kBlockSize + 7, kBlockSize}, {3 * kBlockSize + 9, 1}, {2 * kBlockSize, kBlockSize + 10}}) {
    auto bytes = VerifiedBytes(answer, payload, offset, size);
    ASSERT_TRUE(bytes) << bytes.error().ToString();
    EXPECT_EQ(bytes->view(), std::string_view(chunk).substr(offset, size));
  }
}

TEST(BlockCheck, EndsAtTheReadableLength) {
  const std::string chunk = Bytes(100);
  const auto answer = AnswerFor(0, chunk, 100);
  const Buffer payload = Buffer::Copy(chunk);
  EXPECT_EQ(VerifiedBytes(answer, payload, 90, 50)->size(), 10u);
  EXPECT_TRUE(VerifiedBytes(answer, payload, 100, 50)->empty());
  EXPECT_TRUE(VerifiedBytes(answer, payload, 5000, 50)->empty());
  EXPECT_TRUE(VerifiedBytes(AnswerFor(0, "", 100), Buffer(), 0, 0)->empty()) << "a question for the length";
}

TEST(BlockCheck, RefusesWhatDoesNotMatch) {
  const std::string chunk = Bytes(2 * kBlockSize);
  const auto good = AnswerFor(0, chunk, chunk.size());
  Buffer bad = Buffer::Copy(chunk);
  bad.data()[kBlockSize + 1] ^= std::byte{4};
  EXPECT_EQ(VerifiedBytes(good, bad, 0, 10).error().code, Code::kCorrupt) << "also outside of what was asked";
  auto too_few = good;
  too_few.mutable_block_crcs()->RemoveLast();
  EXPECT_EQ(VerifiedBytes(too_few, Buffer::Copy(chunk), 0, 10).error().code, Code::kCorrupt);
  auto crooked = good;
  crooked.set_offset(1);
  EXPECT_EQ(VerifiedBytes(crooked, Buffer::Copy(chunk), 1, 10).error().code, Code::kCorrupt);
  auto elsewhere = AnswerFor(kBlockSize, std::string_view(chunk).substr(kBlockSize), chunk.size());
  EXPECT_EQ(VerifiedBytes(elsewhere, Buffer::Copy(std::string_view(chunk).substr(kBlockSize)), 0, 10).error().code,
            Code::kCorrupt);
  auto shorter = AnswerFor(0, std::string_view(chunk).substr(0, kBlockSize), chunk.size());
  EXPECT_EQ(VerifiedBytes(shorter, Buffer::Copy(std::string_view(chunk).substr(0, kBlockSize)), 0, kBlockSize + 1)
                .error()
                .code,
            Code::kCorrupt);
}

// ---- tables ----------------------------------------------------------------------------------------

ChunkPlace Place(uint64_t index, uint64_t chunk) {
  ChunkPlace place;
  place.index = index;
  place.chunk = ChunkId(chunk);
  return place;
}

TEST(LocationCache, ForgetsTheLeastRecentlyUsed) {
  LocationCache cache(3);
  for (uint64_t i = 0; i < 3; ++i) cache.Put(InodeId(1), Place(i, 100 + i));
  ASSERT_TRUE(cache.Find(InodeId(1), 0));
  cache.Put(InodeId(2), Place(0, 200));
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_FALSE(cache.Find(InodeId(1), 1));
  EXPECT_EQ(cache.Find(InodeId(1), 0)->chunk.value, 100u);
  EXPECT_EQ(cache.Find(InodeId(2), 0)->chunk.value, 200u);
  cache.Put(InodeId(2), Place(0, 201));
  EXPECT_EQ(cache.Find(InodeId(2), 0)->chunk.value, 201u);
  cache.Forget(InodeId(2), 0);
  cache.Forget(InodeId(2), 0);
  EXPECT_FALSE(cache.Find(InodeId(2), 0));
}

TEST(LocationCache, KeepsReadableReplicasOnly) {
  proto::ChunkLocation location;
  location.set_chunk(5);
  for (uint64_t i = 1; i <= 3; ++i) {
    auto& replica = *location.add_replicas();
    replica.mutable_hop()->set_server(i);
    replica.mutable_hop()->set_host("h");
    replica.set_counted(i == 1);
    replica.set_readable(i != 2);  // the third is between two committed sets
    if (i == 2) replica.set_state(proto::CORRUPT);
  }
  const ChunkPlace place = PlaceFromProto(location);
  ASSERT_EQ(place.corrupt.size(), 1u);
  EXPECT_EQ(place.corrupt[0].server.value, 2u);
  ASSERT_EQ(place.replicas.size(), 2u);
  EXPECT_EQ(place.replicas[0].server.value, 1u);
  EXPECT_EQ(place.replicas[1].server.value, 3u);
}

TEST(ServerHealth, OrdersByMarkPreferenceAndSpread) {
  const std::vector<ReplicaPlace> replicas{{ServerId(1), {}}, {ServerId(2), {}}, {ServerId(3), {}}};
  const auto order = [&](const ServerHealth& health, uint64_t preferred, uint64_t spread, Mono now) {
    std::vector<uint64_t> ids;
    for (const auto& r : health.Order(replicas, ServerId(preferred), spread, now)) ids.push_back(r.server.value);
    return ids;
  };
  using Ids = std::vector<uint64_t>;
  const Mono now{100s};
  ServerHealth health;
  EXPECT_EQ(order(health, 0, 0, now), (Ids{1, 2, 3}));
  EXPECT_EQ(order(health, 0, 1, now), (Ids{2, 3, 1}));
  EXPECT_EQ(order(health, 0, UINT64_MAX, now).size(), 3u);
  EXPECT_EQ(order(health, 3, 0, now), (Ids{3, 1, 2}));
  health.Disappointed(ServerId(3), now);
  EXPECT_EQ(order(health, 3, 0, now), (Ids{1, 2, 3}));
  EXPECT_EQ(order(health, 0, 2, now), (Ids{1, 2, 3}));
  EXPECT_EQ(order(health, 3, 0, now + ServerHealth::kAvoidFor), (Ids{3, 1, 2})) << "it fades";
  health.Served(ServerId(3));
  EXPECT_EQ(order(health, 3, 0, now), (Ids{3, 1, 2}));
  EXPECT_TRUE(health.Order({}, ServerId(), 5, now).empty());
}

TEST(ServerHealth, IsBounded) {
  ServerHealth health;
  for (uint64_t i = 1; i < 5000; ++i) health.Disappointed(ServerId(i), Mono(1s));
  EXPECT_LE(health.AllAvoided(Mono(1s)).size(), ServerHealth::kMaxServers);
  EXPECT_TRUE(health.Avoided(ServerId(4999), Mono(1s)));
}

TEST(MutationIds, TellTheLowestOpenOne) {
  MutationIds ids(ClientId(9));
  const auto a = ids.Next();
  const auto b = ids.Next();
  EXPECT_EQ(a.client(), 9u);
  EXPECT_EQ(b.sequence(), a.sequence() + 1);
  EXPECT_EQ(b.first_unacked(), a.sequence());
  ids.Done(b.sequence());
  EXPECT_EQ(ids.Next().first_unacked(), a.sequence());
  ids.Done(a.sequence());
  EXPECT_EQ(ids.Next().first_unacked(), b.sequence() + 1);
}

}  // namespace
}  // namespace picket
