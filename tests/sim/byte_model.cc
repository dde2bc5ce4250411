#include "tests/sim/byte_model.h"

#include <iterator>

namespace picket::sim {

void ByteModel::Split(uint64_t at) {
  auto it = extents_.lower_bound(at);
  if (it == extents_.begin()) return;
  --it;
  auto& [start, extent] = *it;
  if (start + extent.size <= at) return;
  Extent rest = extent;
  rest.size = start + extent.size - at;
  extent.size = at - start;
  if (extent.acknowledged) {
    rest.bytes.erase(0, extent.size);
    extent.bytes.resize(extent.size);
  }
  extents_.emplace(at, std::move(rest));
}

uint32_t ByteModel::Begin(uint64_t offset, uint64_t size) {
  ++newest_;
  Split(offset);
  Split(offset + size);
  const auto first = extents_.lower_bound(offset);
  const auto last = extents_.lower_bound(offset + size);
  const bool replaces = first != last;
  if (replaces) ++changes_;
  extents_.erase(first, last);
  extents_[offset] = {.size = size, .write = newest_, .replaced = replaces, .bytes = {}};
  return newest_;
}

void ByteModel::Acknowledge(uint32_t write, uint64_t offset, std::string_view bytes, bool synced) {
  for (auto it = extents_.lower_bound(offset); it != extents_.end() && it->first < offset + bytes.size(); ++it) {
    auto& [start, extent] = *it;
    if (extent.write != write) continue;
    if (extent.replaced) ++changes_;  // whoever read meanwhile may have seen the bytes before
    extent.replaced = false;
    extent.acknowledged = true;
    extent.synced = synced;
    extent.bytes = bytes.substr(start - offset, extent.size);
    acknowledged_end_ = std::max(acknowledged_end_, start + extent.size);
  }
}

void ByteModel::BeginCut(uint64_t length) {
  ++cuts_;
  ++changes_;
  in_doubt_.insert(length);
}

void ByteModel::EndCut(uint64_t length, std::optional<bool> happened) {
  ++cuts_;
  ++changes_;
  if (!happened) return;
  in_doubt_.erase(in_doubt_.find(length));
  if (!*happened) return;
  Split(length);
  extents_.erase(extents_.lower_bound(length), extents_.end());
  acknowledged_end_ = std::min(acknowledged_end_, length);
}

bool ByteModel::either(uint64_t at) const {
  auto it = extents_.upper_bound(at);
  if (it == extents_.begin()) return false;
  const auto& [start, extent] = *std::prev(it);
  return at < start + extent.size && extent.replaced && !extent.acknowledged;
}

ByteModel::Promise ByteModel::Now() const {
  Promise promise{.writes = {}, .cuts = cuts_};
  for (const auto& [start, extent] : extents_) {
    if (extent.acknowledged) promise.writes.insert(extent.write);
  }
  return promise;
}

std::optional<uint64_t> ByteModel::FirstDifference(uint64_t start, std::string_view bytes,
                                                   std::string_view content) const {
  if (start >= limit()) return std::nullopt;
  bytes = bytes.substr(0, limit() - start);
  const std::string_view there = start < content.size() ? content.substr(start, bytes.size()) : std::string_view();
  if (there == bytes) return std::nullopt;
  return start + static_cast<uint64_t>(std::distance(there.begin(), std::ranges::mismatch(there, bytes).in1));
}

}  // namespace picket::sim
