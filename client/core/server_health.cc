#include "client/core/server_health.h"

namespace picket {

void ServerHealth::Disappointed(ServerId server, Mono now) {
  if (avoid_until_.size() >= kMaxServers && !avoid_until_.contains(server)) {
    std::erase_if(avoid_until_, [now](const auto& entry) { return entry.second <= now; });
    if (avoid_until_.size() >= kMaxServers) avoid_until_.erase(avoid_until_.begin());
  }
  avoid_until_[server] = now + kAvoidFor;
}

bool ServerHealth::Avoided(ServerId server, Mono now) const {
  auto it = avoid_until_.find(server);
  return it != avoid_until_.end() && now < it->second;
}

std::vector<ServerId> ServerHealth::AllAvoided(Mono now) const {
  std::vector<ServerId> servers;
  for (const auto& [server, until] : avoid_until_) {
    if (now < until) servers.push_back(server);
  }
  return servers;
}

std::vector<ReplicaPlace> ServerHealth::Order(const std::vector<ReplicaPlace>& replicas, ServerId preferred,
                                              uint64_t spread, Mono now) const {
  std::vector<ReplicaPlace> order;
  order.reserve(replicas.size());
  for (const bool avoided : {false, true}) {
    for (const bool is_preferred : {true, false}) {
      for (size_t i = 0; i < replicas.size(); ++i) {
        const ReplicaPlace& replica = replicas[(i + spread % replicas.size()) % replicas.size()];
        if (Avoided(replica.server, now) == avoided && (replica.server == preferred) == is_preferred) {
          order.push_back(replica);
        }
      }
    }
  }
  return order;
}

}  // namespace picket
