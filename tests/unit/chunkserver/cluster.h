// Real chunkservers in a simulated world, a node that talks to them as master and as client, and
// everything a test needs to say what either would say.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chunkserver/chunkserver.h"
#include "chunkserver/replica_format.h"
#include "common/base/crc32c.h"
#include "common/identity/token_signer.h"
#include "common/rpc/client.h"
#include "proto/chunkserver_master.pb.h"
#include "proto/data.pb.h"
#include "tests/sim/node.h"
#include "tests/unit/chunkserver/bytes.h"

namespace picket::cs {

using sim::Node;
using sim::RunTask;

inline constexpr uint64_t kChunk = 0x300000005;
inline constexpr uint64_t kChunkSize = 4 << 20;
inline constexpr Generation kSession(3, 1);
inline constexpr Version kFirst(3, 1);
inline constexpr uint16_t kPort = 7500;
inline constexpr uint64_t kTokenKey = 0x300000001;

// A chunkserver as the process of a node.
struct ServerProcess final : sim::Process {
  ServerProcess(Env& env, ChunkserverOptions options) : server(env, std::move(options)) { env.Spawn(Boot(this)); }
  static Task<> Boot(ServerProcess* self) {
    Status s = co_await self->server.Start();
    self->started = std::move(s);
  }
  Chunkserver server;
  std::optional<Status> started;
};

class Cluster {
 public:
  explicit Cluster(size_t servers, uint64_t seed = 1, sim::Config config = {})
      : world(config, seed), outside(world.AddNode("outside")), master(world.AddNode("master")) {
    outside.Start();
    secret.cluster = "00112233445566ff";
    secret.key = std::string(kSecretBytes, 'k');
    LearnKey(kTokenKey);
    for (size_t i = 0; i < servers; ++i) {
      Node& node = world.AddNode("cs" + std::to_string(i));
      auto id = RunTask(world, node, InitChunkserver(&node, "data", secret));
      EXPECT_TRUE(id && *id);
      ids.push_back(**id);
      nodes.push_back(&node);
      node.Crash(Node::Death::kProcess);
      Boot(i);
    }
  }
  ~Cluster() {
    channels.reset();
    for (Node* n : nodes) n->Crash(Node::Death::kProcess);
  }

  // The master is looked for on the node of that name, where a test may serve it.
  void Boot(size_t i) {
    channels = std::make_unique<ChannelPool>(outside);  // a power cut leaves half-open connections
    ChunkserverOptions options;
    options.dir = "data";
    options.listen = Endpoint(nodes[i]->host(), kPort);
    options.master = Endpoint(master.host(), 7400);
    options.reserve_bytes = 0;
    nodes[i]->Start([options](Env& env) { return std::make_unique<ServerProcess>(env, options); });
    world.RunUntil([&] { return Process(i)->started.has_value(); });
    EXPECT_TRUE(*Process(i)->started) << Process(i)->started->error().ToString();
    EXPECT_TRUE(Process(i)->server.LearnKeys(ring));
  }
  void Restart(size_t i, Node::Death death) {
    if (nodes[i]->alive()) nodes[i]->Crash(death);
    Boot(i);
  }
  ServerProcess* Process(size_t i) { return dynamic_cast<ServerProcess*>(nodes[i]->process()); }

  proto::Hop Hop(size_t i) {
    proto::Hop hop;
    hop.set_server(ids[i].value);
    hop.set_host(nodes[i]->host());
    hop.set_port(kPort);
    hop.set_incarnation(Process(i)->server.incarnation().value);
    return hop;
  }
  proto::OrderHeader Header(size_t i, uint32_t epoch = 3, uint64_t attempt = 1) {
    proto::OrderHeader h;
    h.set_cluster(secret.cluster);
    h.mutable_epoch()->set_number(epoch);
    h.mutable_epoch()->set_nonce(epoch * 11);
    h.set_revision(100);
    h.set_server(ids[i].value);
    h.set_incarnation(Hop(i).incarnation());
    h.set_attempt(attempt);
    return h;
  }

  Result<RpcReply> Raw(size_t i, proto::Method method, const google::protobuf::MessageLite& request,
                       Buffer payload = {}, Nanos timeout = 5s) {
    auto channel = channels->Get(Endpoint(nodes[i]->host(), kPort));
    auto reply = RunTask(world, outside, channel->Call(method, request.SerializeAsString(), Payload(payload), timeout));
    if (!reply) return Fail(Code::kInternal, "the world stopped");
    return std::move(*reply);
  }
  template <class Response>
  Result<Response> Call(size_t i, proto::Method method, const google::protobuf::MessageLite& request,
                        Buffer payload = {}, Nanos timeout = 5s) {
    auto reply = Raw(i, method, request, std::move(payload), timeout);
    if (!reply) return Fail(reply.error());
    Response response;
    EXPECT_TRUE(response.ParseFromString(reply->body));
    return response;
  }

  // ---- tokens ----

