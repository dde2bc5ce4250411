// A scripted cluster for the client's tests: one master and some chunkservers on simulated nodes, just
// true enough to the protocol that a client can work with them, and with a twist for any call.
// What they know outlives their processes, so a node can be restarted.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/core/file_system.h"
#include "common/base/crc32c.h"
#include "proto/client_master.pb.h"
#include "proto/data.pb.h"
#include "tests/sim/node.h"
#include "tests/unit/client/fake_state.h"

namespace picket {

class FakeCluster : public testing::Test {
 protected:
  explicit FakeCluster(size_t servers = 3, sim::Config config = {}, uint64_t seed = 1) : world(config, seed) {
    StartMaster();
    for (size_t i = 0; i < servers; ++i) {
      sim::Node& node = world.AddNode("chunkserver");
      auto& server = *chunkservers.emplace_back(std::make_unique<FakeChunkserver>());
      server.id = ServerId(0x100 + i);
      server.endpoint = Endpoint(node.host(), kFakeServerPort);
      server_nodes.push_back(&node);
      StartServer(i);
    }
    client_node.Start([this](Env& env) {
      return std::make_unique<sim::Running<FileSystem>>(env, Options());
    });
  }

  FileSystemOptions Options() {
    FileSystemOptions options;
    options.master = Endpoint(master_node.host(), kFakeMasterPort);
    options.id = ClientId(0xc11e47);
    options.user = "ann";
    options.group = "staff";
    return options;
  }
  FileSystem& files() { return *client_node.As<FileSystem>(); }

  void StartMaster() {
    master_node.Start([this](Env& env) {
      std::vector<proto::Method> methods{proto::HELLO,  proto::CREATE,      proto::STAT,  proto::GET_FILE,
                                         proto::MKDIR,  proto::ADD_CHUNK,   proto::GRANT, proto::COMMIT_SEAL,
                                         proto::REFRESH_TOKEN, proto::RELEASE, proto::CLOSE,  proto::ABANDON,     proto::RENEW, proto::OPEN_FILE,
                                         proto::DELETE, proto::RENAME,      proto::SET_ATTRIBUTES,
                                         proto::CONCAT, proto::TRUNCATE};
      return std::make_unique<sim::Running<FakeServer>>(
          env, master, Endpoint(master_node.host(), kFakeMasterPort), methods,
          [this](const RpcRequest& r, const std::optional<Twist>& t) { return Master(r, t); });
    });
  }
  void StartServer(size_t i) {
    server_nodes[i]->Start([this, i](Env& env) {
      std::vector<proto::Method> methods{proto::HELLO, proto::WRITE_PACKET, proto::SEAL, proto::READ,
                                         proto::VERIFY_REPLICA};
      return std::make_unique<sim::Running<FakeServer>>(
          env, chunkservers[i]->script, chunkservers[i]->endpoint, methods,
          [this, i](const RpcRequest& r, const std::optional<Twist>& t) { return Chunkserver(i, r, t); });
    });
  }

  // Runs a client's task to its end.
  template <class T>
  T Run(Task<T> task, Nanos limit = 10min) {
    auto result = sim::RunTask(world, client_node, std::move(task), limit);
    EXPECT_TRUE(result.has_value()) << "the task did not end";
    PICKET_CHECK(result.has_value());
    return std::move(*result);
  }
  // Starts one, and keeps its result.
  template <class T>
  std::shared_ptr<std::optional<T>> Begin(Task<T> task) {
    auto result = std::make_shared<std::optional<T>>();
    client_node.Spawn(Keep<T>(result, std::move(task)));
    return result;
  }
  template <class T>
  bool Await(const std::shared_ptr<std::optional<T>>& result, Nanos limit = 10min) {
    return world.RunUntil([&] { return result->has_value(); }, limit);
  }

