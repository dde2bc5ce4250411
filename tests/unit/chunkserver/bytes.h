// Bytes for tests of replicas, and their checksums as a packet bears them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/block.h"
#include "common/base/crc32c.h"
#include "common/base/rng.h"

namespace picket::cs {

inline std::string RandomBytes(uint64_t seed, size_t size) {
  Rng rng(seed);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(rng.Next());
  return out;
}

inline std::vector<uint32_t> PieceCrcs(uint64_t offset, std::string_view bytes) {
  std::vector<uint32_t> crcs;
  for (size_t at = 0; at < bytes.size();) {
    const size_t n = std::min<size_t>(bytes.size() - at, kBlockSize - (offset + at) % kBlockSize);
    crcs.push_back(Crc32c(bytes.substr(at, n)));
    at += n;
  }
  return crcs;
}

}  // namespace picket::cs
