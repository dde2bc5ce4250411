#include "chunkserver/quarantine_service.h"

#include "chunkserver/blame.h"
#include "common/obs/log.h"

namespace picket::cs {
namespace {

std::string Reason(const Quarantined& entry) {
  if (!entry.slot) return "its meta file could not be kept: it cannot be restored";
  const std::string state = entry.slot->raised_in || entry.slot->state == ReplicaState::kSealed
                                ? std::string(StateName(entry.slot->state))
                                : std::string(StateName(entry.slot->state)) + ", unclean";
  switch (entry.slot->retired) {
    case Retired::kDeleted:
      return "deleted by order of the master (" + state + ")";
    case Retired::kReplaced:
      return "stale: a newer replica was created (" + state + ")";
    case Retired::kUnknown:
      break;
  }
  return "deleted (" + state + ")";
}

}  // namespace

std::unexpected<Error> QuarantineService::Refusal(Error e) const {
  return Fail(BlameSelf(std::move(e), gate_.self().server));
}

Task<Result<proto::ListQuarantineResponse>> QuarantineService::List(proto::ListQuarantineRequest r, Mono) {
  if (Status admitted = co_await gate_.Admit(r.header()); !admitted) co_return Refusal(admitted.error());
  auto all = co_await store_.quarantine().List();
  if (!all) co_return Refusal(all.error());
  proto::ListQuarantineResponse response;
  for (const Quarantined& entry : *all) {
    proto::QuarantinedReplica* out = response.add_replicas();
    out->set_name(entry.name);
    out->set_chunk(entry.chunk.value);
    out->set_bytes(entry.bytes);
    out->set_reason(Reason(entry));
    if (!entry.slot) continue;
    out->set_version(entry.slot->version.value);
    out->set_generation(entry.slot->generation.value);
    out->set_since_ns(entry.slot->deleted_ns);
  }
  co_return response;
}

Task<Result<proto::RestoreReplicaResponse>> QuarantineService::Restore(proto::RestoreReplicaRequest r, Mono) {
  if (Status admitted = co_await gate_.Admit(r.header()); !admitted) co_return Refusal(admitted.error());
  ChunkId chunk;
  if (!Quarantine::ParseName(r.name(), &chunk)) {
    co_return Refusal(Error(Code::kNotFound, "'" + r.name() + "' is not in quarantine")
                          .WithNextStep("'picket quarantine ls' shows the names"));
  }
  ReplicaPtr replica = store_.FindOrAdd(chunk);
  FifoLock::Ticket ticket = replica->lock().Enqueue();
  co_await ticket.Wait();
  const std::string name = r.name();
  Status restored = co_await RestoreLocked(replica, std::move(r));
  store_.ForgetEmpty(replica);
  if (!restored) co_return Refusal(std::move(restored).error());
  changes_.Changed(chunk);
  proto::RestoreReplicaResponse response;
  *response.mutable_replica() = store_.Report(*replica, gate_.self().incarnation);
  TraceReplica(&env_, gate_.self().server, ProtocolEvent::Kind::kReplicaCreated, *replica, 0);
  PICKET_LOG(env_, kInfo, "chunk {}: restored from quarantine ({}) at version {}, {} bytes, {}", ToString(chunk), name,
             replica->marks().version.ToString(), replica->file->length(), StateName(replica->marks().state));
  co_return response;
}

Task<Status> QuarantineService::RestoreLocked(ReplicaPtr replica, proto::RestoreReplicaRequest r) {
  PICKET_CO_TRY(gate_.Judge(r.header()));
  auto meta = co_await store_.quarantine().ReadMeta(r.name());
  if (!meta) {
    Error e(meta.error().code, r.name() + " cannot be restored: " + meta.error().message);
    co_return Fail(std::move(e).WithNextStep("'picket quarantine ls' shows what can"));
  }
  if (meta->slot.cluster != gate_.self().cluster || meta->slot.chunk != replica->chunk) {
    co_return Fail(Code::kCorrupt, r.name() + ": its meta file is of chunk " + ToString(meta->slot.chunk) +
                                       " in cluster " + meta->slot.cluster);
  }
  const ReplicaState state = meta->slot.state;
  if (state == ReplicaState::kCorrupt || state == ReplicaState::kCreating || state == ReplicaState::kTombstone) {
    co_return Fail(Error(Code::kConflict, r.name() + ": it was " + std::string(StateName(state)) +
                                              " when it was taken away: nothing could be served from it")
                       .WithNextStep("copy its data file by hand if nothing else is left"));
  }
  PICKET_CO_TRY(FenceRestore(replica->marks(), meta->slot.version, meta->slot.generation));
  auto instance = co_await state_.NextInstance();
  if (!instance) co_return Fail(instance.error());
  meta->slot.epoch = gate_.epoch();
  meta->slot.revision = r.header().revision();
  co_return co_await store_.Restore(replica, r.name(), std::move(*meta), *instance);
}

Task<Result<proto::PurgeQuarantineResponse>> QuarantineService::Purge(proto::PurgeQuarantineRequest r, Mono) {
  if (Status admitted = co_await gate_.Admit(r.header()); !admitted) co_return Refusal(admitted.error());
  proto::PurgeQuarantineResponse response;
  for (const std::string& name : r.names()) {
    if (Status judged = gate_.Judge(r.header()); !judged) co_return Refusal(judged.error());
    auto removed = co_await store_.Purge(name);
    if (!removed && removed.error().code == Code::kNotFound) continue;
    if (!removed) co_return Refusal(removed.error());
    response.add_purged(name);
    response.set_bytes(response.bytes() + *removed);
    PICKET_LOG(env_, kInfo, "{} left the quarantine for good, by order", name);
  }
  co_return response;
}

}  // namespace picket::cs
