// The bytes of a replica's meta file; docs/FORMATS.md has the tables. Pure: values in, bytes out.
//
//   0      slot A   ┐ written in turn; the valid one with the higher sequence counts
//   4096   slot B   ┘
//   8192   progress page: what is applied beyond the slot's durable length, not synced
//   12288  CRC table: 4 bytes for each 64 KiB block, as many as the chunk size has
//
// 1. The slot is the only truth about marks, state and durable length. It is never changed in place.
// 2. The table holds the CRC of each whole block, and of the last block of a sealed replica. The CRC of
//    a partial last block at the slot's (or progress record's) length is in that slot (or record): the
//    table's entry may already be that of later bytes.
// 3. A progress record counts only with the slot's lineage, which changes whenever a mark is raised or
//    bytes are taken away.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/block.h"
#include "common/base/error.h"
#include "common/base/ids.h"

namespace picket::cs {

inline constexpr uint32_t kReplicaFormat = 1;
inline constexpr uint64_t kSlotSize = 4096;
inline constexpr uint64_t kProgressOffset = 2 * kSlotSize;
inline constexpr uint64_t kTableOffset = 3 * kSlotSize;
inline constexpr uint64_t kMinChunkSize = 1 << 20;
inline constexpr uint64_t kMaxChunkSize = 1 << 30;

// The numbers are those of proto::ReplicaState.
enum class ReplicaState : uint8_t {
  kNone = 0,      // in memory only: there is no replica
  kCreating = 1,  // a joiner that a reconciliation has still to fill
  kOpen = 2,
  kRecovering = 3,
  kSealed = 4,
  kCorrupt = 5,
  kTombstone = 6,
};
std::string_view StateName(ReplicaState state);

// Why a replica went to quarantine.
enum class Retired : uint8_t {
  kUnknown = 0,   // by software that did not say
  kDeleted = 1,   // by the master's order
  kReplaced = 2,  // stale: the master created a newer one here
};

struct Slot {
  uint64_t sequence = 0;
  std::string cluster;  // hex, at most kMaxClusterName bytes
  ChunkId chunk;
  InodeId inode;
  Version version;
  Generation generation;
  ReplicaState state = ReplicaState::kNone;
  uint64_t length = 0;          // sealed: of the chunk; otherwise == durable_length
  uint64_t durable_length = 0;  // bytes that survive a power cut
  uint32_t tail_crc = 0;        // of [last block boundary, durable_length); 0 when that is empty
  uint32_t digest = 0;          // sealed: CRC32C over the CRC table
  Incarnation raised_in;        // the boot in which the mark was raised (F4); of a tombstone: of the deletion
  InstanceId instance;
  AttemptId attempt;  // of the order that created the instance
  uint64_t chunk_size = 0;
  Generation sealed_generation;  // of the seal whose content this is; 0 = of none (F11)
  uint64_t lineage = 0;
  Epoch epoch;  // of the last order that wrote this slot, with its revision (F12)
  uint64_t revision = 0;
  int64_t deleted_ns = 0;  // tombstones and quarantined replicas: wall time of the deletion
  bool overwritten = false;  // bytes were replaced since it was last sealed, or created (D13)
  // Tombstones and quarantined replicas: the newest key that tokens were signed with then, as far as was known
  // here (F21), and why.
  uint64_t retired_key = 0;
  Retired retired = Retired::kUnknown;

  bool operator==(const Slot&) const = default;
};
inline constexpr size_t kMaxClusterName = 64;

// Exactly kSlotSize bytes.
std::string EncodeSlot(const Slot& slot);
// kCorrupt: not a slot, or its checksum is wrong. kUnsupported: a newer format.
Result<Slot> DecodeSlot(std::string_view bytes);
// The slot that counts, of the first 2 × kSlotSize bytes of a meta file. An empty optional: both slots
// are zeros, as they are in a creation that never ended. kCorrupt, kUnsupported: neither is valid.
Result<std::optional<Slot>> NewestSlot(std::string_view both);

struct Progress {
  uint64_t lineage = 0;
  uint64_t length = 0;
  uint32_t tail_crc = 0;
};
// 32 bytes: within one sector, so that a power cut leaves the old record or the new one.
std::string EncodeProgress(const Progress& progress);
std::optional<Progress> DecodeProgress(std::string_view bytes);
inline constexpr size_t kProgressSize = 32;

constexpr uint64_t TableBytes(uint64_t chunk_size) {
  return (BlocksIn(chunk_size) * 4 + kSlotSize - 1) / kSlotSize * kSlotSize;
}
// A power of two from kMinChunkSize to kMaxChunkSize.
constexpr bool ValidChunkSize(uint64_t size) {
  return size >= kMinChunkSize && size <= kMaxChunkSize && (size & (size - 1)) == 0;
}

}  // namespace picket::cs
