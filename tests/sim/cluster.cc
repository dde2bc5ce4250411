#include "tests/sim/cluster.h"

#include <fmt/format.h>

#include "chunkserver/replica_file.h"
#include "chunkserver/replica_store.h"
#include "common/base/crc32c.h"
#include "tests/sim/net.h"

namespace picket::sim {
namespace {

const std::string kDir = "/picket";

// A role's process: started by a task; a failed start ends it, as it does in production.
template <class Role>
struct RoleProcess : Process {
  template <class Options>
  RoleProcess(Env& env, Options options) : role(env, std::move(options)) {
    env.Spawn(Run(&static_cast<Node&>(env), &role));
  }
  static Task<> Run(Node* node, Role* role) {
    auto started = co_await role->Start();
    if (started) co_return;
    node->Log(LogLevel::kError, "does not start: " + started.error().ToString());
    node->Crash(Node::Death::kProcess);
  }
  Role role;
};

struct ClientProcess : Process {
  ClientProcess(Env& env, FileSystemOptions options) : fs(env, std::move(options)) {}
  FileSystem fs;
};

FileSystemOptions ClientOptions(Endpoint master) {
  FileSystemOptions options;
  options.master = std::move(master);
  options.user = "sim";
  options.group = "sim";
  return options;
}

std::string ReplicaPath(ChunkId chunk, bool data) {
  return cs::ReplicaStore::ReplicasDir(kDir) + "/" +
         (data ? cs::ReplicaFile::DataName(chunk) : cs::ReplicaFile::MetaName(chunk));
}

}  // namespace

Cluster::Cluster(World& world, Shape shape)
    : world_(world),
      shape_(shape),
      done_(shape.clients, false),
      checker_(world, ProtocolChecker::Cluster{
                          [this](ServerId s, ChunkId c, uint64_t end, size_t n) { return Tail(s, c, end, n); },
                          [this](ServerId s) { return Lives(s); }}) {
  master_ = &world_.AddNode("m0");
  for (size_t i = 0; i < shape.chunkservers; ++i) servers_.push_back(&world_.AddNode(fmt::format("s{}", i)));
  for (size_t i = 0; i < shape.clients; ++i) clients_.push_back(&world_.AddNode(fmt::format("c{}", i)));
  observer_ = &world_.AddNode("observer");
  for (size_t i = 0; i < world_.node_count(); ++i) machines_[static_cast<uint32_t>(i)].node = &world_.node(i);
  world_.AddObserver([this](Node&, const ProtocolEvent& event) { checker_.OnEvent(event); });
  world_.AddDeathObserver([this](Node& node, bool power) {
    for (size_t i = 0; i < servers_.size(); ++i) {
      if (!power || servers_[i] != &node || i >= ids_.size()) continue;
      harm_.powerless.insert(ids_[i]);
      checker_.OnPowerLoss(ids_[i]);
    }
  });
}

void Cluster::Start() {
  auto secret = RunTask(world_, *master_, InitMaster(master_, kDir));
  if (!secret || !*secret) return world_.Fail("start", "the master's directory cannot be made");
  for (Node* server : servers_) {
    auto id = RunTask(world_, *server, InitChunkserver(server, kDir, **secret));
    if (!id || !*id) return world_.Fail("start", "a chunkserver's directory cannot be made");
    ids_.push_back(**id);
    server->Crash(Node::Death::kProcess);
    Boot(server);
  }
  master_->Crash(Node::Death::kProcess);
  Boot(master_);
  observer_->Start();
  supervising_ = true;
  Supervise();
  if (!world_.RunUntil([this] { return AllRegistered(); }, 60s)) {
    world_.Fail("start", "not every chunkserver registers with the master");
  }
}

void Cluster::Boot(Node* node) {
  if (node == master_) {
    MasterOptions options;
    options.dir = kDir;
    options.listen = Endpoint(node->host(), kMasterPort);
    options.cache_bytes = 1 << 20;
    node->Start([options](Env& env) { return std::make_unique<RoleProcess<Master>>(env, options); });
    return;
  }
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i] != node) continue;
    ChunkserverOptions options;
    options.dir = kDir;
    options.listen = Endpoint(node->host(), kChunkserverPort);
    options.master = master_endpoint();
    options.rack = fmt::format("rack-{}", i % 3);
    node->Start([options](Env& env) { return std::make_unique<RoleProcess<Chunkserver>>(env, options); });
  }
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i] != node || workload_ == nullptr || done_[i]) continue;
    struct Work {
      static Task<> Run(Env* env, FileSystem* fs, Cluster* cluster, size_t client) {
        co_await cluster->workload_->Work(env, fs, client);
        cluster->done_[client] = true;
      }
    };
    node->Start([this, i](Env& env) {
      auto process = std::make_unique<ClientProcess>(env, ClientOptions(master_endpoint()));
      env.Spawn(Work::Run(&env, &process->fs, this, i));
      return process;
    });
  }
}

