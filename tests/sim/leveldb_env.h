// The environment of a real LevelDB inside of the simulator: one thread, a crashing disk.
//
// LevelDB hands background work over while it holds its own lock, so it can never run inside Schedule.
// It is queued and drained where no lock is held: after each Offload, before an append to a write-ahead
// log (so that a writer never waits for a flush that nobody would do), and by a task of its own.
#pragma once

#include <leveldb/env.h>

#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/env/task.h"
#include "tests/sim/disk.h"

namespace picket::sim {

class Node;

class SimLevelDbEnv final : public leveldb::Env {
 public:
  explicit SimLevelDbEnv(Node& node) : node_(node) {}

  // Runs `fn` and the background work it caused; the simulated time that took.
  Nanos RunOffloaded(Fn fn);
  void Drain();
  uint64_t background_jobs() const { return background_jobs_; }

  leveldb::Status NewSequentialFile(const std::string& path, leveldb::SequentialFile** out) override;
  leveldb::Status NewRandomAccessFile(const std::string& path, leveldb::RandomAccessFile** out) override;
  leveldb::Status NewWritableFile(const std::string& path, leveldb::WritableFile** out) override;
  leveldb::Status NewAppendableFile(const std::string& path, leveldb::WritableFile** out) override;
  bool FileExists(const std::string& path) override;
  leveldb::Status GetChildren(const std::string& dir, std::vector<std::string>* out) override;
  leveldb::Status RemoveFile(const std::string& path) override;
  leveldb::Status CreateDir(const std::string& dir) override;
  leveldb::Status RemoveDir(const std::string& dir) override;
  leveldb::Status GetFileSize(const std::string& path, uint64_t* size) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  leveldb::Status LockFile(const std::string& path, leveldb::FileLock** lock) override;
  leveldb::Status UnlockFile(leveldb::FileLock* lock) override;
  void Schedule(void (*function)(void*), void* arg) override;
  void StartThread(void (*function)(void*), void* arg) override;
  leveldb::Status GetTestDirectory(std::string* path) override;
  leveldb::Status NewLogger(const std::string& path, leveldb::Logger** out) override;
  uint64_t NowMicros() override;
  void SleepForMicroseconds(int micros) override;

 private:
  class Sequential;
  class RandomAccess;
  class Writable;
  class Lock;
  class NoLogger;

  leveldb::Status NewWritable(const std::string& path, bool append, leveldb::WritableFile** out);
  static constexpr Nanos kLongestOffload = 10s;
  void Spend(Nanos time) { spent_ += time; }

  Node& node_;
  std::deque<std::pair<void (*)(void*), void*>> queue_;
  std::set<std::string> locks_;
  bool draining_ = false;
  bool offloaded_ = false;
  bool drain_posted_ = false;
  Nanos spent_{};
  uint64_t background_jobs_ = 0;
};

}  // namespace picket::sim
