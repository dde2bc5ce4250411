#include "master/chunk_report.h"

#include "common/obs/log.h"
#include "master/meta_store.h"

namespace picket {
namespace {

Error NotRegistered(ServerId server) {
  return Error(Code::kNotFound, "chunkserver " + ToString(server) + " is not registered with this session")
      .WithNextStep("register again");
}

}  // namespace

void ChunkReports::Register(RpcServer* server) {
  server->Handle<proto::ChunkReportRequest, proto::ChunkReportResponse>(
      proto::CHUNK_REPORT, [this](auto request, Mono) { return Page(std::move(request)); });
}

void ChunkReports::Take(const Server& server, const proto::ReplicaReport& report, Tally* tally) {
  const ChunkId chunk(report.chunk());
  const Replica replica = FromReport(server.id, server.session, report);
  locations_.Update(chunk, replica);
  if (report.state() == proto::TOMBSTONE) return;
  auto record = chunks_.Get(chunk);
  if (!record) {
    PICKET_LOG(env_, kError, "judging a replica of chunk {}: {}", ToString(chunk), record.error().ToString());
    return;
  }
  const Worth worth =
      JudgeReplica(*record ? &**record : nullptr, store_.activations(), FactsOf(replica, server.incarnation));
  ++(*tally)[static_cast<size_t>(worth)];
  if (worth == Worth::kAhead) {
    PICKET_LOG(env_, kError, "AHEAD_OF_MASTER: chunk {} on chunkserver {} has version {}, minted here are {}",
               ToString(chunk), ToString(server.id), replica.version.ToString(),
               Version(*record ? (*record)->minted() : 0).ToString());
  }
  if (report.state() == proto::CORRUPT) {
    PICKET_LOG(env_, kError, "chunk {} on chunkserver {} is corrupt", ToString(chunk), ToString(server.id));
  }
}

void ChunkReports::Summarise(const Server& server, const Tally& tally) const {
  std::string text;
  for (size_t i = 0; i < tally.size(); ++i) {
    if (tally[i] == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(tally[i]) + " " + std::string(WorthName(static_cast<Worth>(i)));
  }
  PICKET_LOG(env_, kInfo, "chunkserver {} has reported: {}", ToString(server.id), text.empty() ? "no replicas" : text);
}

Task<Result<proto::ChunkReportResponse>> ChunkReports::Page(proto::ChunkReportRequest request) {
  const ServerId id(request.server());
  for (int i = 0; i == 0 || i < request.replicas_size(); ++i) {
    if (i % kSlice == 0) {
      if (i > 0) co_await env_.Sleep(Nanos(0));
      Server* server = servers_.FindSession(id, request.session());
      if (server == nullptr) co_return Fail(NotRegistered(id));
      server->heard = env_.Now();
      if (i == 0 && request.page() > server->next_page) {
        co_return Fail(Error(Code::kOutOfOrder, "page " + std::to_string(request.page()) + " of the report of " +
                                                    ToString(id) + " came before page " +
                                                    std::to_string(server->next_page))
                           .WithNextStep("report again from the first page"));
      }
      if (i == 0 && request.page() == 0) tallies_[id] = Tally{};
    }
    if (i < request.replicas_size()) {
      // Looked up again: nothing of the table is kept across the turn.
      Take(*servers_.FindSession(id, request.session()), request.replicas(i), &tallies_[id]);
    }
  }
  Server* server = servers_.FindSession(id, request.session());
  server->next_page = std::max(server->next_page, request.page() + 1);
  if (request.last() && !server->reported) {
    server->reported = true;
    locations_.EndReport(id, request.session());
    Summarise(*server, tallies_[id]);
    tallies_.erase(id);
  }
  co_return proto::ChunkReportResponse();
}

void ChunkReports::Changes(const Server& server,
                           const google::protobuf::RepeatedPtrField<proto::ReplicaReport>& changed,
                           const google::protobuf::RepeatedField<uint64_t>& removed) {
  Tally tally{};
  for (const proto::ReplicaReport& report : changed) Take(server, report, &tally);
  for (uint64_t chunk : removed) locations_.Remove(ChunkId(chunk), server.id);
}

}  // namespace picket
