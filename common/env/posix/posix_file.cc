#include "common/env/posix/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>

namespace picket::posix {
namespace {

// What one inline call may move: about a tenth of a millisecond of memory copying.
constexpr size_t kInlineMax = 1 << 20;
// Larger single writes make the kernel look for large pages, which costs more than they save.
constexpr size_t kWritePiece = 1 << 20;
constexpr size_t kProbeStep = 64 << 10;

struct ReadProgress {
  size_t done = 0;
  int error = 0;  // 0: all read, or the end of the file
};

ReadProgress Read(int fd, uint64_t offset, std::span<std::byte> into, size_t done, int flags) {
  while (done < into.size()) {
    const iovec piece{into.data() + done, into.size() - done};
    const ssize_t n = ::preadv2(fd, &piece, 1, static_cast<off_t>(offset + done), flags);
    if (n == 0) break;
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      return {done, errno};
    }
  }
  return {done, 0};
}

}  // namespace

PosixFile::PosixFile(WorkerPool& workers, UniqueFd fd, std::string path)
    : workers_(workers), handle_(std::make_shared<const Handle>(std::move(fd), std::move(path))) {}

Task<Result<size_t>> PosixFile::ReadAt(uint64_t offset, Buffer into) {
  size_t done = 0;
  if (into.size() <= kInlineMax) {
    const ReadProgress cached = Read(fd(), offset, into.span(), 0, RWF_NOWAIT);
    if (cached.error == 0) co_return cached.done;
    // EAGAIN: the rest is on disk. EOPNOTSUPP: this file system cannot tell. All else the worker meets again.
    done = cached.done;
  }
  auto work = [handle = handle_, offset, into, done] { return ReadFully(*handle, offset, into, done); };
  co_return co_await workers_.Run<Result<size_t>>(std::move(work));
}

Task<Status> PosixFile::WriteAt(uint64_t offset, Buffer data) {
  if (data.size() <= kInlineMax) co_return WriteFully(*handle_, offset, data);
  auto work = [handle = handle_, offset, data] { return WriteFully(*handle, offset, data); };
  co_return co_await OnWorker(std::move(work));
}

Task<Status> PosixFile::Sync() {
  return OnWorker([handle = handle_]() -> Status {
    if (::fdatasync(handle->fd.get()) != 0) return Fail(handle->Failed(errno, "sync"));
    return {};
  });
}

Task<Status> PosixFile::Truncate(uint64_t size) {
  return OnWorker([handle = handle_, size]() -> Status {
    if (::ftruncate(handle->fd.get(), static_cast<off_t>(size)) != 0) {
      return Fail(handle->Failed(errno, "set the size of"));
    }
    return {};
  });
}

Task<Status> PosixFile::Reserve(uint64_t size) {
  return OnWorker([handle = handle_, size]() -> Status {
    if (size == 0 || ::fallocate(handle->fd.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)) == 0) return {};
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR) return {};
    return Fail(handle->Failed(errno, "reserve space for"));
  });
}

Task<Result<uint64_t>> PosixFile::Size() {
  struct stat st;
  if (::fstat(fd(), &st) != 0) co_return Fail(handle_->Failed(errno, "stat"));
  co_return static_cast<uint64_t>(st.st_size);
}

void PosixFile::StartWriteback(uint64_t offset, uint64_t size) {
  if (size == 0) return;  // to the kernel, 0 means "to the end"
  workers_.Submit([handle = handle_, offset, size] {
    ::sync_file_range(handle->fd.get(), static_cast<off_t>(offset), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE);
  });
}

bool PosixFile::Cached(uint64_t offset, size_t size) const {
  std::byte byte;
  const iovec piece{&byte, 1};
  for (size_t at = 0; at < size; at += kProbeStep) {
    if (::preadv2(fd(), &piece, 1, static_cast<off_t>(offset + at), RWF_NOWAIT) < 0 && errno == EAGAIN) return false;
  }
  return true;
}

Result<size_t> PosixFile::ReadFully(const Handle& handle, uint64_t offset, const Buffer& into, size_t done) {
  const ReadProgress read = Read(handle.fd.get(), offset, into.span(), done, 0);
  if (read.error != 0) return Fail(handle.Failed(read.error, "read"));
  return read.done;
}

Status PosixFile::WriteFully(const Handle& handle, uint64_t offset, const Buffer& data) {
  size_t done = 0;
  while (done < data.size()) {
    const size_t piece = std::min(data.size() - done, kWritePiece);
    const ssize_t n = ::pwrite(handle.fd.get(), data.data() + done, piece, static_cast<off_t>(offset + done));
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      return Fail(handle.Failed(errno, "write"));
    }
  }
  return {};
}

}  // namespace picket::posix
