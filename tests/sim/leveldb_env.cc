#include "tests/sim/leveldb_env.h"

#include <boost/asio/post.hpp>

#include "tests/sim/node.h"

namespace picket::sim {
namespace {

leveldb::Status ToLevelDb(const Error& e) {
  return e.code == Code::kNotFound ? leveldb::Status::NotFound(e.message) : leveldb::Status::IOError(e.message);
}
leveldb::Status ToLevelDb(const Status& s) { return s ? leveldb::Status::OK() : ToLevelDb(s.error()); }

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

class SimLevelDbEnv::Sequential final : public leveldb::SequentialFile {
 public:
  Sequential(SimLevelDbEnv& env, InodePtr inode) : env_(env), inode_(std::move(inode)) {}
  leveldb::Status Read(size_t n, leveldb::Slice* result, char* scratch) override {
    env_.Spend(env_.node_.disk().AccessTime(n));
    auto got = env_.node_.disk().Read(*inode_, position_, std::as_writable_bytes(std::span(scratch, n)));
    if (!got) return ToLevelDb(got.error());
    position_ += *got;
    *result = leveldb::Slice(scratch, *got);
    return leveldb::Status::OK();
  }
  leveldb::Status Skip(uint64_t n) override {
    position_ += n;
    return leveldb::Status::OK();
  }

 private:
  SimLevelDbEnv& env_;
  InodePtr inode_;
  uint64_t position_ = 0;
};

class SimLevelDbEnv::RandomAccess final : public leveldb::RandomAccessFile {
 public:
  RandomAccess(SimLevelDbEnv& env, InodePtr inode) : env_(env), inode_(std::move(inode)) {}
  leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice* result, char* scratch) const override {
    env_.Spend(env_.node_.disk().AccessTime(n));
    auto got = env_.node_.disk().Read(*inode_, offset, std::as_writable_bytes(std::span(scratch, n)));
    if (!got) return ToLevelDb(got.error());
    *result = leveldb::Slice(scratch, *got);
    return leveldb::Status::OK();
  }

 private:
  SimLevelDbEnv& env_;
  InodePtr inode_;
};

// Buffers as the POSIX one does, so that what was never flushed is lost with the process.
class SimLevelDbEnv::Writable final : public leveldb::WritableFile {
 public:
  Writable(SimLevelDbEnv& env, std::string path, InodePtr inode)
      : env_(env), path_(std::move(path)), inode_(std::move(inode)), position_(inode_->size()) {}
  leveldb::Status Append(const leveldb::Slice& data) override {
    if (path_.ends_with(".log")) env_.Drain();  // the one place where a writer holds no lock
    buffer_.append(data.data(), data.size());
    return buffer_.size() < kBuffer ? leveldb::Status::OK() : Flush();
  }
  leveldb::Status Close() override { return Flush(); }
  leveldb::Status Flush() override {
    if (buffer_.empty()) return leveldb::Status::OK();
    env_.Spend(env_.node_.disk().AccessTime(buffer_.size()));
    auto written = env_.node_.disk().Write(*inode_, position_, std::as_bytes(std::span(buffer_)));
    if (!written) return ToLevelDb(written.error());
    position_ += buffer_.size();
    buffer_.clear();
    return leveldb::Status::OK();
  }
  leveldb::Status Sync() override {
    SimDisk& disk = env_.node_.disk();
    if (BaseName(path_).starts_with("MANIFEST")) {
      env_.Spend(disk.SyncTime());
      if (auto s = disk.SyncDir(Directory()); !s) return ToLevelDb(s.error());
    }
    if (auto s = Flush(); !s.ok()) return s;
    env_.Spend(disk.SyncTime());
    return ToLevelDb(disk.SyncInode(*inode_, /*with_names=*/true));
  }