void Cluster::StartClients(Workload* workload) {
  workload_ = workload;
  for (Node* client : clients_) Boot(client);
}

bool Cluster::ClientsDone() const {
  return std::ranges::all_of(done_, [](bool done) { return done; });
}

std::string Cluster::UnfinishedClients() const {
  std::string names;
  for (size_t i = 0; i < done_.size(); ++i) {
    if (!done_[i]) names += " " + clients_[i]->name();
  }
  return names;
}

bool Cluster::AllRegistered() {
  return master_->alive() && std::ranges::all_of(servers_, [](Node* node) {
           auto* process = dynamic_cast<RoleProcess<Chunkserver>*>(node->process());
           return process != nullptr && process->role.registered();
         });
}

// ---- the operator --------------------------------------------------------------------------------

void Cluster::Supervise() {
  WatchOutages();
  for (auto& [index, machine] : machines_) {
    Node* node = machine.node;
    if (node->alive() || node == observer_) continue;
    if (machine.restart_at == Nanos(0)) machine.restart_at = world_.now() + 2s;
    if (world_.now() < machine.restart_at) continue;
    machine.restart_at = Nanos(0);
    Boot(node);
  }
  world_.After(kSupervision, [this] { Supervise(); });
}

void Cluster::WatchOutages() {
  const uint32_t m = master_->index();
  for (auto& [index, machine] : machines_) {
    const Node& node = *machine.node;
    const bool out = !node.alive() || node.paused() || world_.IsCut(index, m) || world_.IsCut(m, index);
    if (out && !machine.out_since) machine.out_since = world_.now();
    if (out && world_.now() - *machine.out_since >= kLongOutage) machine.unsure_until = world_.now() + 90s;
    if (!out) machine.out_since.reset();
  }
}

bool Cluster::Lives(ServerId server) const {
  const Machine& m = machines_.at(master_->index());
  const Machine& s = machines_.at(servers_[IndexOf(server)]->index());
  return world_.now() >= m.unsure_until && world_.now() >= s.unsure_until;
}

size_t Cluster::IndexOf(ServerId server) const {
  const auto it = std::ranges::find(ids_, server);
  PICKET_CHECK(it != ids_.end());
  return static_cast<size_t>(it - ids_.begin());
}

Node* Cluster::Find(const std::string& name) const {
  for (auto& [index, machine] : machines_) {
    if (machine.node->name() == name) return machine.node;
  }
  return nullptr;
}

// ---- faults --------------------------------------------------------------------------------------

void Cluster::Until(Nanos lasts, Node* node, Fn end) {
  const uint64_t mine = ++MachineOf(*node).faults;
  auto fn = std::make_shared<Fn>(std::move(end));
  world_.After(lasts, [this, node, mine, fn] {
    if (supervising_ && MachineOf(*node).faults >= mine) (*fn)();
  });
}

void Cluster::Damage(Node* node) {
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i] != node) continue;
    harm_.damaged.insert(ids_[i]);
    checker_.OnDamage(ids_[i]);
  }
}

void Cluster::Recycle(Node* node) {
  if (!node->alive()) return;
  node->Crash(Node::Death::kProcess);
  MachineOf(*node).restart_at = world_.now() + 500ms;
}

void Cluster::RotOneBit(Node* node, uint64_t pick) {
  std::vector<std::string> paths;
  for (const std::string& path : node->disk().Files()) {
    if (path.starts_with(cs::ReplicaStore::ReplicasDir(kDir)) && path.ends_with(".data") &&
        node->disk().Find(path)->size() > 0) {
      paths.push_back(path);
    }
  }
  if (paths.empty()) return;
  const std::string& path = paths[pick % paths.size()];
  node->disk().FlipBit(path, pick / 7 % node->disk().Find(path)->size(), static_cast<uint8_t>(pick));
}

