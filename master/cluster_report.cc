#include "master/cluster_report.h"

namespace picket {

void ClusterReport::Register(RpcServer* server) {
  server->Handle<proto::ClusterReportRequest, proto::ClusterReportResponse>(
      proto::CLUSTER_REPORT, [this](auto, Mono) { return Make(); });
}

Task<Result<uint64_t>> ClusterReport::CountAhead() {
  uint64_t ahead = 0;
  ChunkId after;
  for (;;) {
    const std::vector<ChunkId> step = locations_.Next(after, kStep);
    for (ChunkId chunk : step) {
      auto record = chunks_.Get(chunk);
      if (!record) co_return Fail(record.error());
      for (const Replica& replica : locations_.Of(chunk)) {
        if (view_.Judge(*record ? &**record : nullptr, replica) == Worth::kAhead) ++ahead;
      }
    }
    if (step.size() < kStep) co_return ahead;
    after = step.back();
    co_await env_.Sleep(Nanos(0));
  }
}

std::string ClusterReport::State(uint64_t ahead) const {
  if (store_.failed()) return "read-only: the metadata store has failed";
  std::string state = serving_.Describe();
  if (ahead > 0) {
    state += "; AHEAD_OF_MASTER: " + std::to_string(ahead) +
             " replicas are of a history that this master does not know, see 'picket admin adopt --dry-run'";
  }
  return state;
}

Task<Result<proto::ClusterReportResponse>> ClusterReport::Make() {
  proto::ClusterReportResponse report;
  uint64_t chunk_count = 0, under_goal = 0, missing = 0, garbage = 0;
  ChunkId after;
  for (;;) {
    auto rows = chunks_.Scan(after, kStep);
    if (!rows) co_return Fail(rows.error());
    for (const ChunkRow& row : *rows) {
      if (row.record.inode() == 0) {
        ++garbage;
        continue;
      }
      ++chunk_count;
      const size_t good = view_.CountGood(row);
      if (good < row.record.replication()) ++under_goal;
      if (good == 0) ++missing;
    }
    if (rows->size() < kStep) break;
    after = rows->back().id;
    co_await env_.Sleep(Nanos(0));
  }
  auto ahead = co_await CountAhead();
  if (!ahead) co_return Fail(ahead.error());
  report.set_chunk_count(chunk_count);
  report.set_chunks_under_goal(under_goal);
  report.set_chunks_missing(missing);
  report.set_garbage_chunks(garbage);
  report.set_inode_count(names_.inode_count());
  report.set_open_files(sessions_.open_count());
  report.set_cluster(cluster_);
  report.set_address(address_);
  report.mutable_epoch()->set_number(store_.epoch().number);
  report.mutable_epoch()->set_nonce(store_.epoch().nonce);
  report.set_software(PICKET_VERSION);
  report.set_uptime_ms((env_.Now() - started_) / 1ms);
  report.set_state(State(*ahead));
  for (const auto& [id, server] : servers_.all()) {
    proto::ServerReport* out = report.add_servers();
    out->mutable_hop()->set_server(id.value);
    out->mutable_hop()->set_host(server.endpoint.host);
    out->mutable_hop()->set_port(server.endpoint.port);
    out->mutable_hop()->set_incarnation(server.incarnation.value);
    out->set_rack(server.rack);
    out->set_state(std::string(LivenessName(servers_.LivenessOf(server))));
    out->set_total_bytes(server.space.total_bytes());
    out->set_free_bytes(server.space.free_bytes());
    out->set_replica_count(server.space.replica_count());
    out->set_replica_bytes(server.space.replica_bytes());
    out->set_last_heartbeat_ms_ago((env_.Now() - server.heard) / 1ms);
    out->set_software(server.software);
    out->set_epoch_mark(server.epoch_mark);
  }
  report.set_revision(store_.revision());
  PICKET_CO_TRY(co_await store_.ReadBarrier());
  co_return report;
}

}  // namespace picket
