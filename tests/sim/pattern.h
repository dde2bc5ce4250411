// Bytes that can be recomputed from a seed and an offset.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "common/base/rng.h"
#include "common/env/buffer.h"

namespace picket::sim {

inline uint64_t PatternWord(uint64_t seed, uint64_t index) { return Rng(seed ^ index * 0x9e3779b97f4a7c15ull).Next(); }

inline void FillPattern(uint64_t seed, uint64_t offset, std::span<std::byte> into) {
  for (size_t done = 0; done < into.size();) {
    const uint64_t at = offset + done;
    const uint64_t word = PatternWord(seed, at / 8);
    const size_t skip = at % 8;
    const size_t n = std::min(into.size() - done, 8 - skip);
    std::memcpy(into.data() + done, reinterpret_cast<const char*>(&word) + skip, n);
    done += n;
  }
}

inline Buffer PatternBuffer(uint64_t seed, uint64_t offset, size_t size) {
  Buffer b = Buffer::Allocate(size);
  FillPattern(seed, offset, b.span());
  return b;
}

// The first offset (of the file) at which `bytes` differ from the pattern.
inline std::optional<uint64_t> PatternDiffers(uint64_t seed, uint64_t offset, std::span<const std::byte> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const uint64_t at = offset + done;
    const uint64_t word = PatternWord(seed, at / 8);
    const size_t skip = at % 8;
    const size_t n = std::min(bytes.size() - done, 8 - skip);
    if (std::memcmp(bytes.data() + done, reinterpret_cast<const char*>(&word) + skip, n) != 0) return at;
    done += n;
  }
  return std::nullopt;
}

}  // namespace picket::sim
