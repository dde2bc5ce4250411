#include "common/env/posix/posix_fs.h"

#include <fcntl.h>
#include <leveldb/env.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/filesystem/directory.hpp>
#include <boost/filesystem/operations.hpp>

#include "common/env/posix/posix_file.h"

namespace picket::posix {
namespace {

namespace bfs = boost::filesystem;
using boost::system::error_code;

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirMode = 0700;

int OpenFlags(OpenMode mode) {
  switch (mode) {
    case OpenMode::kReadOnly: return O_RDONLY;
    case OpenMode::kReadWrite: return O_RDWR;
    case OpenMode::kCreate: return O_RDWR | O_CREAT;
    case OpenMode::kCreateNew: return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

Result<UniqueFd> OpenFd(const std::string& path, int flags) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, kFileMode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return Fail(ErrnoError(errno, "open", path));
  return UniqueFd(fd);
}

Status Checked(int rc, std::string_view doing, std::string_view path) {
  if (rc != 0) return Fail(ErrnoError(errno, doing, path));
  return {};
}

Status MakeDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), kDirMode) == 0) return {};
  const int error = errno;
  error_code ec;
  if (error == EEXIST && bfs::is_directory(path, ec)) return {};
  return Fail(ErrnoError(error, "create directory", path));
}

Result<std::vector<std::string>> ListDirectory(const std::string& dir) {
  std::vector<std::string> names;
  error_code ec;
  bfs::directory_iterator it(dir, ec);
  for (; !ec && it != bfs::directory_iterator(); it.increment(ec)) names.push_back(it->path().filename().native());
  if (ec) return Fail(ErrnoError(ec.value(), "list", dir));
  std::sort(names.begin(), names.end());
  return names;
}

class FlockLock final : public FileLock {
 public:
  explicit FlockLock(UniqueFd fd) : fd_(std::move(fd)) {}

 private:
  const UniqueFd fd_;
};

std::string ReadHolder(int fd) {
  char text[24];
  const ssize_t n = ::pread(fd, text, sizeof text, 0);
  std::string holder;
  for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; ++i) holder.push_back(text[i]);
  return holder;
}

}  // namespace

Task<Result<std::unique_ptr<File>>> PosixFs::Open(std::string path, OpenMode mode) {
  auto work = [path, mode] { return OpenFd(path, OpenFlags(mode)); };
  auto fd = co_await workers_.Run<Result<UniqueFd>>(std::move(work));
  if (!fd) co_return Fail(std::move(fd).error());
  std::unique_ptr<File> file = std::make_unique<PosixFile>(workers_, std::move(*fd), std::move(path));
  co_return file;
}

Task<Status> PosixFs::Rename(std::string from, std::string to) {
  return workers_.Run<Status>([from = std::move(from), to = std::move(to)] {
    return Checked(::rename(from.c_str(), to.c_str()), "rename", from + " to " + to);
  });
}

Task<Status> PosixFs::Unlink(std::string path) {
  return workers_.Run<Status>([path = std::move(path)] { return Checked(::unlink(path.c_str()), "remove", path); });
}

Task<Status> PosixFs::MakeDir(std::string path) {
  return workers_.Run<Status>([path = std::move(path)] { return MakeDirectory(path); });
}

Task<Status> PosixFs::SyncDir(std::string dir) {
  return workers_.Run<Status>([dir = std::move(dir)]() -> Status {
    auto fd = OpenFd(dir, O_RDONLY | O_DIRECTORY);
    if (!fd) return Fail(std::move(fd).error());
    return Checked(::fsync(fd->get()), "sync directory", dir);
  });
}

Task<Result<std::vector<std::string>>> PosixFs::List(std::string dir) {
  return workers_.Run<Result<std::vector<std::string>>>([dir = std::move(dir)] { return ListDirectory(dir); });
}

Task<bool> PosixFs::Exists(std::string path) {
  return workers_.Run<bool>([path = std::move(path)] {
    error_code ec;
    return bfs::exists(path, ec);
  });
}

Task<Result<SpaceInfo>> PosixFs::Space(std::string dir) {
  return workers_.Run<Result<SpaceInfo>>([dir = std::move(dir)]() -> Result<SpaceInfo> {
    error_code ec;
    const bfs::space_info space = bfs::space(dir, ec);
    if (ec) return Fail(ErrnoError(ec.value(), "read the free space of", dir));
    return SpaceInfo{space.capacity, space.available};
  });
}

Result<std::unique_ptr<FileLock>> PosixFs::Lock(std::string path) {
  auto fd = OpenFd(path, O_RDWR | O_CREAT);
  if (!fd) return Fail(std::move(fd).error());
  if (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Fail(ErrnoError(errno, "lock", path));
    const std::string holder = ReadHolder(fd->get());
    return Fail(Code::kUnavailable,
                path + " is locked by another process" + (holder.empty() ? "" : " (pid " + holder + ")"));
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  // For messages only: a lock without a name still holds.
  if (::ftruncate(fd->get(), 0) == 0) (void)!::pwrite(fd->get(), pid.data(), pid.size(), 0);
  std::unique_ptr<FileLock> lock = std::make_unique<FlockLock>(std::move(*fd));
  return lock;
}

leveldb::Env* PosixFs::leveldb_env() { return leveldb::Env::Default(); }

}  // namespace picket::posix
