#include "chunkserver/lease_holder.h"

#include <algorithm>

#include "common/base/mutation.h"

namespace picket::cs {

Status LeaseHolder::Grant(ChunkId chunk, PrimaryLease lease, Mono counted_from, Nanos period) {
  const Mono now = env_.Now();
  lease.ends = End(PICKET_MUTANT(lease_from_answer) ? now : counted_from, period);
  if (lease.ends <= now) {
    return Fail(Error(Code::kNotPrimary, "chunk " + ToString(chunk) + ": the lease for version " +
                                             lease.version.ToString() + " was over before it arrived")
                    .WithNextStep("mint a new version"));
  }
  auto& held = leases_[chunk];
  // A repeated grant never shortens what a heartbeat has extended.
  if (held.version == lease.version) lease.ends = std::max(lease.ends, held.ends);
  lease.mutated = held.version == lease.version && held.mutated;
  held = std::move(lease);
  return {};
}

std::optional<PrimaryLease> LeaseHolder::Held(ChunkId chunk, Version version) const {
  auto it = leases_.find(chunk);
  if (it == leases_.end() || it->second.version != version) return std::nullopt;
  if (it->second.ends <= env_.Now() && !PICKET_MUTANT(lease_end)) return std::nullopt;
  return it->second;
}

void LeaseHolder::MarkMutated(ChunkId chunk, Version version) {
  auto it = leases_.find(chunk);
  if (it != leases_.end() && it->second.version == version) it->second.mutated = true;
}

void LeaseHolder::Revoke(ChunkId chunk, Version version) {
  auto it = leases_.find(chunk);
  if (it != leases_.end() && it->second.version <= version) leases_.erase(it);
}

Nanos LeaseHolder::Left(ChunkId chunk) const {
  auto it = leases_.find(chunk);
  return it == leases_.end() ? 0ns : std::max<Nanos>(it->second.ends - env_.Now(), 0ns);
}

std::vector<proto::HeartbeatRequest::Extension> LeaseHolder::TakeExtensions() {
  std::vector<proto::HeartbeatRequest::Extension> out;
  const Mono now = env_.Now();
  for (auto it = leases_.begin(); it != leases_.end();) {
    auto& [chunk, lease] = *it;
    if (lease.ends <= now) {
      it = leases_.erase(it);
      continue;
    }
    if (lease.mutated) {
      lease.mutated = false;
      auto& e = out.emplace_back();
      e.set_chunk(chunk.value);
      e.set_version(lease.version.value);
    }
    ++it;
  }
  return out;
}

void LeaseHolder::PutBack(const std::vector<proto::HeartbeatRequest::Extension>& extensions) {
  for (const auto& e : extensions) MarkMutated(ChunkId(e.chunk()), Version(e.version()));
}

void LeaseHolder::Extend(ChunkId chunk, Version version, Mono sent, Nanos period) {
  auto it = leases_.find(chunk);
  if (it == leases_.end() || it->second.version != version) return;
  // A lease that ran out is not revived: another primary may have been chosen.
  if (it->second.ends <= env_.Now()) return;
  it->second.ends = std::max(it->second.ends, End(sent, period));
}

}  // namespace picket::cs
