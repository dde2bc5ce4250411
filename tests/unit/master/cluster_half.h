// A whole master with fake chunkservers and one client, and what tests of the cluster half share: files
// with an open chunk, grants, seals, as a writer would ask for them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/client.h"
#include "master/master.h"
#include "proto/client_master.pb.h"
#include "tests/sim/node.h"
#include "tests/sim/world.h"
#include "tests/unit/master/fake_chunkserver.h"

namespace picket::test {

inline constexpr uint64_t kWriter = 4711;

// Runs a Master for as long as its node lives.
struct MasterProcess {
  MasterProcess(Env& env, const MasterOptions& options) : master(env, options) { env.Spawn(Run(this)); }
  static Task<> Run(MasterProcess* self) {
    auto started = co_await self->master.Start();
    self->started = std::make_unique<Status>(std::move(started));
  }
  Master master;
  std::unique_ptr<Status> started;
};

// What a writer holds.
struct OpenFile {
  uint64_t inode = 0;
  uint64_t generation = 0;
};

class ClusterTest : public testing::Test {
 protected:
  explicit ClusterTest(size_t servers = 3, MasterOptions options = {});
  ~ClusterTest() override;

  sim::Node& server_node(size_t i) { return world.node(2 + i); }
  FakeDisk& disk(size_t i) { return *disks[i]; }
  FakeDisk& disk_of(uint64_t server);
  FakeReplica& replica(size_t i, uint64_t chunk) { return disks[i]->replicas.at(chunk); }
  FakeChunkserver& fake(size_t i) { return *server_node(i).As<FakeChunkserver>(); }
  size_t index_of(uint64_t server) const;
  void StartMaster();
  void StartServer(size_t i);
  // True when that many servers are registered and live.
  bool AwaitLive(size_t count, Nanos limit = 60s);
  // Also a new channel: the old one's frames are lost with the master.
  void RestartMaster(sim::Node::Death death = sim::Node::Death::kProcess);

  template <class Response, class Request>
  Result<Response> Call(proto::Method method, const Request& request, Nanos timeout = 90s) {
    auto reply = sim::RunTask(world, client, channel->Call<Response>(method, request, timeout));
    if (!reply) return Fail(Code::kDeadlineExceeded, "the call did not end");
    return std::move(*reply);
  }
  // Sends without waiting; the answer appears in the returned slot.
  template <class Response, class Request>
  std::shared_ptr<std::optional<Result<Response>>> Begin(proto::Method method, const Request& request,
                                                         Nanos timeout = 90s) {
    auto slot = std::make_shared<std::optional<Result<Response>>>();
    client.Spawn(Keep<Response>(slot, channel->Call<Response>(method, request, timeout)));
    return slot;
  }
  template <class Response>
  Response Await(const std::shared_ptr<std::optional<Result<Response>>>& slot) {
    EXPECT_TRUE(world.RunUntil([&] { return slot->has_value(); }, 10min));
    if (!slot->has_value()) return Response();
    EXPECT_TRUE((*slot)->has_value()) << (*slot)->error().ToString();
    return (*slot)->has_value() ? ***slot : Response();
  }
  void Identify(proto::MutationId* id);

  OpenFile Create(const std::string& path, uint32_t replication = 3);
  proto::AddChunkRequest AddRequest(const OpenFile& file, uint64_t index);
  Result<proto::WriteGrant> AddChunk(const OpenFile& file, uint64_t index = 0);
  proto::GrantRequest GrantRequestFor(const OpenFile& file, const proto::WriteGrant& last,
                                      std::vector<uint64_t> failed = {}, uint64_t acked = 0);
  Result<proto::WriteGrant> Grant(const OpenFile& file, const proto::WriteGrant& last,
                                  std::vector<uint64_t> failed = {}, uint64_t acked = 0);
  // Puts the bytes on each member of the grant; what they know to be acknowledged stays behind (F6).
  void Write(const proto::WriteGrant& grant, const std::string& bytes);
  // Seals every member of the grant, and the request to commit it.
  proto::CommitSealRequest Seal(const OpenFile& file, const proto::WriteGrant& grant);
  Result<proto::CommitSealResponse> CommitSeal(const proto::CommitSealRequest& request);
  Result<proto::GetFileResponse> GetFile(const std::string& path, bool all_replicas = false);
  proto::ChunkLocation Chunk(uint64_t chunk);
  proto::ClusterReportResponse Report();
  // The last of the versions that the master committed for a chunk, as traced.
  std::vector<uint64_t> Committed(uint64_t chunk) const;

  sim::World world;
  MasterOptions options;
  sim::Node& master_node;
  sim::Node& client;
  FakeFleet fleet;
  std::vector<std::unique_ptr<FakeDisk>> disks;
  std::unique_ptr<Channel> channel;
  std::vector<ProtocolEvent> events;  // of the master
  uint64_t sequence = 0;

 private:
  template <class Response>
  static Task<> Keep(std::shared_ptr<std::optional<Result<Response>>> slot, Task<Result<Response>> call) {
    slot->emplace(co_await std::move(call));
  }
};

std::vector<uint64_t> ServersOf(const proto::WriteGrant& grant);

}  // namespace picket::test
