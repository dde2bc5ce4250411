#include "client/blocking/convert.h"

#include <algorithm>
#include <cctype>

#include "common/base/ids.h"
#include "common/env/net.h"

namespace picket::client {
namespace {

std::string Lowered(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

std::string StateName(proto::ReplicaState state) {
  return state == proto::REPLICA_STATE_UNKNOWN ? "unknown" : Lowered(proto::ReplicaState_Name(state));
}

// The hex form of an id; empty for none.
std::string IdText(uint64_t id) { return id == 0 ? "" : ToHex(id); }

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
  to.stored_bytes = from.stored_bytes();
  to.open = from.open();
  to.holder = from.holder();
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
    info.worth = replica.worth();
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

LeaseInfo Public(const proto::LeaseInfo& from) {
  LeaseInfo to;
  to.pending = from.path().empty();
  to.path = to.pending ? from.replaces() : from.path();
  to.inode = from.inode();
  to.mode = from.mode() == proto::SESSION_MODE_UNKNOWN ? "unknown" : Lowered(proto::SessionMode_Name(from.mode()));
  to.lock = from.lock();
  to.generation = from.generation();
  for (const auto& holder : from.holders()) {
    to.holders.push_back({ToHex(holder.client()), holder.writer_id(), holder.renewed_ms_ago()});
  }
  to.soft_limit_ms = from.soft_limit_ms();
  to.hard_limit_ms = from.hard_limit_ms();
  to.soft_left_ms = from.soft_left_ms();
  to.hard_left_ms = from.hard_left_ms();
  to.open_chunk = from.open_chunk();
  to.recovering = from.recovering();
  to.attempt = from.attempt();
  to.recovery_version = from.recovery_version();
  to.attempts = from.attempts();
  to.phase = from.phase();
  to.reason = from.reason();
  to.waiting_for = from.waiting_for();
  to.stalled_holder = IdText(from.stalled_holder());
  for (const auto& answer : from.answers()) {
    to.answers.push_back({.server = ToHex(answer.server()),
                          .state = answer.state(),
                          .clean = answer.clean(),
                          .version = answer.version(),
                          .length = answer.length(),
                          .sealed = answer.sealed(),
                          .sealed_generation = answer.sealed_generation(),
                          .error = answer.error()});
  }
  return to;
}

std::vector<QuarantineEntry> Public(const proto::QuarantineResponse& from) {
  std::vector<QuarantineEntry> entries;
  for (const auto& entry : from.entries()) {
    entries.push_back({.name = entry.name(),
                       .chunk = entry.chunk(),
                       .version = entry.version(),
                       .generation = entry.generation(),
                       .bytes = entry.bytes(),
                       .since_ns = entry.since_ns(),
                       .reason = entry.reason(),
                       .last_hope = entry.last_hope(),
                       .path = entry.path(),
                       .refused = entry.refused()});
  }
  return entries;
}

AdoptReport Public(const proto::AdoptResponse& from) {
  AdoptReport to;
  to.history_lost = from.history_lost();
  to.epoch = from.epoch();
  for (const auto& item : from.replicas()) {
    to.replicas.push_back({.chunk = item.chunk(),
                           .path = item.path(),
                           .server = ToHex(item.server()),
                           .version = item.version(),
                           .minted = item.minted(),
                           .length = item.length(),
                           .state = StateName(item.state()),
                           .action = item.action()});
  }
  return to;
}

// ---- the other way -----------------------------------------------------------------------------------

proto::Conditions ToProto(const Conditions& from) {
  proto::Conditions to;
  if (from.if_revision) to.set_if_revision(*from.if_revision);
  if (from.if_version) to.set_if_version(*from.if_version);
  to.set_if_absent(from.if_absent);
  return to;
}

SessionOptions SessionOf(const Conditions& conditions, std::string writer_id, uint32_t soft_limit_ms,
                         uint32_t hard_limit_ms) {
  SessionOptions to;
  to.writer_id = std::move(writer_id);
  to.limits.set_soft_ms(soft_limit_ms);
  to.limits.set_hard_ms(hard_limit_ms);
  to.conditions = ToProto(conditions);
  return to;
}

CreateFileOptions ToCore(const CreateOptions& from) {
  return {.overwrite = from.overwrite,
          .parents = from.parents,
          .mode = from.mode,
          .replication = from.replication,
          .chunk_size = from.chunk_size,
          .mtime_ns = from.mtime_ns,
          .sync = from.sync_on_close,
          .session = SessionOf(from.conditions, from.writer_id, from.soft_limit_ms, from.hard_limit_ms)};
}

AppendFileOptions ToCore(const AppendOptions& from) {
  AppendFileOptions to{.create = from.create,
                       .made = ToCore(from.made),
                       .session = SessionOf(from.conditions, from.writer_id, from.soft_limit_ms, from.hard_limit_ms)};
  to.made.sync = from.sync_on_close;
  return to;
}

}  // namespace picket::client
