// A file or directory of a simulated disk: what reads show, and what a power loss leaves.
//
// 1. `current` is what reads show; `durable` is on the platter. Both share pages until they differ.
// 2. A sector (512 B) is dirty when written and not synced; a power loss keeps or loses each by itself.
// 3. A sync makes all of it durable. A failed one forgets what was dirty, as Linux does: reads go on
//    showing the bytes, a later sync does not write them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/rng.h"

namespace picket::sim {

class Inode {
 public:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kSector = 512;

  explicit Inode(bool directory) : directory_(directory) {}

  bool directory() const { return directory_; }
  uint64_t size() const { return size_; }
  uint64_t durable_size() const { return durable_size_; }
  bool dirty() const { return !dirty_.empty() || size_ != durable_size_ || shrunk_to_; }
  uint64_t charged_pages() const { return charged_; }
  // Pages that a write of [offset, offset + size) would allocate.
  uint64_t NewPages(uint64_t offset, size_t size) const;

  size_t Read(uint64_t offset, std::span<std::byte> into) const;
  // `writeback_chance`: that a dirty sector had reached the platter before this write covers it.
  void Write(uint64_t offset, std::span<const std::byte> data, double writeback_chance, Rng& rng);
  void Truncate(uint64_t size);
  void Reserve(uint64_t size);
  void Sync();
  void FailSync();
  // Each dirty page of the range becomes durable, or not.
  void Writeback(uint64_t offset, uint64_t size, Rng& rng);
  void LosePower(double sector_survival, Rng& rng);
  void FlipBit(uint64_t offset, uint8_t bit);

 private:
  using Page = std::array<std::byte, kPage>;
  using Image = std::vector<std::shared_ptr<Page>>;

  static Page& Writable(Image* image, uint64_t page);
  static void Cut(Image* image, uint64_t size);
  static void CopySector(Image* to, const Image& from, uint64_t page, int sector);
  static void SharePage(Image* to, const Image& from, uint64_t page);
  void Recharge();

  const bool directory_;
  Image current_;
  Image durable_;
  uint64_t size_ = 0;
  uint64_t durable_size_ = 0;
  std::map<uint64_t, uint8_t> dirty_;      // page -> bits of its dirty sectors
  std::optional<uint64_t> shrunk_to_;      // least size set since the last sync
  uint64_t reserved_pages_ = 0;
  uint64_t charged_ = 0;
};

}  // namespace picket::sim
