#include "master/registration.h"

#include <algorithm>

#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket {

void Registration::Register(RpcServer* server) {
  server->Handle<proto::RegisterBeginRequest, proto::RegisterBeginResponse>(
      proto::REGISTER_BEGIN, [this](auto request, Mono) { return ServeBegin(std::move(request)); });
  server->Handle<proto::RegisterCompleteRequest, proto::RegisterCompleteResponse>(
      proto::REGISTER_COMPLETE, [this](auto request, Mono) { return ServeComplete(std::move(request)); });
}

Task<Result<proto::RegisterBeginResponse>> Registration::ServeBegin(proto::RegisterBeginRequest request) {
  co_return Begin(request);
}

Task<Result<proto::RegisterCompleteResponse>> Registration::ServeComplete(proto::RegisterCompleteRequest request) {
  co_return Complete(request);
}

Result<proto::RegisterBeginResponse> Registration::Begin(const proto::RegisterBeginRequest& request) {
  const ServerId server(request.server());
  if (request.cluster() != secret_.cluster) {
    return Fail(Error(Code::kWrongCluster, "chunkserver " + ToString(server) + " belongs to cluster " +
                                               request.cluster() + ", this master to " + secret_.cluster)
                    .WithNextStep("point the chunkserver at its own master, or give it a directory made by "
                                  "init for this cluster"));
  }
  if (request.protocol() != kProtocol) {
    return Fail(Error(Code::kUnsupported, "chunkserver " + ToString(server) + " speaks protocol " +
                                              std::to_string(request.protocol()) + ", this master " +
                                              std::to_string(kProtocol))
                    .WithNextStep("run the same release of both"));
  }
  if (!server || request.nonce().size() != kNonceBytes) {
    return Fail(Code::kInvalidArgument, "a registration needs a server id and a nonce of " +
                                            std::to_string(kNonceBytes) + " bytes");
  }
  if (pending_.size() >= kMaxPending && !pending_.contains(server)) {
    pending_.erase(std::ranges::min_element(pending_, {}, [](const auto& p) { return p.second.order; }));
  }
  Pending& pending = pending_[server];
  pending = Pending{request.nonce(), env_.RandomBytes(kNonceBytes), ++order_};

  proto::RegisterBeginResponse response;
  response.set_challenge(pending.challenge);
  response.set_proof(MasterProof(secret_, pending.nonce, pending.challenge, server));
  response.mutable_epoch()->set_number(store_.epoch().number);
  response.mutable_epoch()->set_nonce(store_.epoch().nonce);
  return response;
}

Result<proto::RegisterCompleteResponse> Registration::Complete(const proto::RegisterCompleteRequest& request) {
  const ServerId id(request.server());
  const Incarnation incarnation(request.incarnation());
  const auto pending = pending_.find(id);
  if (pending == pending_.end()) {
    return Fail(Error(Code::kPermissionDenied, "chunkserver " + ToString(id) + " answers a challenge that was not given")
                    .WithNextStep("begin the registration again"));
  }
  const Pending challenge = std::move(pending->second);
  pending_.erase(pending);
  if (!VerifyChunkserverProof(secret_, challenge.challenge, challenge.nonce, id, incarnation, request.proof())) {
    return Fail(Error(Code::kPermissionDenied, "chunkserver " + ToString(id) + " does not know the cluster's secret")
                    .WithNextStep("copy the master's cluster secret to the chunkserver"));
  }
  if (!incarnation || request.host().empty() || request.port() == 0 || request.port() > 65535) {
    return Fail(Code::kInvalidArgument, "a registration needs an incarnation and an advertised address");
  }

  SeenMark seen;
  seen.epoch = Epoch{request.mark().epoch().number(), request.mark().epoch().nonce()};
  seen.revision = request.mark().revision();
  if (marks_.contains(id) || marks_.size() < ServerTable::kMaxServers) marks_[id] = seen;
  if (auto ok = JudgeHistory(store_.activations(), store_.durable_revision(), seen); !ok && !PICKET_MUTANT(history)) {
    PICKET_LOG(env_, kError, "chunkserver {} at {}:{}: {}; granting, creating and deleting stop", ToString(id),
               request.host(), request.port(), ok.error().ToString());
    serving_.HistoryLost(ok.error());
    return Fail(ok.error());
  }
  const Server* known = servers_.Find(id);
  if (known != nullptr && incarnation < known->incarnation) {
    return Fail(Error(Code::kConflict, "chunkserver " + ToString(id) + " registers with boot " +
                                           std::to_string(incarnation.value) + ", but boot " +
                                           std::to_string(known->incarnation.value) + " of it has registered")
                    .WithTokens(incarnation.value, known->incarnation.value)
                    .WithNextStep("two processes use copies of one directory: stop the older one"));
  }
  const Endpoint endpoint(request.host(), static_cast<uint16_t>(request.port()));
  // A boot counter is durable before the first registration: two of the same boot are two processes.
  if (known != nullptr && incarnation == known->incarnation && endpoint != known->endpoint &&
      servers_.LivenessOf(*known) == Liveness::kLive) {
    return Fail(Error(Code::kConflict, "chunkserver " + ToString(id) + " registers from " + endpoint.ToString() +
                                           " while the same boot of it lives at " + known->endpoint.ToString())
                    .WithNextStep("two processes use copies of one directory: stop one of them"));
  }
  if (known == nullptr && servers_.full()) {
    return Fail(Code::kUnavailable, "this master has " + std::to_string(ServerTable::kMaxServers) +
                                        " chunkservers, which is its limit");
  }

  Server server;
  server.id = id;
  server.incarnation = incarnation;
  server.endpoint = endpoint;
  server.rack = request.rack();
  server.software = request.software();
  server.epoch_mark = seen.epoch.number;
  server.space = request.space();
  const uint64_t session = servers_.Register(std::move(server)).session;
  leases_.ServerRestarted(id, incarnation);
  PICKET_LOG(env_, kInfo, "chunkserver {} at {}:{} registered: boot {}, rack '{}', {} replicas, {} of {} bytes free",
             ToString(id), request.host(), request.port(), incarnation.value, request.rack(),
             request.space().replica_count(), request.space().free_bytes(), request.space().total_bytes());

  proto::RegisterCompleteResponse response;
  response.mutable_epoch()->set_number(store_.epoch().number);
  response.mutable_epoch()->set_nonce(store_.epoch().nonce);
  response.set_revision(store_.durable_revision());
  response.set_session(session);
  response.set_heartbeat_ms(heartbeat_ms_);
  *response.mutable_keys() = keys_.Ring();
  return response;
}

}  // namespace picket
