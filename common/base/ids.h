// Strong identifiers and fencing tokens. std only.
//
// Identities are compared for equality (ordering exists for containers only); tokens are ordered
// and only the master mints them (design §1).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace picket {

// A 64-bit identity; two kinds of identity never mix. 0 = none.
template <class Tag>
struct Id {
  uint64_t value = 0;
  constexpr Id() = default;
  constexpr explicit Id(uint64_t v) : value(v) {}
  constexpr explicit operator bool() const { return value != 0; }
  constexpr auto operator<=>(const Id&) const = default;
};

using InodeId = Id<struct InodeTag>;
using ChunkId = Id<struct ChunkTag>;        // the chunk handle: cluster-wide, never reused
using ServerId = Id<struct ServerTag>;      // minted by a chunkserver's init, random
using ClientId = Id<struct ClientTag>;      // minted by a client at its start, random; the write-session holder
using Incarnation = Id<struct IncarnationTag>;  // a chunkserver's boot counter, durable
using InstanceId = Id<struct InstanceTag>;  // a replica's, new at each create or clone (F13)
using AttemptId = Id<struct AttemptTag>;    // one grant, reconciliation or recovery (D2)

// A fencing token: epoch << 32 | counter. 0 = none. Never goes back.
template <class Tag>
struct Token {
  uint64_t value = 0;
  constexpr Token() = default;
  constexpr explicit Token(uint64_t v) : value(v) {}
  constexpr Token(uint32_t epoch, uint32_t counter) : value(uint64_t{epoch} << 32 | counter) {}
  constexpr uint32_t epoch() const { return static_cast<uint32_t>(value >> 32); }
  constexpr uint32_t counter() const { return static_cast<uint32_t>(value); }
  constexpr explicit operator bool() const { return value != 0; }
  constexpr auto operator<=>(const Token&) const = default;
  // "3.17"
  std::string ToString() const { return std::to_string(epoch()) + "." + std::to_string(counter()); }
};

using Version = Token<struct VersionTag>;        // of a chunk: fences primaries and replicas
using Generation = Token<struct GenerationTag>;  // of a file's write session: fences writers

// Of a master: number + nonce; the number is ordered, the nonce tells histories apart (F12).
struct Epoch {
  uint32_t number = 0;
  uint64_t nonce = 0;
  constexpr auto operator<=>(const Epoch&) const = default;
};

// 16 lower-case hex digits, the spelling of chunk and server ids in file names, logs and the CLI.
std::string ToHex(uint64_t v);
// Accepts exactly 1–16 hex digits; false otherwise.
bool FromHex(std::string_view text, uint64_t* out);

template <class Tag>
std::string ToString(Id<Tag> id) { return ToHex(id.value); }

}  // namespace picket

template <class Tag>
struct std::hash<picket::Id<Tag>> {
  size_t operator()(picket::Id<Tag> id) const noexcept { return std::hash<uint64_t>{}(id.value); }
};
