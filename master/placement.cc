#include "master/placement.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "common/base/error.h"
#include "common/base/rng.h"

namespace picket {
namespace {

// How full a disk counts as, in thousandths.
constexpr uint64_t kPerMille = 1000;
// What one recent creation adds, and all of them at most: equal servers take turns, but a disk emptier
// by a tenth goes first.
constexpr uint64_t kRecentCreationPerMille = 5;
constexpr uint64_t kRecentCreationsPerMilleMax = 100;

uint64_t Load(const PlacementCandidate& c) {
  const uint64_t used = c.total_bytes - std::min(c.free_bytes, c.total_bytes);
  const uint64_t unit = std::max<uint64_t>(c.total_bytes / kPerMille, 1);
  return used / unit + std::min(kRecentCreationPerMille * c.recent_creations, kRecentCreationsPerMilleMax);
}

}  // namespace

std::vector<ServerId> Place(const PlacementRequest& request, const std::vector<PlacementCandidate>& candidates) {
  std::map<std::string, size_t> rack_use;
  for (const std::string& rack : request.racks) ++rack_use[rack];
  std::vector<const PlacementCandidate*> left;
  for (const PlacementCandidate& c : candidates) {
    if (c.live && c.free_bytes >= request.chunk_bytes &&
        std::ranges::find(request.exclude, c.server) == request.exclude.end()) {
      left.push_back(&c);
    }
  }
  std::vector<ServerId> chosen;
  while (chosen.size() < request.count && !left.empty()) {
    const auto rank = [&](const PlacementCandidate* c) {
      const auto used = rack_use.find(c->rack);
      return std::tuple(used == rack_use.end() ? size_t{0} : used->second, Load(*c),
                        Rng(request.tie ^ c->server.value).Next(), c->server);
    };
    const auto best = std::ranges::min_element(left, {}, rank);
    const PlacementCandidate* pick = *best;
    left.erase(best);
    ++rack_use[pick->rack];
    chosen.push_back(pick->server);
  }
  return chosen;
}

std::string DescribeUnfit(uint64_t chunk_bytes, const std::vector<PlacementCandidate>& candidates) {
  std::string out;
  for (const PlacementCandidate& c : candidates) {
    if (!c.live || c.free_bytes >= chunk_bytes) continue;
    out += (out.empty() ? "" : ", ") + ToString(c.server) + " (" + std::string(CodeName(Code::kNoSpace)) + ": " +
           std::to_string(c.free_bytes) + " bytes free)";
  }
  return out;
}

}  // namespace picket