  std::unique_ptr<FileWriter> Create(const std::string& path, CreateFileOptions options = {}) {
    auto writer = Run(files().Create(path, options));
    PICKET_CHECK(writer.has_value());
    return std::move(*writer);
  }
  std::unique_ptr<FileReader> Open(const std::string& path) {
    auto reader = Run(files().Open(path));
    PICKET_CHECK(reader.has_value());
    return std::move(*reader);
  }

  // What the members hold as the file's content; fails the test when they differ.
  std::string Stored(const std::string& path) {
    std::string all;
    for (const auto& chunk : file(path).chunks) {
      std::optional<std::string> bytes;
      for (const auto& replica : chunk.replicas()) {
        const auto& held = server(replica.hop().server()).replicas.at(chunk.chunk());
        EXPECT_EQ(held.version.value, chunk.version());
        if (bytes) EXPECT_EQ(*bytes, held.bytes);
        bytes = held.bytes;
      }
      all.resize(std::max<size_t>(all.size(), chunk.index() * file(path).status.chunk_size()));
      all += bytes.value_or("");
    }
    return all;
  }
  FakeFile& file(const std::string& path) { return by_inode.at(names.at(path)); }
  FakeChunkserver& server(uint64_t id) { return *chunkservers.at(id - 0x100); }
  FakeReplica& replica(const std::string& path, size_t chunk, size_t server_index) {
    return chunkservers[server_index]->replicas.at(file(path).chunks[chunk].chunk());
  }

  // A file that is there already, sealed, on every server.
  void Store(const std::string& path, const std::string& bytes, uint64_t chunk = 0) {
    FakeFile& made = Make(path, 0);
    if (chunk != 0) made.status.set_chunk_size(chunk);
    for (uint64_t at = 0; at < bytes.size(); at += made.status.chunk_size()) {
      auto& location = AddTo(made, {});
      const std::string part = bytes.substr(at, made.status.chunk_size());
      for (auto& server : chunkservers) server->replicas[location.chunk()].bytes = part;
      SealChunk(made, location, part.size());
    }
    made.status.set_open(false);
    made.status.set_mod_revision(++last_id_);
  }

  sim::World world;
  sim::Node& master_node = world.AddNode("master");
  sim::Node& client_node = world.AddNode("client");
  std::vector<sim::Node*> server_nodes;

  FakeServer::Script master;
  std::vector<std::unique_ptr<FakeChunkserver>> chunkservers;
  std::map<std::string, uint64_t> names;
  std::map<uint64_t, FakeFile> by_inode;
  uint64_t chunk_size = kMiB;
  uint32_t soft_limit_ms = 60000;
  uint32_t replication = 3;
  uint64_t last_key = 0;  // of the token that was refreshed last
  std::map<std::pair<uint64_t, uint64_t>, std::string> answered;  // by MutationId: done once
  std::vector<uint64_t> lost_inodes;                              // what RENEW says
  // L of the next grant; default: what every remaining member has.
  std::function<uint64_t(const proto::GrantRequest&, uint64_t common)> choose_length;

 private:
  template <class T>
  static Task<> Keep(std::shared_ptr<std::optional<T>> result, Task<T> task) {
    T value = co_await std::move(task);
    result->emplace(std::move(value));
  }

