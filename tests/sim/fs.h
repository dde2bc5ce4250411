// picket::Fs over a SimDisk: the same operations with simulated time around them, locks that live as
// long as the process, and the environment of LevelDB.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/env/env.h"
#include "common/env/fs.h"
#include "tests/sim/disk.h"

namespace picket::sim {

class Node;
class SimLevelDbEnv;

class SimFs final : public Fs {
 public:
  explicit SimFs(Node& node);
  ~SimFs() override;

  Task<Result<std::unique_ptr<File>>> Open(std::string path, OpenMode mode) override;
  Task<Status> Rename(std::string from, std::string to) override;
  Task<Status> Unlink(std::string path) override;
  Task<Status> MakeDir(std::string path) override;
  Task<Status> SyncDir(std::string dir) override;
  Task<Result<std::vector<std::string>>> List(std::string dir) override;
  Task<bool> Exists(std::string path) override;
  Task<Result<SpaceInfo>> Space(std::string dir) override;
  Result<std::unique_ptr<FileLock>> Lock(std::string path) override;
  leveldb::Env* leveldb_env() override;

  // For Env::Offload: how long the worker takes to begin; runs it; how long it took.
  Nanos OffloadDelay();
  Nanos RunOffloaded(Fn fn);
  // Background work that waits can end only in errors now; it is run, so that nobody waits for it.
  void OnCrash();

  // What sendfile would send: the bytes of a slice, at once.
  static Result<Buffer> ReadSlice(Node& node, const FileSlice& slice);

 private:
  class Locked;
  Node& node_;
  std::shared_ptr<std::set<std::string>> locks_ = std::make_shared<std::set<std::string>>();
  std::unique_ptr<SimLevelDbEnv> leveldb_;
};

class SimFile final : public File {
 public:
  SimFile(Node& node, InodePtr inode, bool writable) : node_(node), inode_(std::move(inode)), writable_(writable) {}
  Task<Result<size_t>> ReadAt(uint64_t offset, Buffer into) override;
  Task<Status> WriteAt(uint64_t offset, Buffer data) override;
  Task<Status> Sync() override;
  Task<Status> Truncate(uint64_t size) override;
  Task<Status> Reserve(uint64_t size) override;
  Task<Result<uint64_t>> Size() override;
  void StartWriteback(uint64_t offset, uint64_t size) override;

  Inode& inode() { return *inode_; }

 private:
  Node& node_;
  const InodePtr inode_;
  const bool writable_;
};

}  // namespace picket::sim
