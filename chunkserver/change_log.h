// The chunks whose replica changed since the last heartbeat that the master has answered. Bounded by
// the number of chunks: only the present state is ever told.
#pragma once

#include <set>
#include <utility>

#include "common/base/ids.h"

namespace picket::cs {

class ChangeLog {
 public:
  struct Changes {
    std::set<ChunkId> changed;
    std::set<ChunkId> removed;
  };
  void Changed(ChunkId chunk) {
    now_.removed.erase(chunk);
    now_.changed.insert(chunk);
  }
  void Removed(ChunkId chunk) {
    now_.changed.erase(chunk);
    now_.removed.insert(chunk);
  }
  // At most `limit` of each; the rest stays for the next time.
  Changes Take(size_t limit) {
    Changes out;
    while (!now_.changed.empty() && out.changed.size() < limit)
      out.changed.insert(now_.changed.extract(now_.changed.begin()));
    while (!now_.removed.empty() && out.removed.size() < limit)
      out.removed.insert(now_.removed.extract(now_.removed.begin()));
    return out;
  }
  // The heartbeat failed. What has changed since wins.
  void PutBack(Changes old) {
    for (ChunkId c : old.changed) {
      if (!now_.removed.contains(c)) now_.changed.insert(c);
    }
    for (ChunkId c : old.removed) {
      if (!now_.changed.contains(c)) now_.removed.insert(c);
    }
  }
  void Clear() { now_ = Changes(); }
  bool empty() const { return now_.changed.empty() && now_.removed.empty(); }

 private:
  Changes now_;
};

}  // namespace picket::cs
