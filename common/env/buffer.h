// Counted byte buffers that travel through every layer without being copied.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "common/base/check.h"

namespace picket {

// A slice of a counted allocation. Copies share the bytes. Writable only by convention of who
// allocated it and has not yet shared it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<std::byte[]> memory, size_t offset, size_t size)
      : memory_(std::move(memory)), offset_(offset), size_(size) {}
  // Uninitialised. Env::Allocate is the pooled way.
  static Buffer Allocate(size_t size) {
    return Buffer(std::make_shared_for_overwrite<std::byte[]>(size), 0, size);
  }
  static Buffer Copy(std::string_view bytes) {
    Buffer b = Allocate(bytes.size());
    if (!bytes.empty()) std::memcpy(b.data(), bytes.data(), bytes.size());
    return b;
  }

  std::byte* data() const { return memory_.get() + offset_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<std::byte> span() const { return {data(), size_}; }
  std::string_view view() const { return {reinterpret_cast<const char*>(data()), size_}; }
  Buffer Slice(size_t offset, size_t size) const {
    PICKET_CHECK(offset <= size_ && size <= size_ - offset);
    return Buffer(memory_, offset_ + offset, size);
  }

 private:
  std::shared_ptr<std::byte[]> memory_;
  size_t offset_ = 0;
  size_t size_ = 0;
};

}  // namespace picket
