#include "master/heartbeat_service.h"

#include "common/base/mutation.h"
#include "common/obs/log.h"
#include "master/consent.h"
#include "master/meta_store.h"

namespace picket {

void HeartbeatService::Register(RpcServer* server) {
  server->Handle<proto::HeartbeatRequest, proto::HeartbeatResponse>(
      proto::HEARTBEAT, [this](auto request, Mono) { return Serve(std::move(request)); });
}

Task<Result<proto::HeartbeatResponse>> HeartbeatService::Serve(proto::HeartbeatRequest request) {
  co_return Beat(request);
}

bool HeartbeatService::MayExtend(const Server& server, ChunkId chunk, Version version) const {
  if (!serving_.Check()) return false;
  auto found = chunks_.Get(chunk);
  if (!found || !*found) return false;
  const record::Chunk& record = **found;
  if (record.inode() == 0 || record.sealed() || record.current() != version.value ||
      record.minted() != version.value) {
    return false;
  }
  for (const record::Member& member : record.members()) {
    if (member.server() == server.id.value) return member.incarnation() == server.incarnation.value;
  }
  return false;
}

void HeartbeatService::Consent(const proto::HeartbeatRequest& request, proto::HeartbeatResponse* response) const {
  // Whose metadata is not the newest knows of no chunk that it is gone (F12).
  if (!serving_.Check()) return;
  for (const auto& offered : request.tombstones()) {
    auto record = chunks_.Get(ChunkId(offered.chunk()));
    if (!record) continue;
    if (MayForgetTombstone(*record ? &**record : nullptr, ChunkId(offered.chunk()), store_.epoch().number)) {
      response->add_forget(offered.chunk());
    }
  }
  for (const auto& offered : request.expired_quarantine()) {
    auto record = chunks_.Get(ChunkId(offered.chunk()));
    if (!record) continue;
    const size_t good = *record ? view_.CountGood(ChunkRow{ChunkId(offered.chunk()), **record}) : 0;
    if (MayLeaveQuarantine(*record ? &**record : nullptr, good)) response->add_purge_quarantine(offered.name());
  }
}

Result<proto::HeartbeatResponse> HeartbeatService::Beat(const proto::HeartbeatRequest& request) {
  const ServerId id(request.server());
  Server* server = servers_.FindSession(id, request.session());
  if (server == nullptr) {
    return Fail(Error(Code::kNotFound, "chunkserver " + ToString(id) + " is not registered with this session")
                    .WithNextStep("register again"));
  }
  const Liveness before = servers_.LivenessOf(*server);
  servers_.Heard(server, request.space());
  server->key_ring = request.key_ring();
  if (before != Liveness::kLive) {
    PICKET_LOG(env_, kWarning, "chunkserver {} is back: it was {}", ToString(id), LivenessName(before));
  }
  proto::HeartbeatResponse response;
  const bool late = request.beat() != 0 && request.beat() <= server->beat && !PICKET_MUTANT(heartbeat_order);
  if (!late) {
    server->beat = request.beat();
    reports_.Changes(*server, request.changed(), request.removed());
    Consent(request, &response);
  }
  for (const auto& wanted : request.extensions()) {
    const ChunkId chunk(wanted.chunk());
    const Version version(wanted.version());
    if (MayExtend(*server, chunk, version) && leases_.Extend(chunk, version, id, server->incarnation)) {
      *response.add_extended() = wanted;
    }
  }
  response.mutable_epoch()->set_number(store_.epoch().number);
  response.mutable_epoch()->set_nonce(store_.epoch().nonce);
  response.set_revision(store_.durable_revision());
  response.set_lease_ms(static_cast<uint32_t>(leases_.period() / 1ms));
  if (server->key_ring != keys_.ring_number()) *response.mutable_keys() = keys_.Ring();
  return response;
}

}  // namespace picket
