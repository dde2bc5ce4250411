#include "common/env/posix/timer_heap.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace picket::posix {
namespace {

constexpr size_t kCompactAbove = 64;  // heap entries; fewer are not worth a rebuild

}  // namespace

TimerId TimerHeap::Add(Mono when, Fn fn) {
  uint32_t index;
  if (free_.empty()) {
    index = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Slot& slot = slots_[index];
  slot.fn = std::move(fn);
  slot.live = true;
  ++live_;
  const TimerId id = uint64_t{slot.generation} << 32 | index;
  heap_.push_back({when, sequence_++, id});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  return id;
}

void TimerHeap::Cancel(TimerId id) {
  if (Find(id) == nullptr) return;
  // Destroyed last: what it owns may come back here.
  const Fn dying = Release(id);
  if (heap_.size() > kCompactAbove && heap_.size() > 4 * live_) {
    std::erase_if(heap_, [this](const Entry& e) { return Find(e.id) == nullptr; });
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }
}

std::optional<Mono> TimerHeap::Next() {
  DropDeadTop();
  if (heap_.empty()) return std::nullopt;
  return heap_.front().when;
}

Fn TimerHeap::PopDue(Mono now, uint64_t end) {
  DropDeadTop();
  if (heap_.empty() || heap_.front().when > now || heap_.front().sequence >= end) return nullptr;
  const TimerId id = heap_.front().id;
  PopTop();
  return Release(id);
}

void TimerHeap::Clear() {
  heap_.clear();
  free_.clear();
  live_ = 0;
  const auto dying = std::exchange(slots_, {});
}

TimerHeap::Slot* TimerHeap::Find(TimerId id) {
  const auto index = static_cast<uint32_t>(id);
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  return slot.live && slot.generation == id >> 32 ? &slot : nullptr;
}

Fn TimerHeap::Release(TimerId id) {
  const auto index = static_cast<uint32_t>(id);
  Slot& slot = slots_[index];
  Fn fn = std::move(slot.fn);
  slot.fn = nullptr;
  slot.live = false;
  if (++slot.generation == 0) slot.generation = 1;
  free_.push_back(index);
  --live_;
  return fn;
}

void TimerHeap::DropDeadTop() {
  while (!heap_.empty() && Find(heap_.front().id) == nullptr) PopTop();
}

void TimerHeap::PopTop() {
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
  heap_.pop_back();
}

}  // namespace picket::posix