  // ---- the master
  FakeFile& Make(const std::string& path, uint64_t holder, bool named = true) {
    const uint64_t inode = ++last_id_;
    if (named) names[path] = inode;
    FakeFile& made = by_inode[inode];
    made.holder = holder;
    made.status.set_inode(inode);
    made.status.set_type(proto::REGULAR);
    made.status.set_chunk_size(chunk_size);
    made.status.set_replication(replication);
    made.status.set_open(true);
    made.status.set_generation(++last_id_);
    return made;
  }
  proto::ChunkLocation& AddTo(FakeFile& to, const std::vector<uint64_t>& excluded) {
    const uint64_t index = to.chunks.empty() ? 0 : to.chunks.back().index() + 1;
    return AddTo(to, excluded, index);
  }
  proto::ChunkLocation& AddTo(FakeFile& to, const std::vector<uint64_t>& excluded, uint64_t index) {
    const auto after = std::ranges::upper_bound(to.chunks, index, {}, [](const auto& c) { return c.index(); });
    auto& chunk = *to.chunks.emplace(after);
    chunk.set_chunk(++last_id_);
    chunk.set_index(index);
    chunk.set_version(Version(1, static_cast<uint32_t>(++last_id_)).value);
    for (size_t i = 0; i < chunkservers.size() && i < replication + excluded.size(); ++i) {
      const uint64_t id = chunkservers[i]->id.value;
      if (std::ranges::find(excluded, id) != excluded.end()) continue;
      AddReplica(chunk, id);
      chunkservers[i]->replicas[chunk.chunk()].version = Version(chunk.version());
    }
    chunk.set_primary(chunk.replicas(0).hop().server());
    return chunk;
  }
  static proto::ChunkLocation& ChunkOf(FakeFile& of, uint64_t id) {
    return *std::ranges::find(of.chunks, id, [](const auto& c) { return c.chunk(); });
  }
  void AddReplica(proto::ChunkLocation& chunk, uint64_t id) {
    auto& replica = *chunk.add_replicas();
    replica.mutable_hop()->set_server(id);
    replica.mutable_hop()->set_host(server(id).endpoint.host);
    replica.mutable_hop()->set_port(server(id).endpoint.port);
    replica.mutable_hop()->set_incarnation(1);
    replica.set_counted(true);
    replica.set_readable(true);
  }
  void SealChunk(FakeFile& of, proto::ChunkLocation& chunk, uint64_t length) {
    for (const auto& r : chunk.replicas()) server(r.hop().server()).replicas.at(chunk.chunk()).sealed = true;
    chunk.set_sealed(true);
    chunk.set_length(length);
    chunk.set_primary(0);
    of.status.set_length(std::max(of.status.length(), chunk.index() * of.status.chunk_size() + length));
    of.status.set_chunk_count(of.chunks.size());
  }
  proto::WriteGrant GrantOf(const FakeFile& of, const proto::ChunkLocation& chunk, uint64_t length) {
    proto::WriteGrant grant;
    grant.mutable_token()->set_inode(of.status.inode());
    grant.mutable_token()->set_chunk(chunk.chunk());
    grant.mutable_token()->set_version(chunk.version());
    grant.mutable_token()->set_generation(of.status.generation());
    grant.mutable_token()->set_holder(of.holder);
    for (const auto& replica : chunk.replicas()) *grant.add_chain() = replica.hop();
    grant.set_length(length);
    grant.set_chunk_size(of.status.chunk_size());
    grant.set_replication(of.status.replication());
    return grant;
  }

  // The first answer again, without a second effect.
  template <class Request>
  Result<RpcReply> Once(const RpcRequest& r, const std::function<Result<RpcReply>(const Request&)>& act) {
    const Request request = Parse<Request>(r);
    const std::pair key(request.mutation().client(), request.mutation().sequence());
    EXPECT_NE(key.second, 0u);
    if (auto it = answered.find(key); it != answered.end()) return RpcReply(it->second, Payload());
    auto reply = act(request);
    if (reply) answered[key] = reply->body;
    return reply;
  }

