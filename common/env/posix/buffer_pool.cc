#include "common/env/posix/buffer_pool.h"

#include <cstdlib>
#include <new>

namespace picket::posix {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

BufferPool::~BufferPool() {
  for (auto& memory : free_)
    for (std::byte* p : memory) std::free(p);
}

Buffer BufferPool::Allocate(size_t size) {
  if (size <= kSmallest / 2 || size > kLargest) return Buffer::Allocate(size);
  const size_t capacity = std::max(std::bit_ceil(size), kSmallest);
  const size_t index = std::countr_zero(capacity) - std::countr_zero(kSmallest);
  std::byte* memory = Take(index);
  auto pool = shared_from_this();
  return Buffer(std::shared_ptr<std::byte[]>(
                    memory, [pool, index](std::byte* p) { pool->GiveBack(p, index); }),
                0, size);
}

size_t BufferPool::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

std::byte* BufferPool::Take(size_t index) {
  {
    const std::lock_guard lock(mutex_);
    auto& list = free_[index];
    if (!list.empty()) {
      std::byte* memory = list.back();  // the one used last is still in the CPU's cache
      list.pop_back();
      kept_bytes_ -= kSmallest << index;
      return memory;
    }
  }
  void* memory = std::aligned_alloc(kPage, kSmallest << index);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

void BufferPool::GiveBack(std::byte* memory, size_t index) {
  {
    const std::lock_guard lock(mutex_);
    if (kept_bytes_ + (kSmallest << index) <= kept_bytes_max_) {
      free_[index].push_back(memory);
      kept_bytes_ += kSmallest << index;
      return;
    }
  }
  std::free(memory);
}

}  // namespace picket::posix
