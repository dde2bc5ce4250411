// A file's content changed as one step: read, computed anew, put in its place only if nobody was faster.
//
// What the file was at the read is the condition of the swap (if_version; of a missing file if_absent),
// judged by the master in the batch that swaps. A pause of any length between reading and writing
// therefore loses nobody's update: the late one is refused with kConflict, reads again, and redoes its work.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client/core/file_system.h"
#include "common/base/error.h"

namespace picket {

// A file as it was read.
struct FileContent {
  bool exists = false;
  std::string bytes;
  proto::FileStatus status;  // when it exists
};

// The new content; nullopt leaves the file as it is; an error ends the update with it.
// May run several times, each time with a newer content.
using UpdateFunction = std::function<Result<std::optional<std::string>>(const FileContent& now)>;

struct UpdateOptions {
  CreateFileOptions create;       // of a missing file; of one that exists only sync, limits and writer_id matter
  int max_attempts = 64;
  uint64_t max_bytes = 64 << 20;  // of a file that is read into memory
};

// The two halves, for a caller that computes between them: Read, then Replace, again while that is nullopt.
class Updater {
 public:
  Updater(FileSystem* files, std::string path, UpdateOptions options)
      : files_(files), path_(std::move(path)), options_(std::move(options)) {}

  // The file as it is; waits while somebody is writing it.
  Task<Result<FileContent>> Read();
  // nullopt: somebody else was faster, read again. kConflict: so often that it is given up.
  Task<Result<std::optional<proto::FileStatus>>> Replace(FileContent read, std::string bytes);

 private:
  // Counts an attempt that was lost, and waits; the error when it was the last one.
  Task<Status> Lost(Error error);

  FileSystem* const files_;
  const std::string path_;
  const UpdateOptions options_;
  int attempts_ = 0;
};

// The status after the change, or of the file as it is left (of a missing one: empty). kConflict: somebody else
// was faster max_attempts times.
Task<Result<proto::FileStatus>> Update(FileSystem* files, std::string path, UpdateFunction change,
                                       UpdateOptions options);

}  // namespace picket