  Result<RpcReply> Master(const RpcRequest& r, const std::optional<Twist>& twist) {
    if (twist && twist->kind != Twist::Kind::kLoseAnswer && twist->kind != Twist::Kind::kDelay) return RpcReply();
    switch (r.method) {
      case proto::HELLO: {
        proto::HelloResponse hello;
        hello.set_role("master");
        return Say(hello);
      }
      case proto::MKDIR:
        return Once<proto::MkdirRequest>(r, [](const auto& request) {
          proto::MkdirResponse made;
          made.mutable_status()->set_type(proto::DIRECTORY);
          made.mutable_status()->set_owner(request.owner());
          return Say(made);
        });
      case proto::STAT: {
        const auto request = Parse<proto::StatRequest>(r);
        if (!names.contains(request.path())) return Fail(Code::kNotFound, request.path() + " does not exist");
        proto::StatResponse found;
        *found.mutable_status() = file(request.path()).status;
        return Say(found);
      }
      case proto::CREATE:
        return Once<proto::CreateRequest>(r, [this](const auto& request) -> Result<RpcReply> {
          proto::CreateResponse created;
          if (auto refused = Refuses(request.conditions(), request.path())) return Fail(*refused);
          const bool over = names.contains(request.path());
          FakeFile& made = Make(request.path(), request.holder(), !over);
          if (over) made.replaces = request.path();
          made.conditions = request.conditions();
          *created.mutable_status() = made.status;
          created.set_generation(made.status.generation());
          created.set_soft_limit_ms(soft_limit_ms);
          created.set_live_servers(static_cast<uint32_t>(chunkservers.size()));
          return Say(created);
        });
      case proto::ADD_CHUNK:
        return Once<proto::AddChunkRequest>(r, [this](const auto& request) -> Result<RpcReply> {
          FakeFile& of = by_inode.at(request.inode());
          EXPECT_EQ(request.generation(), of.status.generation());
          for (const auto& chunk : of.chunks) {
            EXPECT_NE(request.index(), chunk.index());
            EXPECT_TRUE(chunk.sealed()) << "another chunk is open";
          }
          const std::vector<uint64_t> excluded(request.exclude_servers().begin(), request.exclude_servers().end());
          if (excluded.size() + 1 >= chunkservers.size()) return Fail(Code::kNotEnoughReplicas, "too few servers");
          return Say(GrantOf(of, AddTo(of, excluded, request.index()), 0));
        });
      case proto::REFRESH_TOKEN: {
        const auto request = Parse<proto::RefreshTokenRequest>(r);
        FakeFile& of = by_inode.at(request.inode());
        proto::RefreshTokenResponse refreshed;
        for (const auto& chunk : of.chunks) {
          if (chunk.chunk() != request.chunk()) continue;
          if (chunk.version() != request.version()) {
            return Fail(Error(Code::kStaleVersion, "another version").WithNextStep("ask for a grant"));
          }
          *refreshed.mutable_token() = GrantOf(of, chunk, 0).token();
        }
        refreshed.mutable_token()->set_key(++last_key);
        return Say(refreshed);
      }
      case proto::GRANT:
        return Once<proto::GrantRequest>(r, [this](const auto& request) { return Grant(request); });
      case proto::COMMIT_SEAL:
        return Once<proto::CommitSealRequest>(r, [this](const auto& request) -> Result<RpcReply> {
          FakeFile& of = by_inode.at(request.inode());
          auto& chunk = ChunkOf(of, request.chunk());
          EXPECT_EQ(request.version(), chunk.version());
          EXPECT_EQ(request.sealed_servers_size(), chunk.replicas_size());
          if (request.close()) {
            if (auto refused = ClosesBadly(of)) return Fail(*refused);
          }
          SealChunk(of, chunk, request.length());
          proto::CommitSealResponse committed;
          *committed.mutable_status() = of.status;
          return Say(committed);
        });
      case proto::CLOSE:
        return Once<proto::CloseRequest>(r, [this](const auto& request) -> Result<RpcReply> {
          FakeFile& of = by_inode.at(request.inode());
          for (const auto& chunk : of.chunks) EXPECT_TRUE(chunk.sealed());
          if (auto refused = ClosesBadly(of)) return Fail(*refused);
          proto::CloseResponse closed;
          *closed.mutable_status() = of.status;
          return Say(closed);
        });
      case proto::OPEN_FILE:
        return Once<proto::OpenRequest>(r, [this](const auto& request) { return OpenAgain(request); });
      case proto::RELEASE:
        return Once<proto::ReleaseRequest>(r, [this](const auto& request) {
          by_inode.at(request.inode()).status.set_open(false);
          return Say(proto::ReleaseResponse());
        });
      case proto::ABANDON:
        return Once<proto::AbandonRequest>(r, [this](const auto& request) {
          by_inode.at(request.inode()).removed = true;
          return Say(proto::AbandonResponse());
        });
      case proto::RENEW: {
        proto::RenewResponse renewed;
        renewed.mutable_lost_inodes()->Assign(lost_inodes.begin(), lost_inodes.end());
        return Say(renewed);
      }
      case proto::GET_FILE: {
        const auto request = Parse<proto::GetFileRequest>(r);
        if (!request.path().empty() && !names.contains(request.path())) {
          return Fail(Code::kNotFound, request.path() + " does not exist");
        }
        FakeFile& of = request.path().empty() ? by_inode.at(request.inode()) : file(request.path());
        proto::GetFileResponse found;
        *found.mutable_status() = of.status;
        const size_t limit = std::min<size_t>(request.limit(), page_limit);
        for (size_t i = 0; i < of.chunks.size(); ++i) {
          if (of.chunks[i].index() < request.first_index()) continue;
          if (static_cast<size_t>(found.chunks_size()) == limit) {
            found.set_more(true);
            break;
          }
          *found.add_chunks() = of.chunks[i];
        }
        return Say(found);
      }
      default: return Fail(Code::kUnsupported, "the fake master does not know this");
    }
  }

