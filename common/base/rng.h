// A small seeded generator (splitmix64): the same numbers on every standard library, which the
// standard distributions do not promise. Not for secrets.
#pragma once

#include <cstdint>

namespace picket {

class Rng {
 public:
  explicit constexpr Rng(uint64_t seed) : state_(seed) {}
  constexpr uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // Uniform in [0, n); 0 when n == 0.
  constexpr uint64_t Below(uint64_t n) {
    return n == 0 ? 0 : static_cast<uint64_t>(static_cast<unsigned __int128>(Next()) * n >> 64);
  }
  constexpr int64_t Range(int64_t low, int64_t high) {  // inclusive
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
  }
  constexpr bool Chance(double p) { return static_cast<double>(Next() >> 11) * 0x1.0p-53 < p; }

 private:
  uint64_t state_;
};

}  // namespace picket
