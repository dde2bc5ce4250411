// Recycled memory for packets. The kernel charges a page fault for each fresh page, which costs more
// than moving the page over loopback, so buffers of packet size go round.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "common/env/buffer.h"

namespace picket::posix {

// Any thread. Buffers may outlive their pool's owner.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  // Keeps at most `kept_bytes_max` of free memory.
  static std::shared_ptr<BufferPool> Make(size_t kept_bytes_max) {
    return std::shared_ptr<BufferPool>(new BufferPool(kept_bytes_max));
  }
  ~BufferPool();

  // Uninitialised, page-aligned when pooled. Small and very large ones come from the heap.
  Buffer Allocate(size_t size);

  size_t kept_bytes() const;

 private:
  static constexpr size_t kSmallest = 16 << 10;
  static constexpr size_t kLargest = 1 << 20;
  static constexpr size_t kClasses = std::countr_zero(kLargest) - std::countr_zero(kSmallest) + 1;

  explicit BufferPool(size_t kept_bytes_max) : kept_bytes_max_(kept_bytes_max) {}
  std::byte* Take(size_t index);
  void GiveBack(std::byte* memory, size_t index);

  const size_t kept_bytes_max_;
  mutable std::mutex mutex_;
  size_t kept_bytes_ = 0;
  std::array<std::vector<std::byte*>, kClasses> free_;
};

}  // namespace picket::posix