  std::optional<Error> Refuses(const proto::Conditions& conditions, const std::string& path) {
    const auto name = names.find(path);
    if (conditions.if_absent() && name != names.end()) return Error(Code::kConflict, path + " exists");
    if (!conditions.has_if_version()) return std::nullopt;
    const uint64_t now = name == names.end() ? 0 : by_inode.at(name->second).status.mod_revision();
    if (now == conditions.if_version()) return std::nullopt;
    return Error(Code::kConflict, path + " has changed").WithTokens(conditions.if_version(), now);
  }
  std::optional<Error> ClosesBadly(FakeFile& of) {
    if (!of.replaces.empty()) {
      if (auto refused = Refuses(of.conditions, of.replaces)) return refused;
      names[of.replaces] = of.status.inode();
    }
    of.status.set_open(false);
    of.status.set_mod_revision(++last_id_);
    return std::nullopt;
  }
  Result<RpcReply> OpenAgain(const proto::OpenRequest& request) {
    if (!names.contains(request.path())) {
      if (!request.create()) return Fail(Code::kNotFound, request.path() + " does not exist");
      Make(request.path(), request.holder());
    }
    FakeFile& of = file(request.path());
    of.holder = request.holder();
    of.status.set_open(true);
    of.status.set_generation(++last_id_);
    proto::OpenResponse opened;
    *opened.mutable_status() = of.status;
    opened.set_generation(of.status.generation());
    opened.set_soft_limit_ms(soft_limit_ms);
    opened.set_live_servers(static_cast<uint32_t>(chunkservers.size()));
    if (!of.chunks.empty()) *opened.mutable_last_chunk() = of.chunks.back();
    return Say(opened);
  }

