// Fixed-width little-endian and big-endian integers in byte strings. Big-endian for keys, whose
// byte order must be their order; little-endian for records.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace picket {

static_assert(std::endian::native == std::endian::little);

template <class T>
void PutFixed(std::string* out, T v) { out->append(reinterpret_cast<const char*>(&v), sizeof v); }

template <class T>
T LoadFixed(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void StoreFixed(void* p, T v) { std::memcpy(p, &v, sizeof v); }

inline void PutBigEndian64(std::string* out, uint64_t v) { PutFixed(out, __builtin_bswap64(v)); }
inline uint64_t LoadBigEndian64(const void* p) { return __builtin_bswap64(LoadFixed<uint64_t>(p)); }

}  // namespace picket
