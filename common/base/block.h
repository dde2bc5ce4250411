// The checksum unit of the store: a chunk is a row of 64 KiB blocks, each with a CRC32C; the last one as far
// as it goes (GFS §5.2). Part of the protocol and of the disk format. std only.
#pragma once

#include <cstdint>

namespace picket {

inline constexpr uint64_t kBlockSize = 64 << 10;

// Blocks that `length` bytes touch.
constexpr uint64_t BlocksIn(uint64_t length) { return (length + kBlockSize - 1) / kBlockSize; }

}  // namespace picket
