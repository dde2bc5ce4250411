#include "master/history.h"

#include <algorithm>

#include "common/base/check.h"

namespace picket {

Status JudgeHistory(const std::vector<record::Activation>& activations, uint64_t revision, const SeenMark& seen) {
  if (seen.epoch.number == 0) return {};
  PICKET_CHECK(!activations.empty());
  const uint32_t own = activations.back().epoch();
  const auto lost = [&](std::string why) {
    return Fail(Error(Code::kHistoryLost, "the server has seen epoch " + std::to_string(seen.epoch.number) +
                                              " up to revision " + std::to_string(seen.revision) + ", but " + why)
                    .WithTokens(seen.epoch.number, own)
                    .WithNextStep("this master runs on older or foreign metadata: stop it and start it on the "
                                  "newest copy of its directory; if that is lost: 'picket admin adopt --dry-run'"));
  };
  if (seen.epoch.number > own) return lost("this master is only at epoch " + std::to_string(own));
  if (seen.epoch.number < AdoptedEpoch(activations)) return {};
  for (size_t i = 0; i < activations.size(); ++i) {
    if (activations[i].epoch() != seen.epoch.number) continue;
    if (activations[i].nonce() != seen.epoch.nonce) return lost("this master's epoch of that number is another one");
    const uint64_t end = i + 1 < activations.size() ? activations[i + 1].first_revision() - 1 : revision;
    if (seen.revision > end) return lost("here that epoch ended at revision " + std::to_string(end));
    return {};
  }
  return lost("this master has no record of that epoch");
}

uint32_t AdoptedEpoch(const std::vector<record::Activation>& activations) {
  const auto adopted = std::ranges::find_if(activations.rbegin(), activations.rend(), &record::Activation::adopted);
  return adopted == activations.rend() ? 0 : adopted->epoch();
}

bool IsOfHistory(const std::vector<record::Activation>& activations, uint32_t epoch) {
  return std::ranges::binary_search(activations, epoch, {}, &record::Activation::epoch);
}

}  // namespace picket
