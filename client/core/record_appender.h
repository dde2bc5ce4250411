// Appends records to a file that many clients append to at once (GFS §3.3). Each record is in the file
// exactly once, at the offset that Append returned, however often it had to be sent; the order of records
// of different calls is whatever the primary made of it.
//
// Append may be called again before it has returned; at most kMaxInFlight records are on their way, further
// callers wait. A record that fails for its own sake (INVALID_ARGUMENT, DEDUP_WINDOW_EXCEEDED) fails alone;
// any other failure is final, and every later call returns it. Destroying an appender that was not closed
// leaves its part of the session to run out. Runs on one executor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/env/buffer.h"
#include "common/env/task.h"
#include "proto/client_master.pb.h"

namespace picket {

class RecordSession;

class RecordAppender {
 public:
  static constexpr size_t kMaxInFlight = 64;

  explicit RecordAppender(std::shared_ptr<RecordSession> session);
  ~RecordAppender();
  RecordAppender(const RecordAppender&) = delete;

  // Returns the offset of the record's frame in the file, when the record is on every member of its chunk; with
  // `sync`, when it is durable there. 1 to max_record() bytes, which must not change meanwhile.
  Task<Result<uint64_t>> Append(Buffer record, bool sync);
  // Several at once, each for itself: the answers in the order of the records.
  Task<std::vector<Result<uint64_t>>> AppendAll(std::vector<Buffer> records, bool sync);
  // Waits for what is in flight and leaves the session. The last appender's leaving closes the file.
  Task<Status> Close();

  uint64_t max_record() const;
  // As at the opening.
  const proto::FileStatus& status() const;
  const std::vector<std::string>& warnings() const;

 private:
  std::shared_ptr<RecordSession> session_;
  bool open_ = true;
};

}  // namespace picket