  Result<RpcReply> Grant(const proto::GrantRequest& request) {
    FakeFile& of = by_inode.at(request.inode());
    auto& chunk = ChunkOf(of, request.chunk());
    for (const auto& other : of.chunks) EXPECT_TRUE(other.sealed() || &other == &chunk) << "another chunk is open";
    EXPECT_EQ(request.version(), chunk.version());
    EXPECT_EQ(request.reopen(), chunk.sealed());
    proto::ChunkLocation next = chunk;
    next.set_sealed(false);
    next.clear_replicas();
    uint64_t common = UINT64_MAX;
    for (const auto& replica : chunk.replicas()) {
      const uint64_t id = replica.hop().server();
      if (std::ranges::find(request.failed_servers(), id) != request.failed_servers().end()) continue;
      *next.add_replicas() = replica;
      common = std::min<uint64_t>(common, server(id).replicas.at(chunk.chunk()).bytes.size());
    }
    if (next.replicas_size() == 0) return Fail(Code::kNotEnoughReplicas, "nobody is left");
    next.set_version(Version(1, static_cast<uint32_t>(++last_id_)).value);
    next.set_primary(next.replicas(0).hop().server());
    const uint64_t length = choose_length ? choose_length(request, common) : common;
    for (const auto& replica : next.replicas()) {
      auto& held = server(replica.hop().server()).replicas.at(chunk.chunk());
      held.version = Version(next.version());
      held.serial = 0;
      held.sealed = false;
      held.bytes.resize(std::min<size_t>(held.bytes.size(), length));
    }
    chunk = next;
    return Say(GrantOf(of, chunk, length));
  }

  // ---- a chunkserver
  Result<RpcReply> Chunkserver(size_t index, const RpcRequest& r, const std::optional<Twist>& twist) {
    auto& self = *chunkservers[index];
    switch (r.method) {
      case proto::HELLO: {
        if (twist && twist->kind == Twist::Kind::kSilence) return RpcReply();
        proto::HelloResponse hello;
        hello.set_role("chunkserver");
        return Say(hello);
      }
      case proto::WRITE_PACKET: return Packet(self, r, twist);
      case proto::SEAL: {
        if (twist && twist->kind == Twist::Kind::kFail) return RpcReply();
        const auto request = Parse<proto::SealRequest>(r);
        proto::SealResponse sealed;
        sealed.set_length(request.length());
        auto members = Members(request.token().chunk());
        // Sealed already: whoever is asked answers for itself.
        auto& own = self.replicas.at(request.token().chunk());
        if (own.sealed) members = {&own};
        for (auto* held : members) {
          EXPECT_EQ(held->bytes.size(), request.length());
          if (held->version != Version(request.token().version())) return Fail(Code::kStaleVersion, "old version");
          held->sealed = true;
          if (request.sync()) held->synced = held->bytes;
          sealed.set_digest(Crc32c(held->bytes));
        }
        for (const auto& hop : chain_) sealed.add_sealed_servers(hop);
        if (std::exchange(self.forgets_a_member, false)) sealed.mutable_sealed_servers()->RemoveLast();
        return Say(sealed);
      }
      case proto::READ: return Read(self, r, twist);
      case proto::VERIFY_REPLICA: return Say(proto::VerifyReplicaResponse());
      default: return Fail(Code::kUnsupported, "the fake chunkserver does not know this");
    }
  }

  // The replicas of the version's set, primary first.
  std::vector<FakeReplica*> Members(uint64_t chunk) {
    std::vector<FakeReplica*> members;
    chain_.clear();
    for (auto& [inode, of] : by_inode) {
      for (const auto& location : of.chunks) {
        if (location.chunk() != chunk) continue;
        for (const auto& replica : location.replicas()) {
          chain_.push_back(replica.hop().server());
          members.push_back(&server(replica.hop().server()).replicas.at(chunk));
        }
      }
    }
    return members;
  }

