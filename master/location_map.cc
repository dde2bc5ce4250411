#include "master/location_map.h"

#include <algorithm>

namespace picket {

Replica FromReport(ServerId server, uint64_t session, const proto::ReplicaReport& report) {
  Replica r;
  r.server = server;
  r.session = session;
  r.version = Version(report.version());
  r.generation = Generation(report.generation());
  r.state = report.state();
  r.length = report.length();
  r.digest = report.digest();
  r.instance = InstanceId(report.instance());
  return r;
}

ReplicaFacts FactsOf(const Replica& replica, Incarnation incarnation) {
  return ReplicaFacts{replica.server, incarnation,    replica.version,
                      replica.state,  replica.length, replica.digest, replica.leaving != Leaving::kNo};
}

const std::vector<Replica>& LocationMap::Of(ChunkId chunk) const {
  static const std::vector<Replica> none;
  const auto it = replicas_.find(chunk);
  return it == replicas_.end() ? none : it->second;
}

const Replica* LocationMap::Find(ChunkId chunk, ServerId server) const {
  for (const Replica& r : Of(chunk)) {
    if (r.server == server) return &r;
  }
  return nullptr;
}

void LocationMap::Update(ChunkId chunk, const Replica& replica) {
  if (replica.state == proto::TOMBSTONE) return Remove(chunk, replica.server);
  std::vector<Replica>& of = replicas_[chunk];
  const auto it = std::ranges::lower_bound(of, replica.server, {}, &Replica::server);
  if (it == of.end() || it->server != replica.server) {
    of.insert(it, replica);
    chunks_of_[replica.server].insert(chunk);
    return;
  }
  if (it->session == replica.session && it->instance == replica.instance) {
    const bool unseals = it->state == proto::SEALED && (replica.state == proto::OPEN || replica.state == proto::CREATING);
    if (replica.version < it->version || (replica.version == it->version && unseals)) return;
  }
  const bool ordered = it->leaving == Leaving::kOrdered && it->instance == replica.instance;
  *it = replica;
  it->leaving = ordered ? Leaving::kOrdered : Leaving::kNo;
}

void LocationMap::Remove(ChunkId chunk, ServerId server) {
  const auto it = replicas_.find(chunk);
  if (it == replicas_.end()) return;
  if (std::erase_if(it->second, [&](const Replica& r) { return r.server == server; }) == 0) return;
  if (it->second.empty()) replicas_.erase(it);
  chunks_of_[server].erase(chunk);
}

void LocationMap::Remove(ChunkId chunk, ServerId server, InstanceId instance) {
  const Replica* replica = Find(chunk, server);
  if (replica != nullptr && replica->instance == instance) Remove(chunk, server);
}

void LocationMap::SetLeaving(ChunkId chunk, ServerId server, InstanceId instance, Leaving leaving) {
  const auto of = replicas_.find(chunk);
  if (of == replicas_.end()) return;
  for (Replica& r : of->second) {
    if (r.server == server && r.instance == instance) r.leaving = leaving;
  }
}

std::vector<ChunkId> LocationMap::Next(ChunkId after, size_t limit) const {
  std::vector<ChunkId> out;
  for (auto it = replicas_.upper_bound(after); it != replicas_.end() && out.size() < limit; ++it) out.push_back(it->first);
  return out;
}

void LocationMap::EndReport(ServerId server, uint64_t session) {
  std::vector<ChunkId> gone;
  for (ChunkId chunk : chunks_of_[server]) {
    if (Find(chunk, server)->session != session) gone.push_back(chunk);
  }
  for (ChunkId chunk : gone) Remove(chunk, server);
}

}  // namespace picket
