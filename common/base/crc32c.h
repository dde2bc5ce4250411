// CRC32C (Castagnoli), the checksum of every block, slot and log record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace picket {

// The CRC of `size` bytes, or of the concatenation when `crc` is the CRC of what came before.
// Crc32c("123456789") == 0xE3069283. Crc32c of nothing is 0.
uint32_t Crc32c(const void* data, size_t size, uint32_t crc = 0);
inline uint32_t Crc32c(std::string_view s, uint32_t crc = 0) { return Crc32c(s.data(), s.size(), crc); }

}  // namespace picket
