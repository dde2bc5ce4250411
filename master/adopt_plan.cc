#include "master/adopt_plan.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/mutation.h"

namespace picket {
namespace {

Adoption No(std::string why) {
  Adoption out;
  out.why = "not adopted: " + std::move(why);
  return out;
}

}  // namespace

Adoption PlanAdoption(const record::Chunk* record, const std::vector<Replica>& ahead, uint32_t epoch) {
  PICKET_CHECK(!ahead.empty());
  if (record == nullptr) return No("this history has no record of the chunk; it can be discarded");
  if (record->inode() == 0) return No("the chunk's file is deleted here; it can be discarded");
  if (record->integrity()) return No("the chunk is stopped: its replicas contradict what was acknowledged");
  const Version newest = std::ranges::max_element(ahead, {}, &Replica::version)->version;
  if (newest.epoch() >= epoch) {
    return No("its version is not of an epoch below this master's: adopt its server's history first");
  }
  std::vector<const Replica*> top;
  for (const Replica& replica : ahead) {
    if (replica.version == newest && replica.state != proto::CORRUPT && replica.state != proto::CREATING) {
      top.push_back(&replica);
    }
  }
  if (top.empty()) return No("no replica of the newest version is whole");
  Adoption out;
  out.version = newest;
  out.record = *record;
  out.record.set_current(newest.value);
  out.record.set_minted(std::max(record->minted(), newest.value));
  if (!record->sealed()) {
    out.record.clear_members();
    for (const Replica* replica : top) out.record.add_members()->set_server(replica->server.value);
    out.possible = true;
    return out;
  }
  const Replica& first = *top.front();
  for (const Replica* replica : top) {
    if (replica->state != proto::SEALED) return No("the newest replica is open, and the file is closed here");
    const bool equal = replica->length == first.length && replica->digest == first.digest;
    if (!equal && !PICKET_MUTANT(adopt_agree)) return No("the newest replicas differ; discard all but one");
  }
  if (first.length < record->length()) {
    return No("it is shorter than the " + std::to_string(record->length()) + " bytes that were sealed here");
  }
  out.record.set_length(first.length);
  out.record.set_digest(first.digest);
  out.possible = true;
  return out;
}

}  // namespace picket