void Cluster::Apply(const Fault& f) {
  world_.Note(nullptr, LogLevel::kInfo, "FAULT " + ToText(f));
  world_.Mix(ToText(f));
  Node* node = f.node.empty() ? master_ : Find(f.node);
  Node* peer = f.peer.empty() ? nullptr : Find(f.peer);
  if (node == nullptr || (!f.peer.empty() && peer == nullptr)) return;
  SimDisk::Faults& disk = node->disk().faults;
  switch (f.kind) {
    case FaultKind::kKill:
    case FaultKind::kPower:
      if (!node->alive()) return;
      node->Crash(f.kind == FaultKind::kPower ? Node::Death::kPower : Node::Death::kProcess);
      MachineOf(*node).restart_at = world_.now() + f.lasts;
      return;
    case FaultKind::kPowerAt: disk.lose_power_at = static_cast<uint64_t>(f.argument); return;
    case FaultKind::kPause:
      node->Pause();
      return Until(f.lasts, node, [node] { node->Resume(); });
    case FaultKind::kCut:
    case FaultKind::kSplit: {
      world_.Cut(*node, *peer);
      if (f.kind == FaultKind::kSplit) world_.Cut(*peer, *node);
      return Until(f.lasts, node, [this, node, peer] {
        world_.Heal(*node, *peer);
        world_.Heal(*peer, *node);
      });
    }
    case FaultKind::kIsolate:
      for (auto& [index, machine] : machines_) {
        world_.Cut(*node, *machine.node);
        world_.Cut(*machine.node, *node);
      }
      return Until(f.lasts, node, [this, node] {
        for (auto& [index, machine] : machines_) {
          world_.Heal(*node, *machine.node);
          world_.Heal(*machine.node, *node);
        }
      });
    case FaultKind::kReset:
      for (int64_t i = 0; node->alive() && i < f.argument; ++i) node->sim_net().ResetOne(static_cast<uint64_t>(i * 7));
      return;
    case FaultKind::kSlowDisk:
      disk.extra_latency = std::chrono::milliseconds(f.argument);
      return Until(f.lasts, node, [&disk] { disk.extra_latency = Nanos(0); });
    case FaultKind::kReadErrors:
    case FaultKind::kWriteErrors:
    case FaultKind::kSyncErrors: {
      Damage(node);
      disk.fail_reads = f.kind == FaultKind::kReadErrors;
      disk.fail_writes = f.kind == FaultKind::kWriteErrors;
      disk.fail_syncs = f.kind == FaultKind::kSyncErrors;
      return Until(f.lasts, node, [this, node, &disk] {
        disk.fail_reads = disk.fail_writes = disk.fail_syncs = false;
        Recycle(node);
      });
    }
    case FaultKind::kDiskFull:
      disk.full = true;
      return Until(f.lasts, node, [this, node, &disk] {
        disk.full = false;
        if (node == master_) Recycle(node);
      });
    case FaultKind::kBitRot:
      Damage(node);
      return RotOneBit(node, static_cast<uint64_t>(f.argument));
    case FaultKind::kClockDrift: return node->SetDrift(f.argument);
    case FaultKind::kWallJump: return node->JumpWall(std::chrono::seconds(f.argument));
    case FaultKind::kLoss:
      world_.mutable_config().loss = static_cast<double>(f.argument) / 1000;
      return Until(f.lasts, node, [this] { world_.mutable_config().loss = 0; });
  }
}

void Cluster::HealAll() {
  world_.Note(nullptr, LogLevel::kInfo, "all faults end");
  world_.HealAll();
  world_.mutable_config().loss = 0;
  for (auto& [index, machine] : machines_) {
    ++machine.faults;
    machine.node->Resume();
    auto& disk = machine.node->disk().faults;
    const bool was_broken = disk.fail_reads || disk.fail_writes || disk.fail_syncs || disk.full;
    disk = {};
    if (was_broken && machine.node != observer_) Recycle(machine.node);
    machine.restart_at = std::min(machine.restart_at, world_.now() + 1s);
  }
}

