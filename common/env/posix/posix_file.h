// An open file. What the page cache can serve is read inline, small writes go into it inline; all that
// may wait for the disk runs on the workers. An operation owns its descriptor and its buffer, so the
// file and the waiting task may be destroyed while it runs.
#pragma once

#include <memory>
#include <string>

#include "common/env/fs.h"
#include "common/env/posix/fd.h"
#include "common/env/posix/worker_pool.h"

namespace picket::posix {

class PosixFile final : public File {
 public:
  PosixFile(WorkerPool& workers, UniqueFd fd, std::string path);

  Task<Result<size_t>> ReadAt(uint64_t offset, Buffer into) override;
  Task<Status> WriteAt(uint64_t offset, Buffer data) override;
  Task<Status> Sync() override;
  Task<Status> Truncate(uint64_t size) override;
  Task<Status> Reserve(uint64_t size) override;
  Task<Result<uint64_t>> Size() override;
  void StartWriteback(uint64_t offset, uint64_t size) override;

  int fd() const { return handle_->fd.get(); }
  // True if reading these bytes will probably not wait for the disk.
  bool Cached(uint64_t offset, size_t size) const;

 private:
  struct Handle {
    UniqueFd fd;
    std::string path;
    Error Failed(int error, std::string_view doing) const { return ErrnoError(error, doing, path); }
  };
  using HandlePtr = std::shared_ptr<const Handle>;

  static Result<size_t> ReadFully(const Handle& handle, uint64_t offset, const Buffer& into, size_t done);
  static Status WriteFully(const Handle& handle, uint64_t offset, const Buffer& data);
  Task<Status> OnWorker(std::move_only_function<Status()> work) { return workers_.Run<Status>(std::move(work)); }

  WorkerPool& workers_;
  const HandlePtr handle_;
};

}  // namespace picket::posix
