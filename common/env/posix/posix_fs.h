// The file system of the machine. Files are created for their owner only (0600, directories 0700) and
// are not inherited by child processes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/env/fs.h"
#include "common/env/posix/worker_pool.h"

namespace picket::posix {

class PosixFs final : public Fs {
 public:
  explicit PosixFs(WorkerPool& workers) : workers_(workers) {}

  Task<Result<std::unique_ptr<File>>> Open(std::string path, OpenMode mode) override;
  Task<Status> Rename(std::string from, std::string to) override;
  Task<Status> Unlink(std::string path) override;
  Task<Status> MakeDir(std::string path) override;
  Task<Status> SyncDir(std::string dir) override;
  Task<Result<std::vector<std::string>>> List(std::string dir) override;
  Task<bool> Exists(std::string path) override;
  Task<Result<SpaceInfo>> Space(std::string dir) override;
  // The lock file holds its owner's process id, for the message of whoever comes second.
  Result<std::unique_ptr<FileLock>> Lock(std::string path) override;
  leveldb::Env* leveldb_env() override;

 private:
  WorkerPool& workers_;
};

}  // namespace picket::posix
