// The file system as product code sees it: positional, buffers counted, durability explicit.
// Production: common/env/posix. Simulator: tests/sim.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/env/buffer.h"
#include "common/env/task.h"

namespace leveldb {
class Env;
}

namespace picket {

// An open file. Operations on one file may overlap; the caller orders them where order matters.
// Errors: kIoError, kNoSpace. A failed Sync is final: what was written since the last good one may
// be lost although reads still show it, so it is never retried; the replica or disk is given up.
class File {
 public:
  virtual ~File() = default;
  // Fills `into` from `offset`; returns the bytes read, fewer than into.size() only at the end of file.
  virtual Task<Result<size_t>> ReadAt(uint64_t offset, Buffer into) = 0;
  // Writes all of `data` or fails. Nothing is durable before Sync.
  virtual Task<Status> WriteAt(uint64_t offset, Buffer data) = 0;
  // fdatasync: on return the bytes and the size written before the call survive a power cut.
  virtual Task<Status> Sync() = 0;
  // Sets the size; growing makes a hole that reads as zeros. Space reserved beyond is given back,
  // also when the size stays.
  virtual Task<Status> Truncate(uint64_t size) = 0;
  // Reserves space without changing the size (FALLOC_FL_KEEP_SIZE). A hint where unsupported.
  virtual Task<Status> Reserve(uint64_t size) = 0;
  virtual Task<Result<uint64_t>> Size() = 0;
  // A hint: begin writing these bytes back. Never blocks, never fails.
  virtual void StartWriteback(uint64_t offset, uint64_t size) = 0;
};

enum class OpenMode {
  kReadOnly,
  kReadWrite,   // must exist
  kCreate,      // create or open
  kCreateNew,   // must not exist: kAlreadyExists
};

class FileLock {
 public:
  virtual ~FileLock() = default;  // releases
};

struct SpaceInfo {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;  // for an unprivileged writer
};

class Fs {
 public:
  virtual ~Fs() = default;
  // kNotFound when it does not exist (other than for kCreate*).
  virtual Task<Result<std::unique_ptr<File>>> Open(std::string path, OpenMode mode) = 0;
  virtual Task<Status> Rename(std::string from, std::string to) = 0;  // replaces `to`
  virtual Task<Status> Unlink(std::string path) = 0;
  virtual Task<Status> MakeDir(std::string path) = 0;  // existing directory: success
  // Creates, renames and unlinks in `dir` are durable only after this.
  virtual Task<Status> SyncDir(std::string dir) = 0;
  // Names of the entries (not paths), sorted, without "." and "..".
  virtual Task<Result<std::vector<std::string>>> List(std::string dir) = 0;
  virtual Task<bool> Exists(std::string path) = 0;
  virtual Task<Result<SpaceInfo>> Space(std::string dir) = 0;
  // An exclusive lock held by this process until the handle dies; kUnavailable when another holds it.
  virtual Result<std::unique_ptr<FileLock>> Lock(std::string path) = 0;
  // For the master's metadata store. LevelDB calls are made only inside Env::Offload or, for reads
  // of an open database, directly. Lives as long as this Fs.
  virtual leveldb::Env* leveldb_env() = 0;
};

// Whole-file helpers (common/env/fs.cc).
Task<Result<std::string>> ReadFile(Fs* fs, std::string path);
// Writes path.tmp, syncs, renames over `path`, syncs the directory: old or new content after a crash.
Task<Status> WriteFileAtomic(Fs* fs, std::string path, std::string content);

}  // namespace picket
