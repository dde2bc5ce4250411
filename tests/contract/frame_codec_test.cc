// The byte format of connections: good streams cut anywhere, and bad ones.
#include "common/env/posix/frame_codec.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/coding.h"
#include "common/base/crc32c.h"
#include "common/base/rng.h"
#include "common/env/posix/send_queue.h"

namespace picket::posix {
namespace {

template <size_t N>
std::string ToString(const std::array<std::byte, N>& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string RandomText(Rng& rng, size_t size) {
  std::string s(size, '\0');
  for (char& c : s) c = static_cast<char>(rng.Next());
  return s;
}

std::string Encode(std::string_view header, std::string_view payload) {
  std::string out = ToString(EncodeFrameHead(header, payload.size()));
  out.append(header).append(payload);
  return out;
}

// As a socket does: gives at most `size_max` bytes per read. False after the decoder refused.
bool Feed(FrameDecoder& decoder, std::string_view bytes, const std::function<size_t()>& size_max,
          std::vector<Frame>* frames, Error* error) {
  while (true) {
    auto next = decoder.Next();
    if (!next) {
      *error = next.error();
      return false;
    }
    if (next->has_value()) {
      frames->push_back(std::move(**next));
      continue;
    }
    if (bytes.empty()) return true;
    size_t left = std::min(size_max(), bytes.size());
    size_t filled = 0;
    for (const FrameDecoder::Space space : decoder.Spaces()) {
      const size_t n = std::min(left, space.size());
      if (n > 0) std::memcpy(space.data(), bytes.data() + filled, n);
      filled += n;
      left -= n;
    }
    EXPECT_GT(filled, 0u) << "no space offered";
    if (filled == 0) return false;
    decoder.Filled(filled);
    bytes.remove_prefix(filled);
  }
}

size_t RandomSize(Rng& rng, size_t max) {
  switch (rng.Below(4)) {
    case 0: return 0;
    case 1: return rng.Below(64);
    case 2: return rng.Below(40'000);
    default: return rng.Below(max) + 1;
  }
}

TEST(FrameCodec, HeadIsAsDocumented) {
  const std::string head = ToString(EncodeFrameHead("123456789", 0x01020304));
  EXPECT_EQ(head.substr(0, 4), "PKTF");
  EXPECT_EQ(LoadFixed<uint32_t>(head.data() + 4), 9u);
  EXPECT_EQ(LoadFixed<uint32_t>(head.data() + 8), 0x01020304u);
  EXPECT_EQ(LoadFixed<uint32_t>(head.data() + 12), 0xE3069283u);
  EXPECT_EQ(ToString(EncodePreface()), std::string("PICKET\x01\x00", 8));
}

TEST(FrameCodec, StreamsCutAnywhere) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Rng rng(seed);
    const bool preface = rng.Chance(0.5);
    std::string stream = preface ? ToString(EncodePreface()) : "";
    std::vector<std::pair<std::string, std::string>> sent;
    for (uint64_t i = rng.Below(30) + 1; i > 0; --i) {
      sent.emplace_back(RandomText(rng, RandomSize(rng, 200'000)), RandomText(rng, RandomSize(rng, kMaxFramePayload)));
      stream += Encode(sent.back().first, sent.back().second);
    }
    const uint64_t cut_max = std::array<uint64_t, 4>{3, 100, 20'000, 2'000'000}[rng.Below(4)];
    if (cut_max < 100 && stream.size() > 300'000) continue;  // slow, and nothing new
    FrameDecoder decoder(Buffer::Allocate, preface);
    std::vector<Frame> got;
    Error error;
    ASSERT_TRUE(Feed(decoder, stream, [&] { return rng.Below(cut_max) + 1; }, &got, &error)) << error.ToString();
    ASSERT_EQ(got.size(), sent.size()) << "seed " << seed;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(got[i].header == sent[i].first) << "seed " << seed << " frame " << i;
      ASSERT_TRUE(got[i].payload.buffer().view() == sent[i].second) << "seed " << seed << " frame " << i;
    }
  }
}

TEST(FrameCodec, LargePayloadsAreNotCopied) {
  // What does not fit the small buffer is asked for in the final buffer, in one piece.
  Buffer allocated;
  FrameDecoder decoder([&](size_t size) { return allocated = Buffer::Allocate(size); }, false);
  const std::string bytes = Encode("header", std::string(kMaxFramePayload, 'x'));
  auto space = decoder.Spaces()[0];
  std::memcpy(space.data(), bytes.data(), 100);
  decoder.Filled(100);
  const auto next = decoder.Next();
  ASSERT_TRUE(next && !next->has_value());
  space = decoder.Spaces()[0];
  const size_t head = kFrameHeadSize + 6;
  EXPECT_EQ(space.data(), allocated.data() + (100 - head));
  EXPECT_EQ(space.size(), kMaxFramePayload - (100 - head));
}

struct Bad {
  const char* what;
  std::string bytes;
  bool preface = false;
};

TEST(FrameCodec, RefusesWhatIsNotAFrame) {
  std::vector<Bad> all;
  std::string good = Encode("header", "payload");
  all.push_back({"text", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"});
  all.push_back({"text instead of a preface", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", true});
  all.push_back({"no preface", good, true});
  std::string preface = ToString(EncodePreface());
  preface[6] = 2;
  all.push_back({"another protocol number", preface + good, true});
  for (size_t i = 0; i < 4; ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    all.push_back({"magic", bytes});
  }
  for (size_t i = 12; i < kFrameHeadSize + 6; ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    all.push_back({"CRC or header", bytes});
  }
  for (const auto& [offset, value] : {std::pair<size_t, size_t>{4, kMaxFrameHeader + 1}, {4, 0xffffffff},
                                      {8, kMaxFramePayload + 1}, {8, 0xffffffff}}) {
    std::string bytes = good;
    StoreFixed<uint32_t>(bytes.data() + offset, static_cast<uint32_t>(value));
    all.push_back({"length", bytes});
  }
  for (const Bad& bad : all) {
    for (const size_t cut : {size_t{1}, size_t{7}, size_t{1000}}) {
      FrameDecoder decoder(Buffer::Allocate, bad.preface);
      std::vector<Frame> frames;
      Error error;
      EXPECT_FALSE(Feed(decoder, bad.bytes, [cut] { return cut; }, &frames, &error)) << bad.what;
      EXPECT_EQ(error.code, Code::kCorrupt) << bad.what;
      EXPECT_TRUE(frames.empty()) << bad.what;
    }
  }
}

TEST(FrameCodec, ABadHeaderAllocatesNoPayload) {
  bool allocated = false;
  FrameDecoder decoder(
      [&](size_t size) {
        allocated = true;
        return Buffer::Allocate(size);
      },
      false);
  std::string bytes = Encode("header", std::string(1000, 'x'));
  bytes[kFrameHeadSize] ^= 1;
  std::vector<Frame> frames;
  Error error;
  EXPECT_FALSE(Feed(decoder, bytes, [] { return 50; }, &frames, &error));
  EXPECT_FALSE(allocated);
}

// Random damage: never a crash, and what comes before the damage is what was sent.
TEST(FrameCodec, DamagedStreamsYieldAPrefixOrAnError) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed);
    std::string stream;
    std::vector<std::string> headers;
    for (int i = 0; i < 8; ++i) {
      headers.push_back(RandomText(rng, rng.Below(300)));
      stream += Encode(headers.back(), RandomText(rng, rng.Below(3000)));
    }
    for (uint64_t n = rng.Below(4) + 1; n > 0; --n) stream[rng.Below(stream.size())] ^= static_cast<char>(1 << rng.Below(8));
    stream.resize(rng.Below(stream.size()) + 1);
    FrameDecoder decoder(Buffer::Allocate, false);
    std::vector<Frame> frames;
    Error error;
    if (!Feed(decoder, stream, [&] { return rng.Below(500) + 1; }, &frames, &error)) EXPECT_EQ(error.code, Code::kCorrupt);
    // A length may be damaged (it has no checksum of its own): then the next magic or CRC tells.
    for (size_t i = 0; i + 1 < frames.size(); ++i) EXPECT_TRUE(frames[i].header == headers[i]) << "seed " << seed;
  }
}

// ---- The sending side ------------------------------------------------------------------------------

TEST(SendQueue, PartialSendsLeaveTheSameBytes) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    SendQueue queue;
    std::string expected;
    if (rng.Chance(0.5)) {
      queue.PushPreface();
      expected = ToString(EncodePreface());
    }
    std::string got;
    int to_push = 200;
    while (to_push > 0 || !queue.empty()) {
      if (to_push > 0 && rng.Chance(0.6)) {
        --to_push;
        const std::string header = RandomText(rng, rng.Below(50));
        const std::string payload = RandomText(rng, rng.Below(3) * rng.Below(500));
        expected += Encode(header, payload);
        queue.Push(Frame(header, Buffer::Copy(payload)), false);
        ASSERT_EQ(queue.bytes(), expected.size() - got.size());
        continue;
      }
      std::array<iovec, SendQueue::kPiecesMax> pieces;
      const SendQueue::Batch batch = queue.Next(pieces);
      ASSERT_LE(batch.pieces, SendQueue::kPiecesMax);
      size_t left = rng.Below(5000);
      size_t taken = 0;
      for (size_t i = 0; i < batch.pieces; ++i) {
        ASSERT_GT(pieces[i].iov_len, 0u);
        const size_t n = std::min(left, pieces[i].iov_len);
        got.append(static_cast<const char*>(pieces[i].iov_base), n);
        taken += n;
        left -= n;
      }
      queue.Consume(taken);
    }
    ASSERT_TRUE(got == expected) << "seed " << seed;
    EXPECT_EQ(queue.bytes(), 0u);
  }
}

TEST(SendQueue, LaterFramesWaitForALoadingOne) {
  SendQueue queue;
  queue.Push(Frame("a", Payload()), false);
  const uint64_t ticket = queue.Push(Frame("b", FileSlice{nullptr, 0, 3}), true);
  queue.Push(Frame("c", Payload()), false);
  std::array<iovec, SendQueue::kPiecesMax> pieces;
  auto batch = queue.Next(pieces);
  EXPECT_EQ(batch.pieces, 4u);  // a, and b's head and header
  queue.Consume(kFrameHeadSize * 2 + 2);
  batch = queue.Next(pieces);
  EXPECT_EQ(batch.pieces, 0u);
  EXPECT_EQ(batch.file, nullptr);
  queue.Loaded(ticket, Buffer::Copy("xyz"));
  batch = queue.Next(pieces);
  EXPECT_EQ(batch.pieces, 3u);
  EXPECT_EQ(pieces[0].iov_len, 3u);
}

}  // namespace
}  // namespace picket::posix