  Result<RpcReply> Packet(FakeChunkserver& self, const RpcRequest& r, const std::optional<Twist>& twist) {
    const auto request = Parse<proto::WritePacketRequest>(r);
    const Buffer payload = r.payload.buffer();
    auto members = Members(request.token().chunk());
    size_t apply_on = members.size();
    if (twist && twist->kind != Twist::Kind::kLoseAnswer && twist->kind != Twist::Kind::kDelay) {
      apply_on = twist->applied_on;
    }
    const Version version(request.token().version());
    auto& mine = self.replicas.at(request.token().chunk());
    if (version < mine.version) return Fail(Error(Code::kStaleVersion, "old version").WithTokens(version.value, mine.version.value));
    for (size_t i = 0; i < apply_on; ++i) {
      auto& held = *members[i];
      if (request.serial() != held.serial + 1) return Fail(Code::kOutOfOrder, "serial");
      const uint64_t end = request.overwrite() ? request.offset() + payload.size() : request.offset();
      if (request.overwrite() ? end > held.bytes.size() : end != held.bytes.size()) {
        return Fail(Code::kOutOfOrder, "offset");
      }
      size_t at = 0;
      for (const uint32_t crc : request.piece_crcs()) {
        const size_t size = std::min<size_t>(kBlock - (request.offset() + at) % kBlock, payload.size() - at);
        if (Crc32c(payload.data() + at, size) != crc) return Fail(Code::kCorrupt, "piece");
        at += size;
      }
      EXPECT_EQ(at, payload.size());
      held.serial = request.serial();
      if (request.overwrite()) {
        held.bytes.replace(request.offset(), payload.size(), payload.view());
      } else {
        held.bytes += payload.view();
      }
      if (request.sync()) held.synced = held.bytes;
    }
    proto::WritePacketResponse done;
    done.set_serial(request.serial());
    done.set_length(mine.bytes.size());
    return Say(done);
  }

  Result<RpcReply> Read(FakeChunkserver& self, const RpcRequest& r, const std::optional<Twist>& twist) {
    if (twist && twist->kind == Twist::Kind::kFail) return RpcReply();
    const auto request = Parse<proto::ReadRequest>(r);
    auto it = self.replicas.find(request.chunk());
    if (it == self.replicas.end()) return Fail(Code::kNotFound, "no such replica");
    const FakeReplica& held = it->second;
    if (Version(request.version()) < held.version) return Fail(Code::kStaleVersion, "old version");
    const uint64_t end = std::min<uint64_t>(held.bytes.size(), held.readable);
    proto::ReadResponse read;
    const uint64_t from = std::min(request.offset() - request.offset() % kBlock, end);
    const uint64_t wanted = request.length() == 0 ? 0 : (request.offset() + request.length() + kBlock - 1) / kBlock * kBlock;
    const uint64_t to = std::clamp(wanted, from, end);
    read.set_offset(request.offset() - request.offset() % kBlock);
    read.set_readable_length(end);
    read.set_sealed(held.sealed);
    Buffer payload = Buffer::Copy(std::string_view(held.bytes).substr(from, to - from));
    for (uint64_t at = 0; at < payload.size(); at += kBlock) {
      read.add_block_crcs(Crc32c(payload.view().substr(at, kBlock)));
    }
    if (held.rot && *held.rot >= from && *held.rot < to) payload.data()[*held.rot - from] ^= std::byte{1};
    return RpcReply(read.SerializeAsString(), Payload(std::move(payload)));
  }

 protected:
  static constexpr size_t kBlock = 64 << 10;
  size_t page_limit = 64;

 private:
  std::vector<uint64_t> chain_;
  uint64_t last_id_ = 1;
};

// Bytes that differ everywhere, from a seed.
inline std::string Pattern(size_t size, uint64_t seed = 1) {
  Rng rng(seed);
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(rng.Next() >> 56);
  return bytes;
}

// Writes all of it in parts of `part` bytes.
inline Task<Status> WriteAll(FileWriter* writer, std::string bytes, size_t part) {
  for (size_t at = 0; at < bytes.size(); at += part) {
    PICKET_CO_TRY(co_await writer->Write(Buffer::Copy(std::string_view(bytes).substr(at, part))));
  }
  co_return Status();
}

// Reads to the end.
inline Task<Result<std::string>> ReadAll(FileReader* reader) {
  std::string all;
  while (true) {
    auto piece = co_await reader->Read();
    if (!piece) co_return Fail(piece.error());
    if (piece->empty()) co_return all;
    all += piece->view();
  }
}

}  // namespace picket
