// A file that exists, written at any offset: bytes are replaced, appended, or leave a hole that reads as zeros.
//
// 1. Each 64 KiB block of a chunk is old or new on every replica, whatever happens in between; what one
//    WriteAt covers is not one step.
// 2. One chunk is open at a time: it is sealed, durably, before a write goes to another one.
//
// One caller at a time. After the first failure every call returns that failure; a fencing refusal (STALE_*)
// is final: somebody else has the file. What was written before stays. Destroying a writer that was not closed
// stops its renewals and leaves the session to run out.
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

class RandomWriteSession;

class RandomWriter {
 public:
  explicit RandomWriter(std::shared_ptr<RandomWriteSession> session);
  ~RandomWriter();
  RandomWriter(const RandomWriter&) = delete;

  // Takes all of `data`, which must not change afterwards, or fails. Returns when it is on its way, not when it
  // is acknowledged. A gap inside the chunk is filled with zeros.
  Task<Status> WriteAt(uint64_t offset, Buffer data);
  // Everything written so far is applied on every member, so a crash of any process loses none.
  Task<Status> Flush();
  // Flush, and durable on every member.
  Task<Status> Sync();
  // Flush, seal, and close at the master.
  Task<Result<proto::FileStatus>> Close();

  uint64_t bytes_written() const;
  // As at the open.
  const proto::FileStatus& status() const;
  const std::vector<std::string>& warnings() const;

 private:
  std::shared_ptr<RandomWriteSession> session_;
};

}  // namespace picket
