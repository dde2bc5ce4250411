// What a file that several writers contest must hold: which write was acknowledged last, of each byte, and how
// safely. A byte that a write has touched and nobody has acknowledged since may be old or new. Above the lowest cut
// whose outcome is not known nothing is said.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace picket::sim {

class ByteModel {
 public:
  // A write begins: until it is acknowledged its bytes are anybody's. Returns its number, for Acknowledge.
  uint32_t Begin(uint64_t offset, uint64_t size);
  // What of it no later write has touched is there for ever; with `synced`, whatever loses power.
  void Acknowledge(uint32_t write, uint64_t offset, std::string_view bytes, bool synced);

  // A truncation to `length` begins, and ends: it happened, it certainly did not, or nobody knows.
  void BeginCut(uint64_t length);
  void EndCut(uint64_t length, std::optional<bool> happened);

  // So long is the file at least.
  uint64_t end() const { return std::min(acknowledged_end_, limit()); }
  // Rises when a truncation begins or ends.
  uint64_t cuts() const { return cuts_; }
  // Rises when bytes may have been replaced or taken away, so that what was read before says nothing.
  uint64_t changes() const { return changes_; }
  // A write has replaced it, and was not acknowledged: it may be old or new, and old again.
  bool either(uint64_t at) const;

  // What must be there now; for a reader, compared when it is done with what must be there then.
  struct Promise {
    std::set<uint32_t> writes;  // acknowledged
    uint64_t cuts = 0;
  };
  Promise Now() const;
  // The first byte of `content` that is not what was promised before and is promised still; a byte of a write
  // that may_lose(synced) excuses is right whatever it is.
  template <class MayLose>
  std::optional<uint64_t> Differs(const Promise& before, std::string_view content, MayLose may_lose) const {
    if (before.cuts != cuts_) return std::nullopt;
    for (const auto& [start, extent] : extents_) {
      if (!extent.acknowledged || !before.writes.contains(extent.write) || may_lose(extent.synced)) continue;
      if (auto at = FirstDifference(start, extent.bytes, content)) return at;
    }
    return std::nullopt;
  }

 private:
  struct Extent {
    uint64_t size = 0;
    uint32_t write = 0;
    bool replaced = false;
    bool acknowledged = false;
    bool synced = false;
    std::string bytes;  // when acknowledged
  };
  uint64_t limit() const { return in_doubt_.empty() ? UINT64_MAX : *in_doubt_.begin(); }
  // No extent reaches over `at` any more.
  void Split(uint64_t at);
  std::optional<uint64_t> FirstDifference(uint64_t start, std::string_view bytes, std::string_view content) const;

  std::map<uint64_t, Extent> extents_;  // by offset
  uint32_t newest_ = 0;
  uint64_t acknowledged_end_ = 0;
  std::multiset<uint64_t> in_doubt_;
  uint64_t cuts_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace picket::sim
