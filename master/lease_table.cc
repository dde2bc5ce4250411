#include "master/lease_table.h"

namespace picket {

void LeaseTable::Grant(ChunkId chunk, Version version, ServerId primary, Incarnation incarnation, Mono answered,
                       uint64_t length) {
  leases_[chunk] = Lease{version, primary, incarnation, answered + period_, length};
}

bool LeaseTable::Extend(ChunkId chunk, Version version, ServerId primary, Incarnation incarnation) {
  auto [it, unknown] = leases_.try_emplace(chunk, Lease{version, primary, incarnation, Mono{}, 0});
  Lease& lease = it->second;
  if (lease.version != version || lease.primary != primary || lease.incarnation != incarnation) return false;
  lease.end = env_.Now() + period_;
  return true;
}

void LeaseTable::Void(ChunkId chunk) {
  if (leases_.erase(chunk) > 0) changed_.NotifyAll();
}

void LeaseTable::ServerRestarted(ServerId server, Incarnation now) {
  const size_t ended = std::erase_if(leases_, [&](const auto& entry) {
    return entry.second.primary == server && entry.second.incarnation != now;
  });
  if (ended > 0) changed_.NotifyAll();
}

std::optional<LeaseTable::Lease> LeaseTable::Find(ChunkId chunk) const {
  const auto it = leases_.find(chunk);
  if (it == leases_.end() || it->second.end <= env_.Now()) return std::nullopt;
  return it->second;
}

std::optional<Mono> LeaseTable::UnknownUntil(ChunkId chunk, Version current, uint32_t epoch) const {
  if (current.epoch() == epoch || leases_.contains(chunk)) return std::nullopt;
  const Mono until = activated_ + period_;
  return until > env_.Now() ? std::optional(until) : std::nullopt;
}

void LeaseTable::Sweep() {
  const Mono now = env_.Now();
  std::erase_if(leases_, [&](const auto& entry) { return entry.second.end <= now; });
}

}  // namespace picket
