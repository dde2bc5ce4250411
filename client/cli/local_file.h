// The local side of a transfer: files, directories and their attributes. Errors are client::Error values
// that name the path, with the kind that gives the right exit code.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "picket/status.h"

namespace picket::cli {

// "subject: No such file or directory", of code LOCAL.
client::Error LocalError(int error_number, std::string_view subject);

class LocalFd {
 public:
  LocalFd() = default;
  explicit LocalFd(int fd) : fd_(fd) {}
  LocalFd(LocalFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  LocalFd& operator=(LocalFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~LocalFd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct LocalStatus {
  enum class Type { kFile, kDirectory, kSymlink, kSpecial };
  Type type = Type::kFile;
  const char* type_name = "";  // "a socket", …
  uint64_t length = 0;
  uint32_t mode = 0;
  int64_t mtime_ns = 0;
  std::pair<dev_t, ino_t> identity;
};

// kNotFound if there is nothing of that name.
client::Result<LocalStatus> StatLocal(const std::string& path, bool follow_symlink);
// Names, sorted, without "." and "..".
client::Result<std::vector<std::string>> ListLocal(const std::string& path);

client::Result<LocalFd> OpenForReading(const std::string& path);
// Up to `size` bytes; 0 at the end.
client::Result<size_t> ReadLocal(int fd, void* into, size_t size);
client::Result<> WriteLocalAt(int fd, uint64_t offset, std::span<const char> bytes);

// A file that appears under its name only when it is complete. Until then it has a hidden name in the
// same directory, which is removed at destruction. It is locked as long as its process lives, so what a killed
// process left behind is told from what another one is writing.
class PendingFile {
 public:
  static client::Result<PendingFile> Create(const std::string& path);
  PendingFile(PendingFile&&) noexcept = default;
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  int fd() const { return fd_.get(); }
  struct Attributes {
    uint32_t mode = 0;
    int64_t mtime_ns = 0;
  };
  client::Result<> SetAttributes(const Attributes& attributes);
  // Gives it its name. Without `replace` an existing file is left alone: kAlreadyExists.
  client::Result<> Commit(bool replace);

  // Removes the hidden files that nobody is writing any more ("": the current directory).
  static void RemoveAbandoned(const std::string& directory);

 private:
  PendingFile(std::string path, std::string hidden, LocalFd fd)
      : path_(std::move(path)), hidden_(std::move(hidden)), fd_(std::move(fd)) {}
  std::string path_;
  std::string hidden_;  // empty after Commit
  LocalFd fd_;
};

// An existing directory is success.
client::Result<> MakeLocalDirectory(const std::string& path);
client::Result<> SetLocalAttributes(const std::string& path, uint32_t mode, int64_t mtime_ns);

}  // namespace picket::cli
