#include "common/env/posix/timer_heap.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "common/base/rng.h"

namespace picket::posix {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};

// Against a sorted map, over random adds, cancels and steps of time.
TEST(TimerHeap, AgreesWithAModel) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    TimerHeap heap;
    std::map<std::pair<Mono, uint64_t>, TimerId> model;  // (when, order of adding)
    std::map<TimerId, std::pair<Mono, uint64_t>> by_id;
    std::vector<TimerId> all;
    std::vector<TimerId> fired;
    uint64_t order = 0;
    Mono now{};
    for (int step = 0; step < 3000; ++step) {
      switch (rng.Below(4)) {
        case 0:
        case 1: {
          const Mono when = now + Nanos(rng.Below(100));
          auto slot = std::make_shared<TimerId>();
          const TimerId id = heap.Add(when, [&fired, slot] { fired.push_back(*slot); });
          *slot = id;
          ASSERT_NE(id, 0u);
          ASSERT_FALSE(by_id.contains(id)) << "an id in use was handed out";
          model[{when, order}] = id;
          by_id[id] = {when, order++};
          all.push_back(id);
          break;
        }
        case 2: {
          if (all.empty()) break;
          const TimerId id = all[rng.Below(all.size())];  // often long gone
          heap.Cancel(id);
          if (auto it = by_id.find(id); it != by_id.end()) {
            model.erase(it->second);
            by_id.erase(it);
          }
          break;
        }
        case 3: {
          now += Nanos(rng.Below(50));
          fired.clear();
          while (Fn fn = heap.PopDue(now, kAll)) fn();
          std::vector<TimerId> expected;
          while (!model.empty() && model.begin()->first.first <= now) {
            expected.push_back(model.begin()->second);
            by_id.erase(model.begin()->second);
            model.erase(model.begin());
          }
          ASSERT_EQ(fired, expected) << "seed " << seed;
          break;
        }
      }
      ASSERT_EQ(heap.size(), model.size());
      const auto next = heap.Next();
      ASSERT_EQ(next.has_value(), !model.empty());
      if (next) ASSERT_EQ(*next, model.begin()->first.first);
    }
  }
}

TEST(TimerHeap, ATimerAddedWhileFiringWaitsForTheNextRound) {
  TimerHeap heap;
  const Mono now{Nanos(10)};
  int rounds = 0;
  std::function<void()> again = [&] {
    ++rounds;
    heap.Add(Mono{}, [&] { again(); });
  };
  heap.Add(Mono{}, [&] { again(); });
  for (int i = 1; i <= 3; ++i) {
    const uint64_t end = heap.sequence();
    while (Fn fn = heap.PopDue(now, end)) fn();
    EXPECT_EQ(rounds, i);
  }
}

TEST(TimerHeap, CancellingInADestructorIsSafe) {
  struct CancelsOnDeath {
    TimerHeap* heap;
    TimerId other;
    CancelsOnDeath(TimerHeap* h, TimerId o) : heap(h), other(o) {}
    CancelsOnDeath(CancelsOnDeath&& o) noexcept : heap(std::exchange(o.heap, nullptr)), other(o.other) {}
    ~CancelsOnDeath() {
      if (heap != nullptr) heap->Cancel(other);
    }
  };
  TimerHeap heap;
  const TimerId inner = heap.Add(Mono{}, [] { FAIL(); });
  const TimerId outer = heap.Add(Mono{}, [c = CancelsOnDeath(&heap, inner)] { FAIL(); });
  heap.Cancel(outer);
  EXPECT_EQ(heap.size(), 0u);
  EXPECT_FALSE(heap.PopDue(Mono::max(), kAll));
  heap.Add(Mono{}, [c = CancelsOnDeath(&heap, inner)] { FAIL(); });
  heap.Clear();
  EXPECT_EQ(heap.size(), 0u);
}

}  // namespace
}  // namespace picket::posix
