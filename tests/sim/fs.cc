#include "tests/sim/fs.h"

#include "tests/sim/leveldb_env.h"
#include "tests/sim/node.h"

namespace picket::sim {
namespace {

// An operation takes effect somewhere within its time, so operations that overlap can change places.
struct Around {
  Nanos before;
  Nanos after;
  Around(Node& node, Nanos total) {
    before = Nanos(static_cast<int64_t>(node.world().scheduler_rng().Below(static_cast<uint64_t>(total.count()) + 1)));
    after = total - before;
  }
};

}  // namespace

// ---- SimFile -------------------------------------------------------------------------------------

Task<Result<size_t>> SimFile::ReadAt(uint64_t offset, Buffer into) {
  const InodePtr inode = inode_;
  const Around time(node_, node_.disk().AccessTime(into.size()));
  co_await node_.Sleep(time.before);
  auto n = node_.disk().Read(*inode, offset, into.span());
  co_await node_.Sleep(time.after);
  co_return n;
}

Task<Status> SimFile::WriteAt(uint64_t offset, Buffer data) {
  if (!writable_) co_return Fail(Code::kIoError, "write: the file is open for reading only");
  const InodePtr inode = inode_;
  const Around time(node_, node_.disk().AccessTime(data.size()));
  co_await node_.Sleep(time.before);
  auto status = node_.disk().Write(*inode, offset, data.span());
  co_await node_.Sleep(time.after);
  co_return status;
}

Task<Status> SimFile::Sync() {
  const InodePtr inode = inode_;
  const Around time(node_, node_.disk().SyncTime());
  co_await node_.Sleep(time.before);
  auto status = node_.disk().SyncInode(*inode, /*with_names=*/false);
  co_await node_.Sleep(time.after);
  co_return status;
}

Task<Status> SimFile::Truncate(uint64_t size) {
  if (!writable_) co_return Fail(Code::kIoError, "truncate: the file is open for reading only");
  const InodePtr inode = inode_;
  co_await node_.Sleep(node_.disk().AccessTime(0));
  co_return node_.disk().Truncate(*inode, size);
}

Task<Status> SimFile::Reserve(uint64_t size) {
  const InodePtr inode = inode_;
  co_await node_.Sleep(node_.disk().AccessTime(0));
  co_return node_.disk().Reserve(*inode, size);
}

Task<Result<uint64_t>> SimFile::Size() {
  const InodePtr inode = inode_;
  co_await node_.Sleep(node_.disk().AccessTime(0));
  co_return inode->size();
}

void SimFile::StartWriteback(uint64_t offset, uint64_t size) { node_.disk().StartWriteback(*inode_, offset, size); }

// ---- SimFs ---------------------------------------------------------------------------------------

SimFs::SimFs(Node& node) : node_(node), leveldb_(std::make_unique<SimLevelDbEnv>(node)) {}
SimFs::~SimFs() = default;

Task<Result<std::unique_ptr<File>>> SimFs::Open(std::string path, OpenMode mode) {
  co_await node_.Sleep(node_.disk().AccessTime(0));
  auto inode = node_.disk().Open(path, mode);
  if (!inode) co_return Fail(inode.error());
  std::unique_ptr<File> file = std::make_unique<SimFile>(node_, *inode, mode != OpenMode::kReadOnly);
  co_return file;
}

Task<Status> SimFs::Rename(std::string from, std::string to) {
  const Around time(node_, node_.disk().AccessTime(0));
  co_await node_.Sleep(time.before);
  auto status = node_.disk().Rename(from, to);
  co_await node_.Sleep(time.after);
  co_return status;
}

Task<Status> SimFs::Unlink(std::string path) {
  co_await node_.Sleep(node_.disk().AccessTime(0));
  co_return node_.disk().Unlink(path);
}

Task<Status> SimFs::MakeDir(std::string path) {
  co_await node_.Sleep(node_.disk().AccessTime(0));
  co_return node_.disk().MakeDir(path);
}

Task<Status> SimFs::SyncDir(std::string dir) {
  const Around time(node_, node_.disk().SyncTime());
  co_await node_.Sleep(time.before);
  auto status = node_.disk().SyncDir(dir);
  co_await node_.Sleep(time.after);
  co_return status;
}

Task<Result<std::vector<std::string>>> SimFs::List(std::string dir) {
  co_await node_.Sleep(node_.disk().AccessTime(0));
  co_return node_.disk().List(dir);
}

Task<bool> SimFs::Exists(std::string path) {
  co_await node_.Sleep(node_.disk().AccessTime(0));
  co_return node_.disk().Exists(path);
}

Task<Result<SpaceInfo>> SimFs::Space(std::string dir) {
  co_await node_.Sleep(node_.disk().AccessTime(0));
  if (!node_.disk().Exists(dir)) co_return Fail(Code::kNotFound, "statfs " + dir + ": no such directory");
  co_return node_.disk().Space();
}

class SimFs::Locked final : public FileLock {
 public:
  Locked(std::shared_ptr<std::set<std::string>> locks, std::string path)
      : locks_(std::move(locks)), path_(std::move(path)) {}
  ~Locked() override { locks_->erase(path_); }

 private:
  std::shared_ptr<std::set<std::string>> locks_;
  std::string path_;
};

Result<std::unique_ptr<FileLock>> SimFs::Lock(std::string path) {
  auto inode = node_.disk().Open(path, OpenMode::kCreate);
  if (!inode) return Fail(inode.error());
  if (!locks_->insert(path).second) return Fail(Code::kUnavailable, "lock " + path + ": held by another process");
  return std::unique_ptr<FileLock>(new Locked(locks_, std::move(path)));
}

leveldb::Env* SimFs::leveldb_env() { return leveldb_.get(); }

Nanos SimFs::OffloadDelay() { return Nanos(static_cast<int64_t>(node_.world().scheduler_rng().Below(50'000))); }
Nanos SimFs::RunOffloaded(Fn fn) { return leveldb_->RunOffloaded(std::move(fn)); }
void SimFs::OnCrash() { leveldb_->Drain(); }

Result<Buffer> SimFs::ReadSlice(Node& node, const FileSlice& slice) {
  auto* file = dynamic_cast<SimFile*>(slice.file.get());
  PICKET_CHECK(file != nullptr);
  Buffer bytes = Buffer::Allocate(slice.size);
  auto n = node.disk().Read(file->inode(), slice.offset, bytes.span());
  if (!n) return Fail(n.error());
  if (*n != slice.size) return Fail(Code::kIoError, "the file is shorter than the slice to send");
  return bytes;
}

}  // namespace picket::sim
