// A file being written: sequential bytes, acknowledged by every member of the current chunk's set.
//
// One caller at a time. After the first failure every call returns that failure; a fencing refusal
// (STALE_*) is final: somebody else has the file. Destroying a writer that was neither closed nor
// abandoned stops its renewals and leaves the session to run out.
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

class WriteSession;

class FileWriter {
 public:
  explicit FileWriter(std::shared_ptr<WriteSession> session);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;

  // Takes all of `data`, which must not change afterwards, or fails. Returns when it is in the bounded
  // send queue, not when it is acknowledged.
  Task<Status> Write(Buffer data);
  // Every byte written so far is applied on every member, so a crash of any process loses none.
  Task<Status> Flush();
  // Flush, and durable on every member.
  Task<Status> Sync();
  // Flush, seal, and close at the master. Success: the master has the sealed length of every chunk, and
  // an overwrite has taken the old file's name.
  Task<Result<proto::FileStatus>> Close();
  // Gives the file up: its name (of a new file) and chunks go. Also after a failed write.
  Task<Status> Abandon();

  uint64_t bytes_written() const;
  uint64_t bytes_acknowledged() const;
  // As at Create.
  const proto::FileStatus& status() const;
  // "2 live servers for a goal of 3", …
  const std::vector<std::string>& warnings() const;

 private:
  std::shared_ptr<WriteSession> session_;
};

}  // namespace picket
