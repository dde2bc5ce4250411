#include "master/common_prefix.h"

#include <algorithm>
#include <string>

#include "common/base/coding.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"

namespace picket {

CommonContent FindCommonContent(const std::vector<MemberAnswer>& members, const std::vector<size_t>& among) {
  const auto applied = [&](size_t i) {
    return PICKET_MUTANT(applied_prefix) ? members[i].known_acked : members[i].length;
  };
  const size_t shortest = *std::ranges::min_element(among, {}, applied);
  const MemberAnswer& low = members[shortest];
  const bool overwritten = std::ranges::any_of(among, [&](size_t i) { return members[i].overwritten; });
  CommonContent common{shortest, applied(shortest), true};
  for (uint64_t block = 0; block < low.block_crcs.size(); ++block) {
    const uint64_t block_end = std::min((block + 1) * kBlockSize, low.length);
    for (size_t i : among) {
      const MemberAnswer& other = members[i];
      const bool same_extent = std::min((block + 1) * kBlockSize, other.length) == block_end;
      if (!same_extent || other.block_crcs[block] == low.block_crcs[block] || PICKET_MUTANT(reconcile_crcs)) continue;
      common.equal = false;
      if (overwritten) continue;
      common.length = block * kBlockSize;
      return common;
    }
  }
  for (size_t i : among) common.equal = common.equal && members[i].length == common.length;
  return common;
}

uint32_t DigestOfCrcs(const std::vector<uint32_t>& block_crcs) {
  std::string table;
  for (uint32_t crc : block_crcs) PutFixed(&table, crc);
  return Crc32c(table);
}

}  // namespace picket
