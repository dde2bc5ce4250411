// The bytes of one record in a record-append file (GFS §3.3 leaves this to applications; here readers, the
// dedup window and the CLI share it). Pure; std only.
//
//   offset  size
//   0       4    magic "PRec" (a record) or "PPad" (padding up to the chunk's end)
//   4       4    length of the payload
//   8       8    client    ┐ the record's identity: unique, so a retry is known by it
//   16      8    sequence  ┘
//   24      4    CRC32C of the payload (of padding: 0; its payload is zeros)
//   28      4    CRC32C of bytes 0..27
//   32      …    payload
//
// All little-endian. A chunk is a row of frames from its first byte; less than a header is left at its end
// only as zeros. A record is at most a quarter of a chunk and one packet, frame included.
//
// A chunk that a recovery sealed may end inside a frame: what is left of a record that nobody was told is
// there. It is the last thing in its chunk: no record goes behind it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace picket {

inline constexpr size_t kRecordHeaderSize = 32;

struct RecordHeader {
  bool padding = false;
  uint32_t length = 0;  // of the payload
  uint64_t client = 0;
  uint64_t sequence = 0;
  uint32_t crc = 0;  // of the payload
  uint64_t frame_size() const { return kRecordHeaderSize + uint64_t{length}; }
};

// Exactly kRecordHeaderSize bytes.
std::string EncodeRecordHeader(const RecordHeader& header);
// kCorrupt: not a header (wrong magic or checksum). REQUIRES: kRecordHeaderSize bytes.
Result<RecordHeader> DecodeRecordHeader(std::string_view bytes);
// For less than a header: could these be the first bytes of one?
bool MayBeginRecord(std::string_view bytes);

// What fills the last `room` bytes of a chunk: a frame of padding, or zeros when not even a header fits.
std::string MakePadding(uint64_t room);

// A frame travels down the chain as one packet.
inline constexpr uint64_t kMaxRecordFrame = 1 << 20;
// The largest payload a chunk of that size takes.
constexpr uint64_t MaxRecord(uint64_t chunk_size) {
  return std::min<uint64_t>(chunk_size / 4, kMaxRecordFrame) - kRecordHeaderSize;
}

}  // namespace picket
