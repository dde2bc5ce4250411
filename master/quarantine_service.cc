#include "master/quarantine_service.h"

#include <algorithm>
#include <set>

#include "common/obs/log.h"
#include "master/consent.h"

namespace picket {

void QuarantineService::Register(RpcServer* server) {
  server->Handle<proto::QuarantineRequest, proto::QuarantineResponse>(
      proto::QUARANTINE, [this](auto request, Mono) { return Serve(std::move(request)); });
}

Result<Incarnation> QuarantineService::BootOf(ServerId server) const {
  const Server* row = servers_.Find(server);
  if (row != nullptr) return row->incarnation;
  return Fail(Error(Code::kNotFound, "chunkserver " + ToString(server) + " has not registered with this master")
                  .WithNextStep("see them all with 'picket admin report'"));
}

Status QuarantineService::Annotate(proto::QuarantineEntry* entry) const {
  const ChunkId chunk(entry->chunk());
  auto record = chunks_.Get(chunk);
  if (!record) return Fail(record.error());
  if (!*record || (*record)->inode() == 0) return {};
  const InodeId inode((*record)->inode());
  entry->set_last_hope(view_.CountGood(ChunkRow{chunk, std::move(**record)}) == 0);
  auto path = names_.PathOf(inode);
  if (!path) return Fail(path.error());
  if (*path) entry->set_path((*path)->ToString());
  return {};
}

Task<Result<std::vector<proto::QuarantineEntry>>> QuarantineService::List(ServerId server) {
  auto boot = BootOf(server);
  if (!boot) co_return Fail(boot.error());
  auto listed = co_await orders_.Send<proto::ListQuarantineResponse>(
      proto::LIST_QUARANTINE, server, *boot, orders_.NewAttempt(), proto::ListQuarantineRequest(), kOrderTimeout);
  if (!listed) co_return Fail(listed.error());
  std::vector<proto::QuarantineEntry> entries;
  entries.reserve(static_cast<size_t>(listed->replicas_size()));
  for (const proto::QuarantinedReplica& replica : listed->replicas()) {
    proto::QuarantineEntry& entry = entries.emplace_back();
    entry.set_name(replica.name());
    entry.set_chunk(replica.chunk());
    entry.set_version(replica.version());
    entry.set_generation(replica.generation());
    entry.set_bytes(replica.bytes());
    entry.set_since_ns(replica.since_ns());
    entry.set_reason(replica.reason());
    PICKET_CO_TRY(Annotate(&entry));
  }
  co_return entries;
}

Task<Result<proto::QuarantineResponse>> QuarantineService::Serve(proto::QuarantineRequest request) {
  if (request.action() == proto::QuarantineRequest::LIST) {
    auto entries = co_await List(ServerId(request.server()));
    if (!entries) co_return Fail(entries.error());
    proto::QuarantineResponse response;
    for (auto& entry : *entries) *response.add_entries() = std::move(entry);
    response.set_revision(store_.revision());
    PICKET_CO_TRY(co_await store_.ReadBarrier());
    co_return response;
  }
  if (request.action() != proto::QuarantineRequest::RESTORE && request.action() != proto::QuarantineRequest::PURGE) {
    co_return Fail(Code::kInvalidArgument, "a quarantine is listed, or entries of it are restored or purged");
  }
  const bool restore = request.action() == proto::QuarantineRequest::RESTORE;
  if (request.entries_size() > kMaxPerCall || (restore && request.entries_size() == 0)) {
    co_return Fail(Code::kInvalidArgument,
                   "name at most " + std::to_string(kMaxPerCall) + " entries, and at least one to restore");
  }
  auto admitted = co_await changes_.Admit<proto::QuarantineResponse>(request.mutation(), proto::QUARANTINE);
  if (!admitted) co_return Fail(admitted.error());
  if (admitted->answer) co_return std::move(*admitted->answer);
  const proto::MutationId mutation = request.mutation();
  auto acted = co_await Act(std::move(request));
  if (!acted) co_return Fail(acted.error());
  auto answer = co_await changes_.Commit(Batch(), mutation, proto::QUARANTINE, std::move(*acted));
  co_return answer;
}

Task<Result<proto::QuarantineResponse>> QuarantineService::Act(proto::QuarantineRequest request) {
  const ServerId server(request.server());
  const bool restore = request.action() == proto::QuarantineRequest::RESTORE;
  auto listed = co_await List(server);
  if (!listed) co_return Fail(listed.error());
  proto::QuarantineResponse response;
  std::set<std::string> wanted(request.entries().begin(), request.entries().end());
  const bool all = wanted.empty();
  for (auto& entry : *listed) {
    if (wanted.erase(entry.name()) > 0 || all) *response.add_entries() = std::move(entry);
  }
  std::vector<proto::QuarantineEntry*> found;
  for (auto& entry : *response.mutable_entries()) found.push_back(&entry);
  if (restore) {
    co_await Restore(server, found);
  } else {
    PICKET_CO_TRY(co_await Purge(server, found, request.force()));
  }
  for (const std::string& name : wanted) {
    proto::QuarantineEntry* gone = response.add_entries();
    gone->set_name(name);
    if (restore) gone->set_refused("it is not in this quarantine: restored already, or gone");
  }
  co_return response;
}

Task<> QuarantineService::Restore(ServerId server, std::vector<proto::QuarantineEntry*> entries) {
  for (proto::QuarantineEntry* entry : entries) {
    const Server* row = servers_.Find(server);
    const uint64_t session = row == nullptr ? 0 : row->session;
    proto::RestoreReplicaRequest order;
    order.set_name(entry->name());
    auto restored = co_await orders_.Send<proto::RestoreReplicaResponse>(
        proto::RESTORE_REPLICA, server, row == nullptr ? Incarnation() : row->incarnation, orders_.NewAttempt(),
        std::move(order), kOrderTimeout);
    if (!restored) {
      entry->set_refused(restored.error().ToString());
    } else if (servers_.FindSession(server, session) != nullptr) {
      locations_.Update(ChunkId(entry->chunk()), FromReport(server, session, restored->replica()));
    }
  }
}

Task<Status> QuarantineService::Purge(ServerId server, std::vector<proto::QuarantineEntry*> entries, bool force) {
  proto::PurgeQuarantineRequest order;
  for (proto::QuarantineEntry* entry : entries) {
    const ChunkId chunk(entry->chunk());
    auto record = chunks_.Get(chunk);
    if (!record) co_return Fail(record.error());
    const record::Chunk* known = *record ? &**record : nullptr;
    const size_t good = known == nullptr ? 0 : view_.CountGood(ChunkRow{chunk, *known});
    if (force || MayLeaveQuarantine(known, good)) {
      order.add_names(entry->name());
    } else if (good == 0) {
      entry->set_refused("the last hope of its chunk, of which no replica counts; --force purges it all the same");
    } else {
      entry->set_refused("its chunk has " + std::to_string(good) + " replicas that count, fewer than its goal of " +
                         std::to_string(known->replication()) + "; --force purges it all the same");
    }
  }
  if (order.names_size() == 0) co_return Status();
  auto boot = BootOf(server);
  if (!boot) co_return Fail(boot.error());
  auto purged = co_await orders_.Send<proto::PurgeQuarantineResponse>(
      proto::PURGE_QUARANTINE, server, *boot, orders_.NewAttempt(), std::move(order), kOrderTimeout);
  if (!purged) co_return Fail(purged.error());
  co_return Status();
}

}  // namespace picket
