// What travels in one WRITE_PACKET: bytes of a chunk and, per block they touch, the CRC32C of the part in
// that block. The CRCs are computed once, where the bytes enter the library, and travel with them.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/block.h"
#include "common/base/error.h"
#include "common/env/buffer.h"

namespace picket {

inline constexpr uint64_t kMaxPacketSize = 1 << 20;

struct Packet {
  uint64_t offset = 0;  // in the chunk
  Buffer data;          // not empty, at most kMaxPacketSize
  std::vector<uint32_t> crcs;
  uint64_t end() const { return offset + data.size(); }
};

Packet MakePacket(uint64_t offset, Buffer data);

// The part of `packet` from chunk offset `from` on, which lies inside it: a replica set may go on from
// the middle of a packet. The CRC of the block that is cut is computed anew, after the old one was
// verified, so that a byte that changed in memory is noticed (kCorrupt) and not signed.
Result<Packet> TailOf(const Packet& packet, uint64_t from);

// How many bytes a packet that starts at `offset` may have: it ends at a multiple of kMaxPacketSize or
// at the end of the chunk, so that after a flush the blocks are whole again.
uint64_t PacketRoom(uint64_t offset, uint64_t chunk_size);

}  // namespace picket
