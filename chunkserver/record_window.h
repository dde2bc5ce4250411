// The dedup window of one chunk: which record was appended where (F15). Pure.
//
// 1. It is read from the bytes, frame by frame, and says nothing that they do not: an entry lives and dies
//    with its bytes.
// 2. It holds the newest kMaxEntries records. `evicted_through` is where the newest forgotten one ends: a
//    record whose appender knew at its first attempt that the chunk reached that far cannot be forgotten,
//    any other may be (F15 c).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "common/base/error.h"
#include "common/base/ids.h"

namespace picket::cs {

// Who appended it, and the how-manieth of that client.
struct RecordId {
  ClientId client;
  uint64_t sequence = 0;
  bool operator==(const RecordId&) const = default;
};

class RecordWindow {
 public:
  static constexpr size_t kMaxEntries = 65'536;
  explicit RecordWindow(size_t max_entries = kMaxEntries) : max_entries_(max_entries) {}

  struct Place {
    uint64_t offset = 0;  // of the frame
    uint64_t end = 0;
  };
  // The frame that begins at end().
  void Note(RecordId id, uint64_t frame_size);
  // Bytes from end() that are no record.
  void Skip(uint64_t size) { end_ += size; }

  // The record's place; none: it was never applied in these bytes. `known_end`: the chunk's length as the
  // appender knew it at the first attempt. kDedupWindowExceeded: nobody can tell any more.
  Result<std::optional<Place>> Find(RecordId id, uint64_t known_end) const;

  uint64_t end() const { return end_; }
  uint64_t evicted_through() const { return evicted_through_; }
  size_t size() const { return newest_.size(); }

 private:
  struct Hash {
    size_t operator()(const RecordId& id) const noexcept {
      return std::hash<uint64_t>{}(id.client.value * 0x9E3779B97F4A7C15 + id.sequence);
    }
  };
  struct Entry {
    RecordId id;
    Place place;
  };

  const size_t max_entries_;
  std::deque<Entry> newest_;  // in the order of offsets
  std::unordered_map<RecordId, Place, Hash> places_;
  uint64_t end_ = 0;
  uint64_t evicted_through_ = 0;
};

}  // namespace picket::cs
