#include "client/cli/local_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace picket::cli {
namespace {

using client::Error;
using client::ErrorKind;
using client::Result;

constexpr std::string_view kHiddenPrefix = ".picket-get-";
constexpr int64_t kNsPerSecond = 1'000'000'000;

std::unexpected<Error> Failed(int error_number, std::string_view subject) {
  return std::unexpected(LocalError(error_number, subject));
}

timespec ToTimespec(int64_t ns) {
  const int64_t nanos = (ns % kNsPerSecond + kNsPerSecond) % kNsPerSecond;
  return {.tv_sec = (ns - nanos) / kNsPerSecond, .tv_nsec = nanos};
}

}  // namespace

Error LocalError(int error_number, std::string_view subject) {
  Error error;
  error.kind = ErrorKind::kInternal;
  error.code = "LOCAL";
  error.message = fmt::format("{}: {}", subject, strerror(error_number));
  switch (error_number) {
    case ENOENT:
      error.kind = ErrorKind::kNotFound;
      break;
    case ENOTDIR:
      error.kind = ErrorKind::kNotDirectory;
      break;
    case EISDIR:
      error.kind = ErrorKind::kIsDirectory;
      break;
    case EEXIST:
      error.kind = ErrorKind::kAlreadyExists;
      error.next_step = "-f replaces it";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      error.kind = ErrorKind::kPermissionDenied;
      break;
    case ENAMETOOLONG:
      error.kind = ErrorKind::kInvalidArgument;
      break;
    case ENOSPC:
    case EDQUOT:
      error.kind = ErrorKind::kNoSpace;
      error.next_step = "free some space and run it again";
      break;
    default:
      break;
  }
  return error;
}

LocalFd::~LocalFd() {
  if (fd_ >= 0) close(fd_);
}

Result<LocalStatus> StatLocal(const std::string& path, bool follow_symlink) {
  struct stat st{};
  const int result = follow_symlink ? stat(path.c_str(), &st) : lstat(path.c_str(), &st);
  if (result != 0) return Failed(errno, path);
  LocalStatus status;
  using enum LocalStatus::Type;
  switch (st.st_mode & S_IFMT) {
    case S_IFREG:
      status.type = kFile;
      break;
    case S_IFDIR:
      status.type = kDirectory;
      break;
    case S_IFLNK:
      status.type = kSymlink;
      break;
    case S_IFIFO:
      status.type = kSpecial;
      status.type_name = "a named pipe";
      break;
    case S_IFSOCK:
      status.type = kSpecial;
      status.type_name = "a socket";
      break;
    case S_IFCHR:
      status.type = kSpecial;
      status.type_name = "a character device";
      break;
    case S_IFBLK:
      status.type = kSpecial;
      status.type_name = "a block device";
      break;
    default:
      status.type = kSpecial;
      status.type_name = "no regular file";
      break;
  }
  status.length = static_cast<uint64_t>(st.st_size);
  status.mode = st.st_mode & 07777;
  status.mtime_ns = st.st_mtim.tv_sec * kNsPerSecond + st.st_mtim.tv_nsec;
  status.identity = {st.st_dev, st.st_ino};
  return status;
}

Result<std::vector<std::string>> ListLocal(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) return Failed(errno, path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return Failed(errno, path);
  std::sort(names.begin(), names.end());
  return names;
}

Result<LocalFd> OpenForReading(const std::string& path) {
  LocalFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return Failed(errno, path);
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return fd;
}

Result<size_t> ReadLocal(int fd, void* into, size_t size) {
  while (true) {
    const ssize_t n = read(fd, into, size);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) return Failed(errno, "reading the local file");
  }
}

Result<> WriteLocalAt(int fd, uint64_t offset, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed(errno, "writing the local file");
    offset += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Result<PendingFile> PendingFile::Create(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  std::string hidden;
  LocalFd fd;
  while (true) {
    hidden = fmt::format("{}{}XXXXXX", directory, kHiddenPrefix);
    fd = LocalFd(mkostemp(hidden.data(), O_CLOEXEC));
    if (!fd) return Failed(errno, path);
    // Somebody who is tidying up may have found it before it was locked: then it has gone, or is about to.
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    struct stat st{};
    if (fstat(fd.get(), &st) != 0 || st.st_nlink > 0) break;
  }
  // mkostemp makes it private; the final file has the rights that a plain creation would give.
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(fd.get(), 0666 & ~mask) != 0) {
    const int error = errno;
    unlink(hidden.c_str());
    return Failed(error, path);
  }
  return PendingFile(path, std::move(hidden), std::move(fd));
}

void PendingFile::RemoveAbandoned(const std::string& directory) {
  const auto names = ListLocal(directory.empty() ? "." : directory);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(kHiddenPrefix)) continue;
    const std::string path = directory.empty() ? name : directory + "/" + name;
    const LocalFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat st{};
    if (!fd || fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
  }
}

PendingFile::~PendingFile() {
  if (fd_ && !hidden_.empty()) unlink(hidden_.c_str());
}

Result<> PendingFile::SetAttributes(const Attributes& attributes) {
  const timespec times[2] = {ToTimespec(attributes.mtime_ns), ToTimespec(attributes.mtime_ns)};
  if (fchmod(fd_.get(), attributes.mode & 07777) != 0) return Failed(errno, "setting the mode of " + path_);
  if (futimens(fd_.get(), times) != 0) return Failed(errno, "setting the times of " + path_);
  return {};
}

Result<> PendingFile::Commit(bool replace) {
  if (renameat2(AT_FDCWD, hidden_.c_str(), AT_FDCWD, path_.c_str(), replace ? 0 : RENAME_NOREPLACE) != 0) {
    const bool no_such_flag = errno == EINVAL && !replace;
    // A link is as exclusive, where the file system knows no flag.
    if (!no_such_flag || link(hidden_.c_str(), path_.c_str()) != 0) return Failed(errno, path_);
    unlink(hidden_.c_str());
  }
  hidden_.clear();
  return {};
}

Result<> MakeLocalDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return {};
  const int error = errno;
  struct stat st{};
  if (error == EEXIST && stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return {};
  auto failed = Failed(error, path);
  // -f replaces files by files only.
  if (error == EEXIST) failed.error().next_step = "a directory is to come here: move the file away";
  return failed;
}

Result<> SetLocalAttributes(const std::string& path, uint32_t mode, int64_t mtime_ns) {
  const timespec times[2] = {ToTimespec(mtime_ns), ToTimespec(mtime_ns)};
  if (chmod(path.c_str(), mode & 07777) != 0) return Failed(errno, "setting the mode of " + path);
  if (utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) return Failed(errno, "setting the times of " + path);
  return {};
}

}  // namespace picket::cli
