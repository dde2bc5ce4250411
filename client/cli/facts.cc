#include "client/cli/facts.h"

#include <fmt/format.h>

#include "client/cli/text.h"

namespace picket::cli {

Json FactsOf(const client::FileStatus& status) {
  return Json{
      {"path", status.path},
      {"type", status.type == client::FileType::kDirectory ? "directory" : "file"},
      {"length", status.length},
      {"mode", fmt::format("{:04o}", status.mode)},
      {"owner", status.owner},
      {"group", status.group},
      {"mtime", UtcTime(status.mtime_ns)},
      {"replication", status.replication},
      {"chunk_size", status.chunk_size},
      {"chunks", status.chunk_count},
      {"stored_bytes", status.stored_bytes},
      {"open", status.open},
      {"holder", status.holder.empty() ? Json() : Json(status.holder)},
      {"inode", HexId(status.inode)},
      {"generation", status.generation},
      {"create_revision", status.create_revision},
      {"mod_revision", status.mod_revision},
  };
}

Json FactsOf(const client::ChunkInfo& chunk) {
  Json replicas = Json::array();
  for (const client::ReplicaInfo& replica : chunk.replicas) {
    replicas.push_back({
        {"server", replica.server},
        {"version", replica.version},
        {"generation", replica.generation},
        {"state", replica.state},
        {"length", replica.length},
        {"counted", replica.counted},
        {"worth", replica.worth},
        {"address", replica.address},
        {"rack", replica.rack},
    });
  }
  return Json{
      {"id", HexId(chunk.id)},
      {"version", chunk.version},
      {"generation", chunk.generation},
      {"replicas", std::move(replicas)},
      {"path", chunk.path},
      {"index", chunk.index},
      {"length", chunk.length},
      {"sealed", chunk.sealed},
      {"minted", chunk.minted},
      {"digest", chunk.sealed ? Json(fmt::format("{:08x}", chunk.digest)) : Json()},
      {"primary", chunk.primary.empty() ? Json() : Json(chunk.primary)},
      {"lease_left_ms", chunk.lease_left_ms},
  };
}

Json FactsOf(const client::ServerInfo& server) {
  return Json{
      {"id", server.id},
      {"address", server.address},
      {"rack", server.rack},
      {"state", server.state},
      {"software", server.software},
      {"incarnation", server.incarnation},
      {"total_bytes", server.total_bytes},
      {"free_bytes", server.free_bytes},
      {"replica_count", server.replica_count},
      {"replica_bytes", server.replica_bytes},
      {"last_heartbeat_ms_ago", server.last_heartbeat_ms_ago},
      {"epoch_mark", server.epoch_mark},
  };
}

Json FactsOf(const client::ClusterInfo& cluster) {
  Json servers = Json::array();
  for (const client::ServerInfo& server : cluster.servers) servers.push_back(FactsOf(server));
  return Json{
      {"master", cluster.master},
      {"cluster_id", cluster.cluster_id},
      {"state", cluster.state},
      {"epoch", cluster.epoch},
      {"epoch_nonce", HexId(cluster.epoch_nonce)},
      {"revision", cluster.revision},
      {"software", cluster.software},
      {"uptime_ms", cluster.uptime_ms},
      {"inodes", cluster.inode_count},
      {"chunks", cluster.chunk_count},
      {"open_files", cluster.open_files},
      {"chunks_under_goal", cluster.chunks_under_goal},
      {"chunks_missing", cluster.chunks_missing},
      {"garbage_chunks", cluster.garbage_chunks},
      {"servers", std::move(servers)},
  };
}

Json FactsOf(const client::Summary& summary) {
  return Json{
      {"directories", summary.directories},
      {"files", summary.files},
      {"bytes", summary.bytes},
      {"bytes_with_replicas", summary.bytes_with_replicas},
  };
}

Json FactsOf(const client::LeaseInfo& lease) {
  Json holders = Json::array();
  for (const client::LeaseHolder& holder : lease.holders) {
    holders.push_back(
        {{"client", holder.client}, {"writer_id", holder.writer_id}, {"renewed_ms_ago", holder.renewed_ms_ago}});
  }
  Json facts{
      {"path", lease.path},
      {"pending", lease.pending},
      {"inode", HexId(lease.inode)},
      {"mode", lease.mode},
      {"lock", lease.lock},
      {"generation", lease.generation},
      {"holders", std::move(holders)},
      {"soft_limit_ms", lease.soft_limit_ms},
      {"hard_limit_ms", lease.hard_limit_ms},
      {"soft_left_ms", lease.soft_left_ms},
      {"hard_left_ms", lease.hard_left_ms},
      {"open_chunk", lease.open_chunk == 0 ? Json() : Json(HexId(lease.open_chunk))},
      {"recovery", Json()},
  };
  if (!lease.recovering) return facts;
  Json answers = Json::array();
  for (const client::RecoveryAnswer& answer : lease.answers) {
    answers.push_back({{"server", answer.server},
                       {"state", answer.state},
                       {"clean", answer.clean},
                       {"version", answer.version},
                       {"length", answer.length},
                       {"sealed", answer.sealed},
                       {"sealed_generation", answer.sealed_generation},
                       {"error", answer.error.empty() ? Json() : Json(answer.error)}});
  }
  facts["recovery"] = {
      {"attempt", lease.attempt},
      {"attempts", lease.attempts},
      {"version", lease.recovery_version},
      {"phase", lease.phase},
      {"reason", lease.reason},
      {"waiting_for", lease.waiting_for.empty() ? Json() : Json(lease.waiting_for)},
      {"stalled_holder", lease.stalled_holder.empty() ? Json() : Json(lease.stalled_holder)},
      {"answers", std::move(answers)},
  };
  return facts;
}

Json FactsOf(const client::QuarantineEntry& entry) {
  return Json{
      {"name", entry.name},
      {"chunk", HexId(entry.chunk)},
      {"version", entry.version},
      {"generation", entry.generation},
      {"bytes", entry.bytes},
      {"since", UtcTime(entry.since_ns)},
      {"reason", entry.reason},
      {"last_hope", entry.last_hope},
      {"path", entry.path.empty() ? Json() : Json(entry.path)},
      {"refused", entry.refused.empty() ? Json() : Json(entry.refused)},
  };
}

Json FactsOf(const client::AdoptReport& report) {
  Json replicas = Json::array();
  for (const client::AdoptItem& item : report.replicas) {
    replicas.push_back({{"chunk", HexId(item.chunk)},
                        {"path", item.path.empty() ? Json() : Json(item.path)},
                        {"server", item.server},
                        {"version", item.version},
                        {"minted", item.minted},
                        {"length", item.length},
                        {"state", item.state},
                        {"action", item.action}});
  }
  return Json{{"history_lost", report.history_lost}, {"epoch", report.epoch}, {"replicas", std::move(replicas)}};
}

}  // namespace picket::cli
