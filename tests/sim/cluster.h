// A cluster in a world: one master "m0", chunkservers "s0"…, clients "c0"…, each on a node of its own
// running the real role, and an operator who starts again what has died.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chunkserver/chunkserver.h"
#include "chunkserver/replica_format.h"
#include "client/core/file_system.h"
#include "common/identity/cluster_secret.h"
#include "master/master.h"
#include "tests/sim/fault_script.h"
#include "tests/sim/node.h"
#include "tests/sim/protocol_checker.h"
#include "tests/sim/workload.h"
#include "tests/sim/world.h"

namespace picket::sim {

class Cluster {
 public:
  struct Shape {
    size_t chunkservers = 4;
    size_t clients = 2;
  };
  static constexpr uint16_t kMasterPort = 7400;
  static constexpr uint16_t kChunkserverPort = 7500;

  Cluster(World& world, Shape shape);

  // Makes the directories, starts master and chunkservers and waits until all are registered.
  void Start();
  // Starts the clients on a workload, which must outlive the cluster.
  void StartClients(Workload* workload);
  // Every client has ended its work.
  bool ClientsDone() const;
  std::string UnfinishedClients() const;

  void Apply(const Fault& fault);
  // Ends every fault: all machines up, connected, disks well. Nothing more is injected.
  void HealAll();
  bool AllRegistered();

  // A client of its own, outside of the workload; its node is never harmed.
  Node& observer() { return *observer_; }
  Endpoint master_endpoint() const { return Endpoint(master_->host(), kMasterPort); }
  Node& master() { return *master_; }
  const std::vector<Node*>& servers() const { return servers_; }
  ServerId server_id(size_t i) const { return ids_[i]; }
  ProtocolChecker& checker() { return checker_; }

  const Harm& harm() const { return harm_; }
  // A replica's bytes as they are on its disk now; nothing when there is none.
  std::optional<std::string> ReplicaBytes(ServerId server, ChunkId chunk) const;

  // Replicas on all disks against each other and their own checksums; suspended tasks against a bound.
  void CheckDisks();
  // For whoever looks at a failure: each replica's slot, into the world's log.
  void NoteReplicas();
  void CheckLeaks();

 private:
  struct Machine {
    Node* node = nullptr;
    Nanos restart_at{};       // when down
    uint64_t faults = 0;      // counts, so that an old fault's end does not end a newer one
    std::optional<Nanos> out_since;
    Nanos unsure_until{};
  };

  static constexpr Nanos kSupervision = 500ms;
  static constexpr Nanos kLongOutage = 40s;

  // Calls `fn` with each replica that has a valid slot.
  void ForEachReplica(const std::function<void(size_t server, const cs::Slot&)>& fn) const;
  Node* Find(const std::string& name) const;
  Machine& MachineOf(const Node& node) { return machines_[node.index()]; }
  void Boot(Node* node);
  void Supervise();
  void WatchOutages();
  bool Lives(ServerId server) const;
  std::string Tail(ServerId server, ChunkId chunk, uint64_t end, size_t size) const;
  size_t IndexOf(ServerId server) const;
  void Damage(Node* node);
  void Until(Nanos lasts, Node* node, Fn end);
  void RotOneBit(Node* node, uint64_t pick);
  // Restarts the process, as an operator does after disk errors.
  void Recycle(Node* node);

  World& world_;
  const Shape shape_;
  Node* master_ = nullptr;
  std::vector<Node*> servers_;
  std::vector<Node*> clients_;
  Node* observer_ = nullptr;
  std::vector<ServerId> ids_;
  std::map<uint32_t, Machine> machines_;
  std::vector<bool> done_;
  Workload* workload_ = nullptr;
  ProtocolChecker checker_;
  Harm harm_;
  bool supervising_ = false;
};

}  // namespace picket::sim
