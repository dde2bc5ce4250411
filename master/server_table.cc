#include "master/server_table.h"

#include <algorithm>

namespace picket {

std::string_view LivenessName(Liveness liveness) {
  switch (liveness) {
    case Liveness::kLive: return "live";
    case Liveness::kSuspect: return "suspect";
    case Liveness::kDead: return "dead";
  }
  return "?";
}

Server& ServerTable::Register(Server server) {
  // Random start: a session of an earlier process must not pass for one of this.
  if (last_session_ == 0) last_session_ = env_.Random() >> 16;
  server.session = ++last_session_;
  server.heard = env_.Now();
  Server& row = servers_[server.id];
  row = std::move(server);
  changed_.NotifyAll();
  return row;
}

Server* ServerTable::Find(ServerId id) {
  const auto it = servers_.find(id);
  return it == servers_.end() ? nullptr : &it->second;
}

const Server* ServerTable::Find(ServerId id) const { return const_cast<ServerTable*>(this)->Find(id); }

Server* ServerTable::FindSession(ServerId id, uint64_t session) {
  Server* server = Find(id);
  return server != nullptr && server->session == session ? server : nullptr;
}

Liveness ServerTable::LivenessOf(const Server& server) const {
  const Nanos silent = env_.Now() - server.heard;
  if (silent >= options_.dead_after) return Liveness::kDead;
  return silent >= options_.suspect_after ? Liveness::kSuspect : Liveness::kLive;
}

Liveness ServerTable::LivenessOf(ServerId id) const {
  const Server* server = Find(id);
  return server == nullptr ? Liveness::kDead : LivenessOf(*server);
}

bool ServerTable::IsUp(ServerId id, Incarnation incarnation) const {
  const Server* server = Find(id);
  return server != nullptr && server->incarnation == incarnation && LivenessOf(*server) != Liveness::kDead;
}

size_t ServerTable::live_count() const {
  return static_cast<size_t>(
      std::ranges::count_if(servers_, [&](const auto& s) { return LivenessOf(s.second) == Liveness::kLive; }));
}

std::vector<PlacementCandidate> ServerTable::Candidates() const {
  std::vector<PlacementCandidate> out;
  out.reserve(servers_.size());
  for (const auto& [id, s] : servers_) {
    out.push_back(PlacementCandidate{id, s.rack, LivenessOf(s) == Liveness::kLive, s.space.total_bytes(),
                                     s.space.free_bytes(), s.recent_creations});
  }
  return out;
}

void ServerTable::Heard(Server* server, const proto::Space& space) {
  server->heard = env_.Now();
  server->space = space;
  server->recent_creations = server->recent_creations * 3 / 4;
}

void ServerTable::NoteCreation(ServerId id) {
  if (Server* server = Find(id)) ++server->recent_creations;
}

}  // namespace picket