 private:
  static constexpr size_t kBuffer = 64 << 10;
  std::string Directory() const {
    const size_t slash = path_.rfind('/');
    return slash == std::string::npos ? "." : path_.substr(0, slash);
  }
  SimLevelDbEnv& env_;
  const std::string path_;
  const InodePtr inode_;
  std::string buffer_;
  uint64_t position_;
};

class SimLevelDbEnv::Lock final : public leveldb::FileLock {
 public:
  explicit Lock(std::string p) : path(std::move(p)) {}
  const std::string path;
};

class SimLevelDbEnv::NoLogger final : public leveldb::Logger {
 public:
  void Logv(const char*, std::va_list) override {}
};

Nanos SimLevelDbEnv::RunOffloaded(Fn fn) {
  spent_ = Nanos(0);
  offloaded_ = true;
  fn();
  Drain();
  offloaded_ = false;
  // All of it ran at one moment, at the disk's pace of that moment: a slow spell would last too long.
  return std::min(spent_, kLongestOffload);
}

void SimLevelDbEnv::Drain() {
  if (draining_) return;
  draining_ = true;
  while (!queue_.empty()) {
    auto [function, arg] = queue_.front();
    queue_.pop_front();
    ++background_jobs_;
    function(arg);
  }
  draining_ = false;
}

void SimLevelDbEnv::Schedule(void (*function)(void*), void* arg) {
  queue_.emplace_back(function, arg);
  if (offloaded_ || draining_ || drain_posted_ || node_.dying()) return;
  drain_posted_ = true;
  asio::post(node_.executor(), [this] {
    drain_posted_ = false;
    Drain();
  });
}

void SimLevelDbEnv::StartThread(void (*)(void*), void*) { PICKET_CHECK(!"LevelDB starts no threads"); }

leveldb::Status SimLevelDbEnv::NewSequentialFile(const std::string& path, leveldb::SequentialFile** out) {
  Spend(node_.disk().AccessTime(0));
  auto inode = node_.disk().Open(path, OpenMode::kReadOnly);
  if (!inode) return ToLevelDb(inode.error());
  *out = new Sequential(*this, *inode);
  return leveldb::Status::OK();
}

leveldb::Status SimLevelDbEnv::NewRandomAccessFile(const std::string& path, leveldb::RandomAccessFile** out) {
  Spend(node_.disk().AccessTime(0));
  auto inode = node_.disk().Open(path, OpenMode::kReadOnly);
  if (!inode) return ToLevelDb(inode.error());
  *out = new RandomAccess(*this, *inode);
  return leveldb::Status::OK();
}

leveldb::Status SimLevelDbEnv::NewWritable(const std::string& path, bool append, leveldb::WritableFile** out) {
  Spend(node_.disk().AccessTime(0));
  auto inode = node_.disk().Open(path, OpenMode::kCreate);
  if (!inode) return ToLevelDb(inode.error());
  if (!append && (*inode)->size() > 0) {
    if (auto s = node_.disk().Truncate(**inode, 0); !s) return ToLevelDb(s.error());
  }
  *out = new Writable(*this, path, *inode);
  return leveldb::Status::OK();
}

leveldb::Status SimLevelDbEnv::NewWritableFile(const std::string& path, leveldb::WritableFile** out) {
  return NewWritable(path, false, out);
}
leveldb::Status SimLevelDbEnv::NewAppendableFile(const std::string& path, leveldb::WritableFile** out) {
  return NewWritable(path, true, out);
}
bool SimLevelDbEnv::FileExists(const std::string& path) { return node_.disk().Exists(path); }

leveldb::Status SimLevelDbEnv::GetChildren(const std::string& dir, std::vector<std::string>* out) {
  auto names = node_.disk().List(dir);
  if (!names) return ToLevelDb(names.error());
  *out = std::move(*names);
  return leveldb::Status::OK();
}

leveldb::Status SimLevelDbEnv::RemoveFile(const std::string& path) { return ToLevelDb(node_.disk().Unlink(path)); }

leveldb::Status SimLevelDbEnv::CreateDir(const std::string& dir) {
  if (node_.disk().Exists(dir)) return leveldb::Status::IOError(dir, "exists");
  return ToLevelDb(node_.disk().MakeDir(dir));
}
leveldb::Status SimLevelDbEnv::RemoveDir(const std::string& dir) {
  return leveldb::Status::IOError(dir, "directories are never removed here");
}

leveldb::Status SimLevelDbEnv::GetFileSize(const std::string& path, uint64_t* size) {
  auto inode = node_.disk().Open(path, OpenMode::kReadOnly);
  if (!inode) return ToLevelDb(inode.error());
  *size = (*inode)->size();
  return leveldb::Status::OK();
}

leveldb::Status SimLevelDbEnv::RenameFile(const std::string& from, const std::string& to) {
  return ToLevelDb(node_.disk().Rename(from, to));
}

leveldb::Status SimLevelDbEnv::LockFile(const std::string& path, leveldb::FileLock** lock) {
  if (!locks_.insert(path).second) return leveldb::Status::IOError(path, "already held by process");
  *lock = new Lock(path);
  return leveldb::Status::OK();
}

leveldb::Status SimLevelDbEnv::UnlockFile(leveldb::FileLock* lock) {
  auto* held = static_cast<Lock*>(lock);
  locks_.erase(held->path);
  delete held;
  return leveldb::Status::OK();
}

leveldb::Status SimLevelDbEnv::GetTestDirectory(std::string* path) {
  *path = "test";
  return leveldb::Status::OK();
}

leveldb::Status SimLevelDbEnv::NewLogger(const std::string&, leveldb::Logger** out) {
  *out = new NoLogger;
  return leveldb::Status::OK();
}

uint64_t SimLevelDbEnv::NowMicros() {
  return static_cast<uint64_t>((node_.Now().time_since_epoch() + spent_).count()) / 1000;
}
void SimLevelDbEnv::SleepForMicroseconds(int micros) { Spend(std::chrono::microseconds(micros)); }

}  // namespace picket::sim
