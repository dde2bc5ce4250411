#include "client/blocking/convert.h"

#include <algorithm>
#include <cctype>

#include "common/base/ids.h"
#include "common/env/net.h"

namespace picket::client {
namespace {

std::string StateName(proto::ReplicaState state) {
  if (state == proto::REPLICA_STATE_UNKNOWN) return "unknown";
  std::string name = proto::ReplicaState_Name(state);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

std::string Address(const proto::Hop& hop) {
  return Endpoint(hop.host(), static_cast<uint16_t>(hop.port())).ToString();
}

}  // namespace

std::string Join(std::string_view directory, std::string_view name) {
  std::string path(directory);
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path + "/" + std::string(name);
}

FileStatus Public(const proto::FileStatus& from, std::string path) {
  FileStatus to;
  to.path = std::move(path);
  to.type = from.type() == proto::DIRECTORY ? FileType::kDirectory : FileType::kFile;
  to.inode = from.inode();
  to.length = from.length();
  to.mode = from.mode();
  to.owner = from.owner();
  to.group = from.group();
  to.mtime_ns = from.mtime_ns();
  to.replication = from.replication();
  to.chunk_size = from.chunk_size();
  to.chunk_count = from.chunk_count();
  to.open = from.open();
  to.generation = from.generation();
  to.create_revision = from.create_revision();
  to.mod_revision = from.mod_revision();
  return to;
}

ChunkInfo Public(const proto::ChunkLocation& from, std::string path) {
  ChunkInfo to;
  to.id = from.chunk();
  to.index = from.index();
  to.version = from.version();
  to.minted = from.minted();
  to.generation = from.generation();
  to.length = from.length();
  to.sealed = from.sealed();
  to.digest = from.digest();
  if (from.primary() != 0) to.primary = ToHex(from.primary());
  to.lease_left_ms = from.lease_left_ms();
  to.path = std::move(path);
  for (const auto& replica : from.replicas()) {
    ReplicaInfo& info = to.replicas.emplace_back();
    info.server = ToHex(replica.hop().server());
    info.address = Address(replica.hop());
    info.rack = replica.rack();
    info.version = replica.version();
    info.generation = replica.generation();
    info.length = replica.length();
    info.state = StateName(replica.state());
    info.counted = replica.counted();
  }
  return to;
}

ClusterInfo Public(const proto::ClusterReportResponse& from, std::string master) {
  ClusterInfo to;
  to.master = from.address().empty() ? std::move(master) : from.address();
  to.cluster_id = from.cluster();
  to.epoch = from.epoch().number();
  to.epoch_nonce = from.epoch().nonce();
  to.revision = from.revision();
  to.software = from.software();
  to.state = from.state();
  to.uptime_ms = from.uptime_ms();
  to.inode_count = from.inode_count();
  to.chunk_count = from.chunk_count();
  to.open_files = from.open_files();
  to.chunks_under_goal = from.chunks_under_goal();
  to.chunks_missing = from.chunks_missing();
  to.garbage_chunks = from.garbage_chunks();
  for (const auto& server : from.servers()) {
    ServerInfo& info = to.servers.emplace_back();
    info.id = ToHex(server.hop().server());
    info.address = Address(server.hop());
    info.rack = server.rack();
    info.state = server.state();
    info.software = server.software();
    info.incarnation = server.hop().incarnation();
    info.total_bytes = server.total_bytes();
    info.free_bytes = server.free_bytes();
    info.replica_count = server.replica_count();
    info.replica_bytes = server.replica_bytes();
    info.last_heartbeat_ms_ago = server.last_heartbeat_ms_ago();
    info.epoch_mark = static_cast<uint32_t>(server.epoch_mark());
  }
  return to;
}

}  // namespace picket::client
