// A file open for reading: the content it had at Open and, while it is being written, what becomes
// readable later. Every byte returned was verified against its block's CRC32C.
//
// Chunk bytes come from readable replicas; a bad, slow, stale or dead one costs a try at another, never
// an error while one can serve. Bounded: kMaxInFlight pieces of at most 1 MiB per reader.
// ReadAt and Length may run at once; Read and Seek are for one caller.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "common/base/error.h"
#include "common/env/buffer.h"
#include "common/env/task.h"
#include "proto/client_master.pb.h"

namespace picket {

class OpenFile;

class FileReader {
 public:
  explicit FileReader(std::shared_ptr<OpenFile> file);
  ~FileReader();
  FileReader(const FileReader&) = delete;

  // `size` bytes at `offset`, fewer only where the file ends.
  Task<Result<Buffer>> ReadAt(uint64_t offset, size_t size);
  // The next piece, at most 1 MiB, with read-ahead behind it; empty at the end of the file (of a file
  // that is being written: at what is readable now).
  Task<Result<Buffer>> Read();
  void Seek(uint64_t offset);
  // Readable bytes now; asks the master and a replica while the file is being written.
  Task<Result<uint64_t>> Length();
  // As at Open.
  const proto::FileStatus& status() const;

  static constexpr size_t kMaxInFlight = 8;

 private:
  std::shared_ptr<OpenFile> file_;
};

}  // namespace picket
