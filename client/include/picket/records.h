// Files of records: many clients append to one at once, and each record is in it exactly once (GFS §3.3).
// Reached through picket/client.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "picket/status.h"

namespace picket::client {

struct Record {
  uint64_t offset = 0;    // in the file: of the frame that holds it
  uint64_t client = 0;    // ┐ who appended it, and the how-manieth of that client: no two records
  uint64_t sequence = 0;  // ┘ of a file have both in common
  std::string bytes;
};

// One of the appenders of a file. Thread-safe. Records of different calls may come to stand in any order.
// Not closed at destruction: its part of the session runs out.
class RecordAppender {
 public:
  virtual ~RecordAppender() = default;
  // Returns the record's offset when it is on every replica and visible to readers; with `sync`, when it is on
  // their disks. Retries, also over the failure of servers, append it once. After a kFenced error every later
  // call fails the same way.
  virtual Result<uint64_t> Append(std::string_view record, bool sync = false) = 0;
  // Several at once, each for itself: the answers in the order of the records.
  virtual std::vector<Result<uint64_t>> AppendAll(const std::vector<std::string>& records, bool sync = false) = 0;
  // Waits for what is on its way and leaves; the last appender's leaving closes the file.
  virtual Result<> Close() = 0;
  // Bytes of the largest record.
  virtual uint64_t max_record() const = 0;
  virtual const std::vector<std::string>& warnings() const = 0;
};

// The records of a file, in the order of their offsets. One thread at a time.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  // The next one, verified; none at the end (of a file that is being written: at what is readable now). kCorrupt
  // names the offset of what is not a good record.
  virtual Result<std::optional<Record>> Next() = 0;
  // Goes on at the record with that offset.
  virtual Result<> Seek(uint64_t offset) = 0;
};

}  // namespace picket::client
