#include "master/chunk_view.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace picket {

Worth ChunkView::Judge(const record::Chunk* record, const Replica& replica) const {
  const Server* server = servers_.Find(replica.server);
  const Incarnation incarnation = server == nullptr ? Incarnation() : server->incarnation;
  return JudgeReplica(record, store_.activations(), FactsOf(replica, incarnation));
}

std::vector<proto::ReplicaLocation> ChunkView::Replicas(const ChunkRow& chunk) const {
  // What servers say; and members of which this process has heard nothing yet, as they were granted.
  std::vector<Replica> replicas = locations_.Of(chunk.id);
  for (const record::Member& member : chunk.record.members()) {
    const ServerId id(member.server());
    if (std::ranges::find(replicas, id, &Replica::server) != replicas.end()) continue;
    Replica granted;
    granted.server = id;
    granted.version = Version(chunk.record.current());
    granted.generation = Generation(chunk.record.generation());
    granted.state = proto::OPEN;
    replicas.push_back(granted);
  }
  std::vector<proto::ReplicaLocation> out;
  for (const Replica& replica : replicas) {
    const Server* server = servers_.Find(replica.server);
    proto::ReplicaLocation& location = out.emplace_back();
    location.mutable_hop()->set_server(replica.server.value);
    if (server != nullptr) {
      location.mutable_hop()->set_host(server->endpoint.host);
      location.mutable_hop()->set_port(server->endpoint.port);
      location.mutable_hop()->set_incarnation(server->incarnation.value);
      location.set_rack(server->rack);
    }
    location.set_version(replica.version.value);
    location.set_generation(replica.generation.value);
    location.set_state(replica.state);
    location.set_length(replica.length);
    const Worth worth = Judge(&chunk.record, replica);
    const bool dead = servers_.LivenessOf(replica.server) == Liveness::kDead;
    location.set_counted(IsGood(worth) && !dead);
    location.set_readable(IsReadable(worth) && !dead);
    location.set_worth(std::string(WorthName(worth)));
  }
  return out;
}

proto::ChunkLocation ChunkView::Describe(const ChunkRow& chunk, bool all_replicas) const {
  const record::Chunk& record = chunk.record;
  proto::ChunkLocation out;
  out.set_chunk(chunk.id.value);
  out.set_index(record.index());
  out.set_inode(record.inode());
  out.set_version(record.current());
  out.set_minted(record.minted());
  out.set_generation(record.generation());
  out.set_sealed(record.sealed());
  out.set_length(record.length());
  out.set_digest(record.digest());
  if (auto lease = leases_.Find(chunk.id); lease && !record.sealed() && lease->version.value == record.current()) {
    out.set_primary(lease->primary.value);
    out.set_lease_left_ms(static_cast<uint32_t>((lease->end - env_.Now()) / 1ms));
  }
  std::vector<proto::ReplicaLocation> replicas = Replicas(chunk);
  if (!all_replicas) std::erase_if(replicas, [](const auto& r) { return !r.readable(); });
  std::ranges::sort(replicas, {}, [&](const proto::ReplicaLocation& r) {
    const ServerId id(r.hop().server());
    return std::tuple(!r.readable(), servers_.LivenessOf(id), r.hop().server() != out.primary(), id);
  });
  for (auto& replica : replicas) *out.add_replicas() = std::move(replica);
  return out;
}

bool ChunkView::CanBeRead(const ChunkRow& chunk) const {
  return std::ranges::any_of(Replicas(chunk), [](const auto& r) { return r.readable(); });
}

size_t ChunkView::CountGood(const ChunkRow& chunk) const {
  const auto replicas = Replicas(chunk);
  return static_cast<size_t>(std::ranges::count_if(replicas, [](const auto& r) { return r.counted(); }));
}

}  // namespace picket
