#include "tests/sim/inode.h"

#include <algorithm>
#include <cstring>

namespace picket::sim {
namespace {

constexpr uint64_t PagesOf(uint64_t size) { return (size + Inode::kPage - 1) / Inode::kPage; }

// Bits of the sectors that [begin, end) of a page touches.
constexpr uint8_t SectorBits(size_t begin, size_t end) {
  uint8_t bits = 0;
  for (size_t s = begin / Inode::kSector; s * Inode::kSector < end; ++s) bits |= static_cast<uint8_t>(1u << s);
  return bits;
}

}  // namespace

Inode::Page& Inode::Writable(Image* image, uint64_t page) {
  if (image->size() <= page) image->resize(page + 1);
  auto& p = (*image)[page];
  if (!p) {
    p = std::make_shared<Page>();
    p->fill(std::byte{0});
  } else if (p.use_count() > 1) {
    p = std::make_shared<Page>(*p);
  }
  return *p;
}

void Inode::Cut(Image* image, uint64_t size) {
  if (image->size() > PagesOf(size)) image->resize(PagesOf(size));
  const size_t tail = size % kPage;
  const uint64_t last = size / kPage;
  if (tail != 0 && last < image->size() && (*image)[last]) {
    Page& page = Writable(image, last);
    std::fill(page.begin() + static_cast<ptrdiff_t>(tail), page.end(), std::byte{0});
  }
}

void Inode::CopySector(Image* to, const Image& from, uint64_t page, int sector) {
  if (page >= from.size() || !from[page]) return;
  std::memcpy(Writable(to, page).data() + static_cast<size_t>(sector) * kSector,
              from[page]->data() + static_cast<size_t>(sector) * kSector, kSector);
}

void Inode::SharePage(Image* to, const Image& from, uint64_t page) {
  if (page >= from.size()) return;
  if (to->size() <= page) to->resize(page + 1);
  (*to)[page] = from[page];
}

uint64_t Inode::NewPages(uint64_t offset, size_t size) const {
  uint64_t n = 0;
  for (uint64_t page = std::max(offset / kPage, reserved_pages_); page < PagesOf(offset + size); ++page) {
    if (page >= current_.size() || !current_[page]) ++n;
  }
  return n;
}

size_t Inode::Read(uint64_t offset, std::span<std::byte> into) const {
  if (offset >= size_) return 0;
  const size_t n = std::min<uint64_t>(into.size(), size_ - offset);
  for (size_t done = 0; done < n;) {
    const uint64_t at = offset + done;
    const size_t step = std::min(n - done, kPage - at % kPage);
    const uint64_t page = at / kPage;
    if (page < current_.size() && current_[page]) {
      std::memcpy(into.data() + done, current_[page]->data() + at % kPage, step);
    } else {
      std::memset(into.data() + done, 0, step);
    }
    done += step;
  }
  return n;
}

void Inode::Write(uint64_t offset, std::span<const std::byte> data, double writeback_chance, Rng& rng) {
  charged_ += NewPages(offset, data.size());
  for (size_t done = 0; done < data.size();) {
    const uint64_t at = offset + done;
    const size_t begin = at % kPage;
    const size_t step = std::min(data.size() - done, kPage - begin);
    const uint64_t page = at / kPage;
    const uint8_t bits = SectorBits(begin, begin + step);
    uint8_t& dirty = dirty_[page];
    if (const uint8_t covered = dirty & bits; covered != 0 && writeback_chance > 0) {
      for (int s = 0; s < 8; ++s) {
        if ((covered >> s & 1) != 0 && rng.Chance(writeback_chance)) CopySector(&durable_, current_, page, s);
      }
    }
    dirty |= bits;
    std::memcpy(Writable(&current_, page).data() + begin, data.data() + done, step);
    done += step;
  }
  size_ = std::max(size_, offset + data.size());
}

void Inode::Truncate(uint64_t size) {
  if (size < size_) {
    Cut(&current_, size);
    dirty_.erase(dirty_.lower_bound(PagesOf(size)), dirty_.end());
    if (size % kPage != 0) dirty_[size / kPage] |= SectorBits(size % kPage, kPage);
    shrunk_to_ = std::min(shrunk_to_.value_or(size), size);
  }
  if (size <= size_) {
    reserved_pages_ = std::min(reserved_pages_, PagesOf(size));
    Recharge();
  }
  size_ = size;
}

void Inode::Reserve(uint64_t size) {
  reserved_pages_ = std::max(reserved_pages_, PagesOf(size));
  Recharge();
}

void Inode::Sync() {
  if (shrunk_to_) Cut(&durable_, *shrunk_to_);
  for (auto& [page, bits] : dirty_) SharePage(&durable_, current_, page);
  durable_size_ = size_;
  dirty_.clear();
  shrunk_to_.reset();
}

void Inode::FailSync() {
  dirty_.clear();
  shrunk_to_.reset();
}

void Inode::Writeback(uint64_t offset, uint64_t size, Rng& rng) {
  if (shrunk_to_) return;  // the size change goes first, and nobody asked for it
  auto it = dirty_.lower_bound(offset / kPage);
  while (it != dirty_.end() && it->first * kPage < offset + size) {
    if (rng.Chance(0.5)) {
      SharePage(&durable_, current_, it->first);
      durable_size_ = std::max(durable_size_, std::min(size_, (it->first + 1) * kPage));
      it = dirty_.erase(it);
    } else {
      ++it;
    }
  }
}

void Inode::LosePower(double sector_survival, Rng& rng) {
  if (shrunk_to_ && rng.Chance(0.5)) {
    Cut(&durable_, *shrunk_to_);
    durable_size_ = std::min(durable_size_, *shrunk_to_);
  }
  for (auto& [page, bits] : dirty_) {
    for (int s = 0; s < 8; ++s) {
      if ((bits >> s & 1) == 0 || !rng.Chance(sector_survival)) continue;
      CopySector(&durable_, current_, page, s);
      const uint64_t end = std::min(size_, page * kPage + static_cast<uint64_t>(s + 1) * kSector);
      durable_size_ = std::max(durable_size_, end);
    }
  }
  if (size_ > durable_size_ && rng.Chance(0.5)) durable_size_ = size_;
  dirty_.clear();
  shrunk_to_.reset();
  // Bytes beyond the size are not there, whatever the sector holds.
  Cut(&durable_, durable_size_);
  current_ = durable_;
  size_ = durable_size_;
  Recharge();
}

void Inode::FlipBit(uint64_t offset, uint8_t bit) {
  const uint64_t page = offset / kPage;
  for (Image* image : {&current_, &durable_}) {
    if (page >= image->size() || !(*image)[page]) continue;
    Writable(image, page)[offset % kPage] ^= static_cast<std::byte>(1u << (bit % 8));
  }
}

void Inode::Recharge() {
  charged_ = reserved_pages_;
  for (uint64_t page = reserved_pages_; page < current_.size(); ++page) {
    if (current_[page]) ++charged_;
  }
}

}  // namespace picket::sim
