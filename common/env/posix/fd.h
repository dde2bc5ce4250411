// Owned file descriptors, and errno as an Error.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/base/error.h"

namespace picket::posix {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& o) noexcept : fd_(o.release()) {}
  UniqueFd& operator=(UniqueFd&& o) noexcept {
    if (this != &o) {
      Close();
      fd_ = o.release();
    }
    return *this;
  }
  ~UniqueFd() { Close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int fd_ = -1;
};

// "cannot DOING PATH: REASON", with the code that the seam promises for this errno.
inline Error ErrnoError(int error, std::string_view doing, std::string_view path) {
  Code code = Code::kIoError;
  switch (error) {
    case ENOSPC:
    case EDQUOT: code = Code::kNoSpace; break;
    case ENOENT: code = Code::kNotFound; break;
    case EEXIST: code = Code::kAlreadyExists; break;
    default: break;
  }
  std::string message = "cannot ";
  message.append(doing).append(" ").append(path).append(": ").append(std::generic_category().message(error));
  return Error(code, std::move(message));
}

}  // namespace picket::posix
