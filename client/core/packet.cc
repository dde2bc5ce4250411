#include "client/core/packet.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"

namespace picket {
namespace {

// The size of the piece that begins at `offset`: up to the end of its block, or `left` bytes.
uint64_t PieceSize(uint64_t offset, uint64_t left) { return std::min(kBlockSize - offset % kBlockSize, left); }

}  // namespace

Packet MakePacket(uint64_t offset, Buffer data) {
  PICKET_CHECK(!data.empty() && data.size() <= kMaxPacketSize);
  Packet packet{offset, std::move(data), {}};
  packet.crcs.reserve(packet.data.size() / kBlockSize + 2);
  for (uint64_t at = 0; at < packet.data.size();) {
    const uint64_t size = PieceSize(offset + at, packet.data.size() - at);
    packet.crcs.push_back(Crc32c(packet.data.data() + at, size));
    at += size;
  }
  return packet;
}

Result<Packet> TailOf(const Packet& packet, uint64_t from) {
  PICKET_CHECK(packet.offset <= from && from < packet.end());
  uint64_t piece = packet.offset;
  size_t index = 0;
  while (true) {
    const uint64_t size = PieceSize(piece, packet.end() - piece);
    if (from < piece + size) break;
    piece += size;
    ++index;
  }
  Packet tail{from, packet.data.Slice(from - packet.offset, packet.end() - from), {}};
  tail.crcs.assign(packet.crcs.begin() + static_cast<ptrdiff_t>(index), packet.crcs.end());
  if (piece < from) {
    const uint64_t size = PieceSize(piece, packet.end() - piece);
    const Buffer whole = packet.data.Slice(piece - packet.offset, size);
    if (Crc32c(whole.view()) != packet.crcs[index] && !PICKET_MUTANT(client_verify_tail)) {
      return Fail(Code::kCorrupt, "bytes waiting to be sent changed in this process's memory");
    }
    tail.crcs.front() = Crc32c(whole.Slice(from - piece, size - (from - piece)).view());
  }
  return tail;
}

uint64_t PacketRoom(uint64_t offset, uint64_t chunk_size) {
  PICKET_CHECK(offset < chunk_size);
  return std::min(kMaxPacketSize - offset % kMaxPacketSize, chunk_size - offset);
}

}  // namespace picket
