#include "master/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace picket {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr uint64_t kGiB = 1 << 30;

PlacementCandidate Candidate(uint64_t id, std::string rack = "a", uint64_t free = 50 * kGiB) {
  return PlacementCandidate{ServerId(id), std::move(rack), true, 100 * kGiB, free, 0};
}

PlacementRequest Request(size_t count) {
  PlacementRequest r;
  r.count = count;
  r.chunk_bytes = 64 << 20;
  return r;
}

TEST(Placement, DistinctServersAndNoMoreThanThereAre) {
  const std::vector<PlacementCandidate> three = {Candidate(1), Candidate(2), Candidate(3)};
  EXPECT_THAT(Place(Request(3), three), UnorderedElementsAre(ServerId(1), ServerId(2), ServerId(3)));
  EXPECT_EQ(Place(Request(5), three).size(), 3u);
  EXPECT_THAT(Place(Request(2), {}), IsEmpty());
}

TEST(Placement, SkipsWhatIsNotFit) {
  std::vector<PlacementCandidate> c = {Candidate(1), Candidate(2), Candidate(3), Candidate(4, "a", (64 << 20) - 1)};
  c[0].live = false;  // suspect or dead
  PlacementRequest request = Request(4);
  request.exclude = {ServerId(2)};
  EXPECT_THAT(Place(request, c), ElementsAre(ServerId(3)));
}

TEST(Placement, RacksAreSpread) {
  const std::vector<PlacementCandidate> c = {Candidate(1, "a", 90 * kGiB), Candidate(2, "a", 80 * kGiB),
                                             Candidate(3, "a", 70 * kGiB), Candidate(4, "b", 10 * kGiB),
                                             Candidate(5, "c", 5 * kGiB)};
  EXPECT_THAT(Place(Request(3), c), ElementsAre(ServerId(1), ServerId(4), ServerId(5)));
  EXPECT_THAT(Place(Request(4), c), ElementsAre(ServerId(1), ServerId(4), ServerId(5), ServerId(2)));
  // The racks of the replicas that there are count too.
  PlacementRequest more = Request(1);
  more.racks = {"a", "c"};
  EXPECT_THAT(Place(more, c), ElementsAre(ServerId(4)));
}

TEST(Placement, EmptierDiskFirst) {
  const std::vector<PlacementCandidate> c = {Candidate(1, "a", 20 * kGiB), Candidate(2, "a", 60 * kGiB),
                                             Candidate(3, "a", 40 * kGiB)};
  EXPECT_THAT(Place(Request(3), c), ElementsAre(ServerId(2), ServerId(3), ServerId(1)));
}

TEST(Placement, RecentCreationsCountButDoNotOverruleATenthOfTheDisk) {
  std::vector<PlacementCandidate> c = {Candidate(1), Candidate(2)};
  c[0].recent_creations = 1;
  EXPECT_THAT(Place(Request(1), c), ElementsAre(ServerId(2)));
  c[0].free_bytes = 65 * kGiB;
  c[0].recent_creations = 1000;
  EXPECT_THAT(Place(Request(1), c), ElementsAre(ServerId(1)));
}

TEST(Placement, EqualsTakeTurns) {
  const std::vector<PlacementCandidate> c = {Candidate(1), Candidate(2), Candidate(3), Candidate(4)};
  std::set<ServerId> first;
  for (uint64_t tie = 0; tie < 64; ++tie) {
    PlacementRequest request = Request(1);
    request.tie = tie;
    first.insert(Place(request, c)[0]);
  }
  EXPECT_EQ(first.size(), 4u);
}

}  // namespace
}  // namespace picket
