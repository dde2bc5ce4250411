#include "master/adopt_service.h"

#include <algorithm>

#include "common/base/mutation.h"
#include "common/obs/log.h"
#include "master/attempt.h"
#include "master/history.h"

namespace picket {

void AdoptService::Register(RpcServer* server) {
  server->Handle<proto::AdoptRequest, proto::AdoptResponse>(
      proto::ADOPT, [this](auto request, Mono) { return Serve(std::move(request)); });
}

std::vector<Replica> AdoptService::AheadOf(ChunkId chunk, const record::Chunk* record) const {
  std::vector<Replica> out;
  for (const Replica& replica : locations_.Of(chunk)) {
    const Server* server = servers_.Find(replica.server);
    const ReplicaFacts facts = FactsOf(replica, server == nullptr ? Incarnation() : server->incarnation);
    if (JudgeReplica(record, store_.activations(), facts) == Worth::kAhead) out.push_back(replica);
  }
  return out;
}

Task<Result<std::vector<ChunkId>>> AdoptService::FindAhead(std::vector<uint64_t> only) {
  std::vector<ChunkId> out;
  ChunkId after;
  for (;;) {
    const std::vector<ChunkId> step = locations_.Next(after, kStep);
    for (ChunkId chunk : step) {
      if (!only.empty() && std::ranges::find(only, chunk.value) == only.end()) continue;
      auto record = chunks_.Get(chunk);
      if (!record) co_return Fail(record.error());
      if (!AheadOf(chunk, *record ? &**record : nullptr).empty()) out.push_back(chunk);
      if (out.size() == kMaxChunksPerCall) co_return out;
    }
    if (step.size() < kStep) co_return out;
    after = step.back();
    co_await env_.Sleep(Nanos(0));
  }
}

Result<std::vector<proto::AdoptResponse::Item>> AdoptService::Describe(ChunkId chunk, const record::Chunk* record,
                                                                       const std::vector<Replica>& ahead) const {
  std::string path;
  if (record != nullptr && record->inode() != 0) {
    auto found = names_.PathOf(InodeId(record->inode()));
    if (!found) return Fail(found.error());
    if (*found) path = (*found)->ToString();
  }
  std::vector<proto::AdoptResponse::Item> items;
  for (const Replica& replica : ahead) {
    proto::AdoptResponse::Item& item = items.emplace_back();
    item.set_chunk(chunk.value);
    item.set_path(path);
    item.set_server(replica.server.value);
    item.set_version(replica.version.value);
    item.set_minted(record == nullptr ? 0 : record->minted());
    item.set_length(replica.length);
    item.set_state(replica.state);
  }
  return items;
}

uint32_t AdoptService::EpochAboveMarks() const {
  uint32_t highest = store_.epoch().number;
  for (const auto& [server, mark] : registration_.marks()) {
    if (!PICKET_MUTANT(adopt_above_marks)) highest = std::max(highest, mark.epoch.number);
  }
  return highest + 1;
}

Task<Result<proto::AdoptResponse>> AdoptService::AdoptHistory(proto::AdoptRequest request) {
  proto::AdoptResponse response;
  response.set_history_lost(true);
  if (request.discard() && !request.dry_run()) {
    co_return Fail(Error(Code::kHistoryLost, "nothing is deleted by a master that chunkservers refuse")
                       .WithNextStep("'picket admin adopt' first, then start the master again"));
  }
  auto chunks = co_await FindAhead({request.chunks().begin(), request.chunks().end()});
  if (!chunks) co_return Fail(chunks.error());
  // From here to Stage without a wait: no mark is passed over.
  const uint32_t epoch = EpochAboveMarks();
  response.set_epoch(epoch);
  for (const auto& [server, mark] : registration_.marks()) {
    if (JudgeHistory(store_.activations(), store_.durable_revision(), mark)) continue;
    proto::AdoptResponse::Item* item = response.add_replicas();
    item->set_server(server.value);
    item->set_action("the server has seen epoch " + std::to_string(mark.epoch.number) + " up to revision " +
                     std::to_string(mark.revision) + ": admitted in epoch " + std::to_string(epoch));
  }
  for (ChunkId chunk : *chunks) {
    auto record = chunks_.Get(chunk);
    if (!record) co_return Fail(record.error());
    const record::Chunk* known = *record ? &**record : nullptr;
    auto items = Describe(chunk, known, AheadOf(chunk, known));
    if (!items) co_return Fail(items.error());
    for (auto& item : *items) {
      item.set_action("decided when the master serves again");
      *response.add_replicas() = std::move(item);
    }
  }
  if (!request.dry_run()) {
    Batch batch;
    MetaStore::AdoptAt(&batch, epoch);
    auto committed = co_await store_.Commit(std::move(batch));
    if (!committed) co_return Fail(committed.error());
    PICKET_LOG(env_, kWarning, "by an operator's decision the next start serves in epoch {}, above every mark seen",
               epoch);
  }
  response.set_revision(store_.durable_revision());
  co_return response;
}

Status AdoptService::AdoptChunk(ChunkId chunk, Batch* batch, proto::AdoptResponse* response) {
  auto found = chunks_.Get(chunk);
  if (!found) return Fail(found.error());
  const record::Chunk* record = *found ? &**found : nullptr;
  const std::vector<Replica> ahead = AheadOf(chunk, record);
  if (ahead.empty()) return {};
  auto items = Describe(chunk, record, ahead);
  if (!items) return Fail(items.error());
  const Adoption plan = PlanAdoption(record, ahead, store_.epoch().number);
  for (size_t i = 0; i < ahead.size(); ++i) {
    std::string action = plan.why;
    if (plan.Takes(ahead[i])) {
      action = (plan.record.sealed() ? "adopt at " : "adopt for lease recovery at ") + plan.version.ToString();
    } else if (plan.possible) {
      action = "not adopted: older than the newest; it can be discarded";
    }
    (*items)[i].set_action(std::move(action));
    *response->add_replicas() = std::move((*items)[i]);
  }
  if (!plan.possible || batch == nullptr) return {};
  auto file = names_.Get(InodeId(record->inode()));
  if (!file) return Fail(file.error());
  if (plan.record.sealed()) {
    NoteSealedLength(&file->inode, *record, plan.record.length());
    names_.PutInode(batch, &*file);
  }
  chunks_.Put(batch, chunk, plan.record);
  leases_.Void(chunk);
  TraceChunk(env_, ProtocolEvent::Kind::kVersionCommitted, chunk, plan.record);
  PICKET_LOG(env_, kWarning, "chunk {}: by an operator's decision version {} of another history is taken over, "
             "minted here were {}",
             ToString(chunk), plan.version.ToString(), Version(record->minted()).ToString());
  return {};
}

Task<Status> AdoptService::DiscardChunk(ChunkId chunk, bool dry_run, proto::AdoptResponse* response) {
  auto found = chunks_.Get(chunk);
  if (!found) co_return Fail(found.error());
  const record::Chunk* record = *found ? &**found : nullptr;
  const std::vector<Replica> ahead = AheadOf(chunk, record);
  auto items = Describe(chunk, record, ahead);
  if (!items) co_return Fail(items.error());
  for (size_t i = 0; i < ahead.size(); ++i) {
    auto victim = deletes_.Name(chunk, ahead[i]);
    std::string action = victim ? "quarantine" : "not now: its server is away, or has not reported all its replicas";
    if (victim && !dry_run) {
      auto deleted = co_await deletes_.Delete(*victim);
      if (!deleted) action = "not quarantined: " + deleted.error().ToString();
    }
    (*items)[i].set_action(std::move(action));
    *response->add_replicas() = std::move((*items)[i]);
  }
  co_return Status();
}

Task<Result<proto::AdoptResponse>> AdoptService::Serve(proto::AdoptRequest request) {
  if (!serving_.Check()) {
    auto adopted = co_await AdoptHistory(std::move(request));
    co_return adopted;
  }
  AnswerTable::InFlight guard;
  if (!request.dry_run()) {
    auto admitted = co_await changes_.Admit<proto::AdoptResponse>(request.mutation(), proto::ADOPT);
    if (!admitted) co_return Fail(admitted.error());
    if (admitted->answer) co_return std::move(*admitted->answer);
    guard = std::move(admitted->guard);
  }
  auto chunks = co_await FindAhead({request.chunks().begin(), request.chunks().end()});
  if (!chunks) co_return Fail(chunks.error());
  PICKET_CO_TRY(serving_.Check());
  proto::AdoptResponse response;
  response.set_epoch(store_.epoch().number);
  // Adoptions are planned and staged without a wait in between: what is read is what is changed.
  Batch batch;
  for (ChunkId chunk : *chunks) {
    if (request.discard()) {
      PICKET_CO_TRY(serving_.Check());
      PICKET_CO_TRY(co_await DiscardChunk(chunk, request.dry_run(), &response));
    } else {
      PICKET_CO_TRY(AdoptChunk(chunk, request.dry_run() ? nullptr : &batch, &response));
    }
  }
  if (request.dry_run()) {
    response.set_revision(store_.revision());
    PICKET_CO_TRY(co_await store_.ReadBarrier());
    co_return response;
  }
  auto answer = co_await changes_.Commit(std::move(batch), request.mutation(), proto::ADOPT, std::move(response));
  co_return answer;
}

}  // namespace picket