  // Adds a key to the ring that servers get at their start.
  void LearnKey(uint64_t id) {
    auto* key = ring.add_keys();
    key->set_id(id);
    key->set_sealed(SealTokenKey(secret, id, TokenKey(id), outside));
    ring.set_number(ring.number() + 1);
  }
  static std::string TokenKey(uint64_t id) { return std::string(kTokenKeyBytes, static_cast<char>('a' + id % 26)); }
  void Sign(proto::WriteToken* token, uint64_t key = kTokenKey) {
    picket::Sign(secret.cluster, key, TokenKey(key), token);
  }
  // As a member of the chain would send it.
  void Forward(size_t to, proto::WritePacketRequest* r) {
    r->set_forwarded(true);
    r->set_forward_proof(ProofFor(to, r->token(), r->target_incarnation()));
  }
  std::string ProofFor(size_t to, const proto::WriteToken& token, uint64_t boot) {
    return ForwardProof(secret, Forwarding{ChunkId(token.chunk()), Version(token.version()),
                                           Generation(token.generation()), ids[to], Incarnation(boot)});
  }

  // ---- what the master says ----

  Result<proto::CreateReplicaResponse> Create(size_t i, Version v = kFirst, bool joiner = false, uint64_t attempt = 1) {
    proto::CreateReplicaRequest r;
    *r.mutable_header() = Header(i, 3, attempt);
    r.set_chunk(kChunk);
    r.set_inode(9);
    r.set_version(v.value);
    r.set_generation(kSession.value);
    r.set_chunk_size(kChunkSize);
    r.set_joiner(joiner);
    return Call<proto::CreateReplicaResponse>(i, proto::CREATE_REPLICA, r);
  }
  proto::AdvanceVersionRequest AdvanceRequest(size_t i, Version from, Version to) {
    proto::AdvanceVersionRequest r;
    *r.mutable_header() = Header(i);
    r.set_chunk(kChunk);
    r.set_from(from.value);
    r.set_to(to.value);
    r.set_generation(kSession.value);
    r.set_reopen(true);
    return r;
  }
  Result<proto::AdvanceVersionResponse> Advance(size_t i, Version from, Version to) {
    return Call<proto::AdvanceVersionResponse>(i, proto::ADVANCE_VERSION, AdvanceRequest(i, from, to));
  }
  proto::AdvanceVersionRequest SetRequest(size_t i, Version from, Version to, std::string_view content, size_t source,
                                          Version source_version) {
    proto::AdvanceVersionRequest r = AdvanceRequest(i, from, to);
    r.mutable_set()->set_length(content.size());
    for (uint32_t crc : PieceCrcs(0, content)) r.mutable_set()->add_block_crcs(crc);
    *r.mutable_set()->mutable_source() = Hop(source);
    r.mutable_set()->set_source_version(source_version.value);
    return r;
  }
  Result<proto::AdvanceVersionResponse> Set(size_t i, Version from, Version to, std::string_view content, size_t source,
                                            Version source_version) {
    return Call<proto::AdvanceVersionResponse>(i, proto::ADVANCE_VERSION,
                                               SetRequest(i, from, to, content, source, source_version), {}, 20s);
  }
  Result<proto::GrantLeaseResponse> Grant(std::vector<size_t> members, Version v = kFirst, uint32_t lease_ms = 60000) {
    proto::GrantLeaseRequest r;
    *r.mutable_header() = Header(members[0]);
    r.set_chunk(kChunk);
    r.set_version(v.value);
    r.set_generation(kSession.value);
    for (size_t m : members) *r.add_members() = Hop(m);
    r.set_lease_ms(lease_ms);
    return Call<proto::GrantLeaseResponse>(members[0], proto::GRANT_LEASE, r);
  }
  Result<proto::DeleteReplicaResponse> Delete(size_t i, Version v, uint64_t instance) {
    proto::DeleteReplicaRequest r;
    *r.mutable_header() = Header(i);
    r.set_chunk(kChunk);
    r.set_version(v.value);
    r.set_instance(instance);
    return Call<proto::DeleteReplicaResponse>(i, proto::DELETE_REPLICA, r);
  }
  proto::BeginRecoveryRequest BeginRequest(size_t i, Version from, Version to, Generation g) {
    proto::BeginRecoveryRequest r;
    *r.mutable_header() = Header(i);
    r.set_chunk(kChunk);
    r.set_from(from.value);
    r.set_to(to.value);
    r.set_generation(g.value);
    return r;
  }
  Result<proto::BeginRecoveryResponse> Begin(size_t i, Version from, Version to, Generation g,
                                             std::optional<uint64_t> limit = std::nullopt) {
    proto::BeginRecoveryRequest r = BeginRequest(i, from, to, g);
    if (limit) r.set_limit(*limit);
    return Call<proto::BeginRecoveryResponse>(i, proto::BEGIN_RECOVERY, r);
  }
  proto::FinishRecoveryRequest FinishRequest(size_t i, Version v, Generation g, std::string_view content,
                                             size_t source) {
    proto::FinishRecoveryRequest r;
    *r.mutable_header() = Header(i);
    r.set_chunk(kChunk);
    r.set_version(v.value);
    r.set_generation(g.value);
    const std::vector<uint32_t> crcs = PieceCrcs(0, content);
    r.mutable_set()->set_length(content.size());
    for (uint32_t crc : crcs) r.mutable_set()->add_block_crcs(crc);
    *r.mutable_set()->mutable_source() = Hop(source);
    r.mutable_set()->set_source_version(v.value);
    r.set_digest(Crc32c(crcs.data(), crcs.size() * 4));
    return r;
  }
  Result<proto::FinishRecoveryResponse> Finish(size_t i, Version v, Generation g, std::string_view content,
                                               size_t source, bool truncation = false) {
    proto::FinishRecoveryRequest r = FinishRequest(i, v, g, content, source);
    r.set_truncation(truncation);
    return Call<proto::FinishRecoveryResponse>(i, proto::FINISH_RECOVERY, r, {}, 20s);
  }
  // Replicas on the members, the lease at the first.
  void Open(std::vector<size_t> members) {
    for (size_t m : members) ASSERT_TRUE(Create(m));
    ASSERT_TRUE(Grant(members));
  }