// ---- what is on the disks ------------------------------------------------------------------------

std::optional<std::string> Cluster::ReplicaBytes(ServerId server, ChunkId chunk) const {
  return servers_[IndexOf(server)]->disk().Contents(ReplicaPath(chunk, true));
}

std::string Cluster::Tail(ServerId server, ChunkId chunk, uint64_t end, size_t size) const {
  const InodePtr inode = servers_[IndexOf(server)]->disk().Find(ReplicaPath(chunk, true));
  if (!inode) return "(no replica)";
  std::string bytes(std::min<uint64_t>(end, size), '\0');
  bytes.resize(inode->Read(end - bytes.size(), std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

void Cluster::ForEachReplica(const std::function<void(size_t, const cs::Slot&)>& fn) const {
  for (size_t i = 0; i < servers_.size(); ++i) {
    const SimDisk& disk = servers_[i]->disk();
    for (const std::string& path : disk.Files()) {
      if (!path.starts_with(cs::ReplicaStore::ReplicasDir(kDir)) || !path.ends_with(".meta")) continue;
      auto slot = cs::NewestSlot(disk.Contents(path)->substr(0, 2 * cs::kSlotSize));
      if (slot && *slot) fn(i, **slot);
    }
  }
}

void Cluster::NoteReplicas() {
  ForEachReplica([this](size_t i, const cs::Slot& s) {
    const InodePtr data = servers_[i]->disk().Find(ReplicaPath(s.chunk, true));
    world_.Note(servers_[i], LogLevel::kInfo,
                fmt::format("on disk: chunk {} {} version {} generation {} length {} durable {} digest {:08x} raised in "
                            "boot {}, data {} bytes",
                            ToString(s.chunk), cs::StateName(s.state), s.version.ToString(), s.generation.ToString(),
                            s.length, s.durable_length, s.digest, s.raised_in.value, data ? data->size() : 0));
  });
}

void Cluster::CheckDisks() {
  struct Seen {
    std::string bytes;
    ServerId server;
  };
  std::map<std::tuple<ChunkId, Version, uint32_t>, Seen> seen;
  ForEachReplica([&](size_t i, const cs::Slot& s) {
    // What was sealed without a sync may lawfully lack bytes after a power loss; its server knows.
    if (harm_.damaged.contains(ids_[i]) || s.state != cs::ReplicaState::kSealed || s.durable_length < s.length) return;
    std::string bytes = ReplicaBytes(ids_[i], s.chunk).value_or("");
    bytes.resize(std::min<size_t>(bytes.size(), s.length));
    std::vector<uint32_t> table;
    for (size_t at = 0; at < bytes.size(); at += kBlockSize) {
      table.push_back(Crc32c(std::string_view(bytes).substr(at, kBlockSize)));
    }
    const uint32_t digest = Crc32c(table.data(), table.size() * sizeof(uint32_t));
    const std::string what = fmt::format("sealed replica of chunk {} on {} (version {}, {} bytes)", ToString(s.chunk),
                                         servers_[i]->name(), s.version.ToString(), s.length);
    if (bytes.size() != s.length || digest != s.digest) {
      world_.Fail("replica-bytes", fmt::format("{}: {} bytes with digest {:08x}, the slot says {:08x}", what,
                                               bytes.size(), digest, s.digest));
    }
    auto [it, fresh] = seen.try_emplace({s.chunk, s.version, s.digest}, Seen{bytes, ids_[i]});
    if (!fresh && it->second.bytes != bytes) {
      world_.Fail("replica-bytes", what + " differs from the one on server " + ToString(it->second.server));
    }
  });
}

void Cluster::CheckLeaks() {
  // What waits in a quiet cluster: loops of each role, and a reader for each connection.
  const size_t bound = 64 + 16 * (servers_.size() + clients_.size());
  for (Node* node : servers_) {
    if (node->WaiterCount() > bound) {
      world_.Fail("leak", fmt::format("{} tasks wait on {}", node->WaiterCount(), node->name()));
    }
  }
  if (master_->WaiterCount() > bound) world_.Fail("leak", fmt::format("{} tasks wait on m0", master_->WaiterCount()));
}

}  // namespace picket::sim
