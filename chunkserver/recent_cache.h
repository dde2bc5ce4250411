// A bounded cache of what was used lately: two generations of at most half the bound each; a hit in the
// older one moves to the newer. Deterministic, O(log n).
#pragma once

#include <cstddef>
#include <map>
#include <utility>

namespace picket::cs {

template <class Key, class Value>
class RecentCache {
 public:
  explicit RecentCache(size_t bound) : half_(bound / 2) {}

  // Valid until the next call that is not const; null: not there.
  Value* Find(const Key& key) {
    if (auto it = recent_.find(key); it != recent_.end()) return &it->second;
    auto it = older_.find(key);
    if (it == older_.end()) return nullptr;
    Value value = std::move(it->second);
    older_.erase(it);
    return &Put(key, std::move(value));
  }
  Value& Put(const Key& key, Value value) {
    if (recent_.size() >= half_ && !recent_.contains(key)) older_ = std::exchange(recent_, {});
    return recent_[key] = std::move(value);
  }
  template <class Predicate>
  void EraseIf(Predicate drop) {
    std::erase_if(recent_, [&](const auto& entry) { return drop(entry.first); });
    std::erase_if(older_, [&](const auto& entry) { return drop(entry.first); });
  }
  size_t size() const { return recent_.size() + older_.size(); }

 private:
  const size_t half_;
  std::map<Key, Value> recent_;
  std::map<Key, Value> older_;
};

}  // namespace picket::cs
