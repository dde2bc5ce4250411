// The timers of one loop, as a value: a binary heap with lazy deletion over reusable slots, so that
// adding and cancelling (the common life of a call's deadline) allocate nothing once warm.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/env/env.h"
#include "common/env/task.h"

namespace picket::posix {

class TimerHeap {
 public:
  // Never 0. Equal times fire in the order they were added.
  TimerId Add(Mono when, Fn fn);
  // Destroys fn before it returns. Unknown, fired and cancelled ids are ignored.
  void Cancel(TimerId id);
  // When the earliest timer is due.
  std::optional<Mono> Next();
  // Takes out the earliest timer if it is due at `now` and was added before `end`; empty otherwise.
  Fn PopDue(Mono now, uint64_t end);
  // Tells timers added from here on from older ones: see PopDue.
  uint64_t sequence() const { return sequence_; }
  size_t size() const { return live_; }
  void Clear();

 private:
  struct Slot {
    Fn fn;
    uint32_t generation = 1;
    bool live = false;
  };
  struct Entry {
    Mono when;
    uint64_t sequence;
    TimerId id;
    bool operator>(const Entry& o) const {
      return when != o.when ? when > o.when : sequence > o.sequence;
    }
  };

  Slot* Find(TimerId id);
  Fn Release(TimerId id);
  void DropDeadTop();
  void PopTop();

  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<Entry> heap_;
  uint64_t sequence_ = 0;
  size_t live_ = 0;
};

}  // namespace picket::posix