  // ---- what the client says ----

  proto::WriteToken Token(Version v = kFirst) {
    proto::WriteToken t;
    t.set_inode(9);
    t.set_chunk(kChunk);
    t.set_version(v.value);
    t.set_generation(kSession.value);
    t.set_holder(55);
    t.set_mode(proto::EXCLUSIVE);
    Sign(&t);
    return t;
  }
  proto::WritePacketRequest Packet(size_t primary, uint64_t serial, uint64_t offset, std::string_view bytes,
                                   Version v = kFirst, uint64_t acked = 0) {
    proto::WritePacketRequest r;
    *r.mutable_token() = Token(v);
    r.set_serial(serial);
    r.set_offset(offset);
    for (uint32_t crc : PieceCrcs(offset, bytes)) r.add_piece_crcs(crc);
    r.set_acked_length(acked);
    r.set_target_incarnation(Hop(primary).incarnation());
    return r;
  }
  Result<proto::WritePacketResponse> Write(size_t primary, uint64_t serial, uint64_t offset, std::string_view bytes,
                                           Version v = kFirst, bool sync = false, Nanos timeout = 5s) {
    proto::WritePacketRequest r = Packet(primary, serial, offset, bytes, v);
    r.set_sync(sync);
    return Call<proto::WritePacketResponse>(primary, proto::WRITE_PACKET, r, Buffer::Copy(bytes), timeout);
  }
  Result<proto::SealResponse> Seal(size_t primary, uint64_t length, Version v = kFirst, bool sync = true) {
    proto::SealRequest r;
    *r.mutable_token() = Token(v);
    r.set_length(length);
    r.set_sync(sync);
    r.set_target_incarnation(Hop(primary).incarnation());
    return Call<proto::SealResponse>(primary, proto::SEAL, r);
  }
  struct ReadBack {
    proto::ReadResponse header;
    std::string bytes;
  };
  Result<ReadBack> Read(size_t i, uint64_t offset, uint32_t length, Version v = kFirst) {
    proto::ReadRequest r;
    r.set_chunk(kChunk);
    r.set_version(v.value);
    r.set_offset(offset);
    r.set_length(length);
    auto reply = Raw(i, proto::READ, r);
    if (!reply) return Fail(reply.error());
    ReadBack out;
    EXPECT_TRUE(out.header.ParseFromString(reply->body));
    out.bytes = reply->payload.size() == 0 ? "" : std::string(reply->payload.buffer().view());
    const std::vector<uint32_t> crcs(out.header.block_crcs().begin(), out.header.block_crcs().end());
    EXPECT_EQ(crcs, PieceCrcs(out.header.offset(), out.bytes));
    return out;
  }
  proto::DescribeReplicaResponse Describe(size_t i) {
    proto::DescribeReplicaRequest r;
    r.set_chunk(kChunk);
    auto d = Call<proto::DescribeReplicaResponse>(i, proto::DESCRIBE_REPLICA, r);
    return d ? *d : proto::DescribeReplicaResponse();
  }
  std::string DataPath() const { return "data/replicas/" + ToHex(kChunk) + ".data"; }
  std::string DataOn(size_t i) { return nodes[i]->disk().Contents(DataPath()).value_or("none"); }

  sim::World world;
  Node& outside;
  Node& master;
  ClusterSecret secret;
  proto::KeyRing ring;
  std::unique_ptr<ChannelPool> channels;
  std::vector<Node*> nodes;
  std::vector<ServerId> ids;
};

template <class R>
Code CodeOf(const R& r) {
  return r ? Code::kOk : r.error().code;
}

}  // namespace picket::cs
