#include "tests/unit/master/cluster_half.h"

namespace picket::test {

namespace {
constexpr std::string_view kMasterHost = "node-0";
}  // namespace

std::vector<uint64_t> ServersOf(const proto::WriteGrant& grant) {
  std::vector<uint64_t> out;
  for (const proto::Hop& hop : grant.chain()) out.push_back(hop.server());
  return out;
}

ClusterTest::ClusterTest(size_t servers, MasterOptions o)
    : options(std::move(o)), master_node(world.AddNode("master")), client(world.AddNode("client")) {
  world.AddObserver([this](sim::Node& node, const ProtocolEvent& event) {
    if (&node == &master_node) events.push_back(event);
  });
  options.dir = "m";
  options.listen = Endpoint(std::string(kMasterHost), kMasterPort);
  options.cache_bytes = 1 << 20;
  fleet.master = options.listen;
  client.Start();
  auto secret = sim::RunTask(world, master_node, InitMaster(&master_node, options.dir));
  PICKET_CHECK(secret && *secret);
  fleet.secret = **secret;
  master_node.Crash(sim::Node::Death::kProcess);
  StartMaster();
  for (size_t i = 0; i < servers; ++i) {
    sim::Node& node = world.AddNode("cs" + std::to_string(i));
    FakeDisk& d = *disks.emplace_back(std::make_unique<FakeDisk>());
    d.id = ServerId(100 + i);
    d.host = node.host();
    d.rack = "r" + std::to_string(i);
    fleet.disks[d.id] = &d;
    StartServer(i);
  }
  AwaitLive(servers);
}

ClusterTest::~ClusterTest() {
  channel.reset();
  for (size_t i = 0; i < world.node_count(); ++i) {
    if (world.node(i).alive()) world.node(i).Crash(sim::Node::Death::kProcess);
  }
}

void ClusterTest::StartMaster() {
  master_node.Start([this](Env& env) { return std::make_unique<sim::Running<MasterProcess>>(env, options); });
  ASSERT_TRUE(world.RunUntil([&] { return master_node.As<MasterProcess>()->started != nullptr; }, 60s));
  const Status& started = *master_node.As<MasterProcess>()->started;
  ASSERT_TRUE(started) << started.error().ToString();
  channel = std::make_unique<Channel>(client, options.listen);
}

void ClusterTest::RestartMaster(sim::Node::Death death) {
  master_node.Crash(death);
  StartMaster();
}

void ClusterTest::StartServer(size_t i) {
  FakeDisk* d = disks[i].get();
  server_node(i).Start([this, d](Env& env) { return std::make_unique<sim::Running<FakeChunkserver>>(env, &fleet, d); });
}

size_t ClusterTest::index_of(uint64_t server) const {
  for (size_t i = 0; i < disks.size(); ++i) {
    if (disks[i]->id.value == server) return i;
  }
  PICKET_CHECK(false);
  return 0;
}

FakeDisk& ClusterTest::disk_of(uint64_t server) { return *disks[index_of(server)]; }

bool ClusterTest::AwaitLive(size_t count, Nanos limit) {
  const Nanos end = world.now() + limit;
  while (world.now() < end) {
    size_t live = 0;
    for (const auto& server : Report().servers()) live += server.state() == "live" ? 1 : 0;
    if (live >= count) return true;
    world.RunFor(200ms);
  }
  return false;
}

void ClusterTest::Identify(proto::MutationId* id) {
  id->set_client(kWriter);
  id->set_sequence(++sequence);
  id->set_first_unacked(sequence);
}

OpenFile ClusterTest::Create(const std::string& path, uint32_t replication) {
  proto::CreateRequest r;
  Identify(r.mutable_mutation());
  r.set_path(path);
  r.set_mode(0644);
  r.set_owner("ann");
  r.set_group("staff");
  r.set_replication(replication);
  r.set_chunk_size(1 << 20);
  r.set_holder(kWriter);
  auto created = Call<proto::CreateResponse>(proto::CREATE, r);
  EXPECT_TRUE(created) << created.error().ToString();
  if (!created) return OpenFile();
  return OpenFile{created->status().inode(), created->generation()};
}

proto::AddChunkRequest ClusterTest::AddRequest(const OpenFile& file, uint64_t index) {
  proto::AddChunkRequest r;
  Identify(r.mutable_mutation());
  r.set_inode(file.inode);
  r.set_generation(file.generation);
  r.set_holder(kWriter);
  r.set_index(index);
  return r;
}

Result<proto::WriteGrant> ClusterTest::AddChunk(const OpenFile& file, uint64_t index) {
  return Call<proto::WriteGrant>(proto::ADD_CHUNK, AddRequest(file, index));
}

proto::GrantRequest ClusterTest::GrantRequestFor(const OpenFile& file, const proto::WriteGrant& last,
                                                 std::vector<uint64_t> failed, uint64_t acked) {
  proto::GrantRequest r;
  Identify(r.mutable_mutation());
  r.set_inode(file.inode);
  r.set_chunk(last.token().chunk());
  r.set_version(last.token().version());
  r.set_generation(file.generation);
  r.set_holder(kWriter);
  r.set_acked_length(acked);
  for (uint64_t server : failed) r.add_failed_servers(server);
  r.set_reason("test");
  return r;
}

Result<proto::WriteGrant> ClusterTest::Grant(const OpenFile& file, const proto::WriteGrant& last,
                                             std::vector<uint64_t> failed, uint64_t acked) {
  return Call<proto::WriteGrant>(proto::GRANT, GrantRequestFor(file, last, std::move(failed), acked));
}

void ClusterTest::Write(const proto::WriteGrant& grant, const std::string& bytes) {
  for (uint64_t server : ServersOf(grant)) disk_of(server).replicas.at(grant.token().chunk()).bytes += bytes;
}

proto::CommitSealRequest ClusterTest::Seal(const OpenFile& file, const proto::WriteGrant& grant) {
  proto::CommitSealRequest r;
  Identify(r.mutable_mutation());
  r.set_inode(file.inode);
  r.set_chunk(grant.token().chunk());
  r.set_version(grant.token().version());
  r.set_generation(file.generation);
  r.set_holder(kWriter);
  r.set_durable(true);
  for (uint64_t server : ServersOf(grant)) {
    FakeReplica& replica = disk_of(server).replicas.at(grant.token().chunk());
    replica.state = proto::SEALED;
    r.set_length(replica.bytes.size());
    r.set_digest(DigestOf(replica.bytes));
    r.add_sealed_servers(server);
  }
  r.set_drop_empty(r.length() == 0);
  return r;
}

Result<proto::CommitSealResponse> ClusterTest::CommitSeal(const proto::CommitSealRequest& request) {
  return Call<proto::CommitSealResponse>(proto::COMMIT_SEAL, request);
}

Result<proto::GetFileResponse> ClusterTest::GetFile(const std::string& path, bool all_replicas) {
  proto::GetFileRequest r;
  r.set_path(path);
  r.set_all_replicas(all_replicas);
  return Call<proto::GetFileResponse>(proto::GET_FILE, r);
}

proto::ChunkLocation ClusterTest::Chunk(uint64_t chunk) {
  proto::DescribeChunkRequest r;
  r.set_chunk(chunk);
  auto described = Call<proto::DescribeChunkResponse>(proto::DESCRIBE_CHUNK, r);
  EXPECT_TRUE(described) << described.error().ToString();
  return described ? described->chunk() : proto::ChunkLocation();
}

proto::ClusterReportResponse ClusterTest::Report() {
  auto report = Call<proto::ClusterReportResponse>(proto::CLUSTER_REPORT, proto::ClusterReportRequest());
  EXPECT_TRUE(report) << report.error().ToString();
  return report ? *report : proto::ClusterReportResponse();
}

std::vector<uint64_t> ClusterTest::Committed(uint64_t chunk) const {
  std::vector<uint64_t> out;
  for (const ProtocolEvent& e : events) {
    if (e.kind == ProtocolEvent::Kind::kVersionCommitted && e.chunk.value == chunk) out.push_back(e.version.value);
  }
  return out;
}

}  // namespace picket::test
