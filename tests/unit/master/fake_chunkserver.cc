#include "tests/unit/master/fake_chunkserver.h"

#include "common/base/coding.h"
#include "common/base/crc32c.h"
#include "master/grant_plan.h"

namespace picket::test {

std::vector<uint32_t> BlockCrcs(const std::string& bytes) {
  std::vector<uint32_t> crcs;
  for (size_t at = 0; at < bytes.size(); at += kBlockSize) {
    crcs.push_back(Crc32c(std::string_view(bytes).substr(at, kBlockSize)));
  }
  return crcs;
}

uint32_t DigestOf(const std::string& bytes) {
  std::string table;
  for (uint32_t crc : BlockCrcs(bytes)) PutFixed(&table, crc);
  return Crc32c(table);
}

FakeChunkserver::FakeChunkserver(Env& env, FakeFleet* fleet, FakeDisk* disk)
    : env_(env), fleet_(fleet), disk_(disk), server_(env), master_(env, fleet->master) {
  ++disk_->incarnation;
  disk_->leases.clear();
  Handle(proto::CREATE_REPLICA, &FakeChunkserver::Create);
  Handle(proto::ADVANCE_VERSION, &FakeChunkserver::Advance);
  Handle(proto::GRANT_LEASE, &FakeChunkserver::Grant);
  Handle(proto::REVOKE_LEASE, &FakeChunkserver::Revoke);
  Handle(proto::BEGIN_RECOVERY, &FakeChunkserver::BeginRecovery);
  Handle(proto::FINISH_RECOVERY, &FakeChunkserver::FinishRecovery);
  Handle(proto::DELETE_REPLICA, &FakeChunkserver::Delete);
  Handle(proto::LIST_QUARANTINE, &FakeChunkserver::ListQuarantine);
  Handle(proto::RESTORE_REPLICA, &FakeChunkserver::Restore);
  Handle(proto::PURGE_QUARANTINE, &FakeChunkserver::Purge);
  PICKET_CHECK(server_.Start(Endpoint(disk_->host, kPort)).has_value());
  env_.Spawn(Run());
}

template <class Request, class Response>
void FakeChunkserver::Handle(proto::Method method, Result<Response> (FakeChunkserver::*act)(const Request&)) {
  server_.Handle<Request, Response>(method, [this, method, act](Request request, Mono) {
    return Serve<Request, Response>(this, method, std::move(request), act);
  });
}

template <class Request, class Response>
Task<Result<Response>> FakeChunkserver::Serve(FakeChunkserver* self, proto::Method method, Request request,
                                              Result<Response> (FakeChunkserver::*act)(const Request&)) {
  FakeDisk& disk = *self->disk_;
  disk.orders.push_back(method);
  FakeDisk::Rule rule;
  bool ruled = false;
  for (auto it = disk.rules.begin(); it != disk.rules.end(); ++it) {
    if (it->method != method) continue;
    rule = *it;
    ruled = true;
    disk.rules.erase(it);
    break;
  }
  if (ruled && rule.act == FakeDisk::Act::kRefuse) co_return Fail(rule.error);
  if (ruled && rule.act == FakeDisk::Act::kLoseRequest) co_await self->env_.Sleep(24h);
  while (ruled && rule.act == FakeDisk::Act::kHold && !*rule.release) co_await self->env_.Sleep(10ms);
  auto judged = self->Judge(request.header());
  if (!judged) co_return Fail(judged.error());
  auto response = (self->*act)(request);
  if (ruled && rule.act == FakeDisk::Act::kLoseAnswer) co_await self->env_.Sleep(24h);
  co_return response;
}

Status FakeChunkserver::Judge(const proto::OrderHeader& h) {
  if (h.cluster() != fleet_->secret.cluster) return Fail(Code::kWrongCluster, "cluster");
  if (h.server() != disk_->id.value || h.incarnation() != disk_->incarnation) {
    return Fail(Code::kConflict, "meant for another boot");
  }
  if (h.epoch().number() < disk_->mark.epoch().number()) return Fail(Code::kStaleEpoch, "epoch");
  if (h.epoch().number() > disk_->mark.epoch().number()) disk_->mark.Clear();
  *disk_->mark.mutable_epoch() = h.epoch();
  disk_->mark.set_revision(std::max(disk_->mark.revision(), h.revision()));
  return {};
}

Result<proto::CreateReplicaResponse> FakeChunkserver::Create(const proto::CreateReplicaRequest& r) {
  proto::CreateReplicaResponse response;
  response.set_incarnation(disk_->incarnation);
  const auto found = disk_->replicas.find(r.chunk());
  if (found != disk_->replicas.end()) {
    const FakeReplica& present = found->second;
    if (present.version == r.version() && present.attempt == r.header().attempt()) {
      response.set_instance(present.instance);
      return response;
    }
    if (present.version >= r.version()) {
      return Fail(Error(Code::kStaleVersion, "create").WithTokens(r.version(), present.version));
    }
  }
  FakeReplica& replica = disk_->replicas[r.chunk()];
  replica = FakeReplica();
  replica.version = r.version();
  replica.generation = r.generation();
  replica.attempt = r.header().attempt();
  replica.raised_in = disk_->incarnation;
  replica.instance = ++disk_->instances;
  replica.state = r.joiner() ? proto::CREATING : proto::OPEN;
  changed_.insert(r.chunk());
  response.set_instance(replica.instance);
  return response;
}

Result<proto::AdvanceVersionResponse> FakeChunkserver::Advance(const proto::AdvanceVersionRequest& r) {
  const auto found = disk_->replicas.find(r.chunk());
  if (found == disk_->replicas.end()) return Fail(Code::kNotFound, "no replica");
  FakeReplica& replica = found->second;
  const uint64_t before = replica.version;
  if (replica.version != r.to()) {
    if (replica.version < r.from()) {
      return Fail(Error(Code::kReplicaBehind, "advance").WithTokens(r.from(), replica.version));
    }
    if (replica.version > r.from()) {
      return Fail(Error(Code::kStaleVersion, "advance").WithTokens(r.from(), replica.version));
    }
    if (r.has_set()) {
      PICKET_TRY(MakeEqual(r.chunk(), &replica, r.set()));
      replica.state = proto::OPEN;
    }
    if (r.reopen() && (replica.state == proto::SEALED || replica.state == proto::RECOVERING)) replica.state = proto::OPEN;
    replica.sealed_generation = 0;
    replica.version = r.to();
    replica.generation = std::max(replica.generation, r.generation());
    replica.raised_in = disk_->incarnation;
    replica.known_acked = std::min<uint64_t>(replica.known_acked, replica.bytes.size());
    changed_.insert(r.chunk());
  }
  proto::AdvanceVersionResponse response;
  response.set_mark_before(before);
  response.set_version(replica.version);
  response.set_generation(replica.generation);
  response.set_state(replica.state);
  response.set_length(replica.bytes.size());
  for (uint32_t crc : BlockCrcs(replica.bytes)) response.add_block_crcs(crc);
  response.set_known_acked(replica.known_acked);
  response.set_incarnation(disk_->incarnation);
  response.set_instance(replica.instance);
  response.set_overwritten(replica.overwritten);
  return response;
}

Status FakeChunkserver::MakeEqual(uint64_t chunk, FakeReplica* replica, const proto::ReconcileSet& set) {
  const std::vector<uint32_t> wanted(set.block_crcs().begin(), set.block_crcs().end());
  std::string bytes = replica->bytes.substr(0, set.length());
  if (BlockCrcs(bytes) != wanted) {
    FakeDisk* source = fleet_->disks.at(ServerId(set.source().server()));
    const FakeReplica& from = source->replicas.at(chunk);
    if (from.version != set.source_version()) return Fail(Code::kReplicaBehind, "the source");
    bytes = from.bytes.substr(0, set.length());
    if (BlockCrcs(bytes) != wanted) return Fail(Code::kCorrupt, "the source");
  }
  replica->bytes = std::move(bytes);
  return {};
}

Result<proto::BeginRecoveryResponse> FakeChunkserver::BeginRecovery(const proto::BeginRecoveryRequest& r) {
  const auto found = disk_->replicas.find(r.chunk());
  if (found == disk_->replicas.end()) return Fail(Code::kNotFound, "no replica");
  FakeReplica& replica = found->second;
  if (replica.state == proto::CORRUPT) return Fail(Code::kCorrupt, "begin");
  const uint64_t before = replica.version;
  if (replica.version == r.to()) {
    if (replica.generation != r.generation()) return Fail(Code::kStaleGeneration, "begin");
    if (replica.state != proto::RECOVERING && replica.state != proto::SEALED) return Fail(Code::kConflict, "begin");
  } else {
    if (replica.version < r.from() || replica.state == proto::CREATING) {
      return Fail(Error(Code::kReplicaBehind, "begin").WithTokens(r.from(), replica.version));
    }
    if (replica.version > r.to()) return Fail(Error(Code::kStaleVersion, "begin").WithTokens(r.to(), replica.version));
    if (replica.generation > r.generation()) return Fail(Code::kStaleGeneration, "begin");
    if (replica.state == proto::SEALED) replica.sealed_generation = replica.generation;
    if (replica.state == proto::OPEN) replica.sealed_generation = 0;
    disk_->leases.erase({r.chunk(), replica.version});
    replica.version = r.to();
    replica.generation = r.generation();
    replica.raised_in = disk_->incarnation;
    replica.state = proto::RECOVERING;
    changed_.insert(r.chunk());
  }
  const std::string bytes = replica.bytes.substr(0, r.has_limit() ? r.limit() : replica.bytes.size());
  proto::BeginRecoveryResponse response;
  proto::AdvanceVersionResponse& promise = *response.mutable_promise();
  promise.set_mark_before(before);
  promise.set_version(replica.version);
  promise.set_generation(replica.generation);
  promise.set_state(replica.sealed_generation != 0 ? proto::SEALED : proto::OPEN);
  promise.set_length(bytes.size());
  for (uint32_t crc : BlockCrcs(bytes)) promise.add_block_crcs(crc);
  promise.set_known_acked(std::min<uint64_t>(replica.known_acked, bytes.size()));
  promise.set_incarnation(disk_->incarnation);
  promise.set_instance(replica.instance);
  promise.set_overwritten(replica.overwritten);
  response.set_sealed_generation(replica.sealed_generation);
  return response;
}

Result<proto::FinishRecoveryResponse> FakeChunkserver::FinishRecovery(const proto::FinishRecoveryRequest& r) {
  const auto found = disk_->replicas.find(r.chunk());
  if (found == disk_->replicas.end()) return Fail(Code::kNotFound, "no replica");
  FakeReplica& replica = found->second;
  if (replica.version != r.version()) {
    return Fail(Error(replica.version > r.version() ? Code::kStaleVersion : Code::kReplicaBehind, "finish")
                    .WithTokens(r.version(), replica.version));
  }
  if (replica.generation != r.generation()) return Fail(Code::kStaleGeneration, "finish");
  const bool finished = replica.state == proto::SEALED && replica.sealed_generation == r.generation();
  if (finished && (replica.bytes.size() != r.set().length() || DigestOf(replica.bytes) != r.digest())) {
    return Fail(Code::kConflict, "finished otherwise");
  }
  if (!finished) {
    if (replica.state != proto::RECOVERING) return Fail(Code::kConflict, "finish");
    if (replica.known_acked > r.set().length() && !r.truncation()) return Fail(Code::kIntegrity, "finish");
    PICKET_TRY(MakeEqual(r.chunk(), &replica, r.set()));
    if (DigestOf(replica.bytes) != r.digest()) return Fail(Code::kInvalidArgument, "finish: the digest");
    replica.known_acked = std::min<uint64_t>(replica.known_acked, replica.bytes.size());
    replica.state = proto::SEALED;
    replica.sealed_generation = r.generation();
    replica.overwritten = false;
    changed_.insert(r.chunk());
  }
  proto::FinishRecoveryResponse response;
  response.set_instance(replica.instance);
  response.set_incarnation(disk_->incarnation);
  return response;
}

Result<proto::GrantLeaseResponse> FakeChunkserver::Grant(const proto::GrantLeaseRequest& r) {
  const auto found = disk_->replicas.find(r.chunk());
  if (found == disk_->replicas.end()) return Fail(Code::kNotFound, "no replica");
  if (r.version() != found->second.version) return Fail(Code::kStaleVersion, "lease");
  if (found->second.raised_in != disk_->incarnation) return Fail(Code::kReplicaUnclean, "lease");
  disk_->leases.insert({r.chunk(), r.version()});
  return proto::GrantLeaseResponse();
}

Result<proto::RevokeLeaseResponse> FakeChunkserver::Revoke(const proto::RevokeLeaseRequest& r) {
  disk_->leases.erase({r.chunk(), r.version()});
  return proto::RevokeLeaseResponse();
}

Result<proto::DeleteReplicaResponse> FakeChunkserver::Delete(const proto::DeleteReplicaRequest& r) {
  const auto found = disk_->replicas.find(r.chunk());
  if (found == disk_->replicas.end()) return proto::DeleteReplicaResponse();
  if (found->second.version != r.version()) {
    return Fail(Error(Code::kStaleVersion, "delete").WithTokens(r.version(), found->second.version));
  }
  if (found->second.instance != r.instance()) return Fail(Code::kConflict, "another instance");
  disk_->tombstones[r.chunk()] = r.version();
  disk_->quarantine[ToHex(r.chunk()) + "." + ToHex(r.instance())] = {r.chunk(), found->second};
  disk_->replicas.erase(found);
  return proto::DeleteReplicaResponse();
}

Result<proto::ListQuarantineResponse> FakeChunkserver::ListQuarantine(const proto::ListQuarantineRequest&) {
  proto::ListQuarantineResponse response;
  for (const auto& [name, entry] : disk_->quarantine) {
    proto::QuarantinedReplica* out = response.add_replicas();
    out->set_name(name);
    out->set_chunk(entry.chunk);
    out->set_version(entry.replica.version);
    out->set_generation(entry.replica.generation);
    out->set_bytes(entry.replica.bytes.size());
  }
  return response;
}

Result<proto::RestoreReplicaResponse> FakeChunkserver::Restore(const proto::RestoreReplicaRequest& r) {
  const auto found = disk_->quarantine.find(r.name());
  if (found == disk_->quarantine.end()) return Fail(Code::kNotFound, "not in quarantine");
  const uint64_t chunk = found->second.chunk;
  if (disk_->replicas.contains(chunk)) return Fail(Code::kAlreadyExists, "a replica is there");
  FakeReplica& replica = disk_->replicas[chunk] = found->second.replica;
  replica.instance = ++disk_->instances;
  disk_->quarantine.erase(found);
  changed_.insert(chunk);
  proto::RestoreReplicaResponse response;
  *response.mutable_replica() = ReportOf(chunk);
  return response;
}

Result<proto::PurgeQuarantineResponse> FakeChunkserver::Purge(const proto::PurgeQuarantineRequest& r) {
  proto::PurgeQuarantineResponse response;
  for (const std::string& name : r.names()) {
    if (disk_->quarantine.erase(name) > 0) response.add_purged(name);
  }
  return response;
}

proto::ReplicaReport FakeChunkserver::ReportOf(uint64_t chunk) const {
  const FakeReplica& replica = disk_->replicas.at(chunk);
  proto::ReplicaReport report;
  report.set_chunk(chunk);
  report.set_version(replica.version);
  report.set_generation(replica.generation);
  report.set_state(replica.state);
  report.set_length(replica.bytes.size());
  report.set_digest(replica.state == proto::SEALED ? DigestOf(replica.bytes) : 0);
  report.set_instance(replica.instance);
  report.set_clean(replica.raised_in == disk_->incarnation);
  return report;
}

Task<Result<proto::RegisterCompleteResponse>> FakeChunkserver::Register() {
  proto::RegisterBeginRequest begin;
  begin.set_cluster(fleet_->secret.cluster);
  begin.set_server(disk_->id.value);
  begin.set_nonce(env_.RandomBytes(kNonceBytes));
  begin.set_protocol(1);
  auto challenge = co_await master_.Call<proto::RegisterBeginResponse>(proto::REGISTER_BEGIN, begin, 5s);
  if (!challenge) co_return Fail(challenge.error());
  if (!VerifyMasterProof(fleet_->secret, begin.nonce(), challenge->challenge(), disk_->id, challenge->proof())) {
    co_return Fail(Code::kPermissionDenied, "the master does not prove the secret");
  }
  const Incarnation incarnation(disk_->incarnation);
  proto::RegisterCompleteRequest request;
  request.set_server(disk_->id.value);
  request.set_incarnation(incarnation.value);
  request.set_proof(ChunkserverProof(fleet_->secret, challenge->challenge(), begin.nonce(), disk_->id, incarnation));
  request.set_host(disk_->host);
  request.set_port(kPort);
  request.set_rack(disk_->rack);
  *request.mutable_mark() = disk_->mark;
  request.mutable_space()->set_total_bytes(uint64_t{1} << 40);
  request.mutable_space()->set_free_bytes(disk_->free_bytes);
  auto done = co_await master_.Call<proto::RegisterCompleteResponse>(proto::REGISTER_COMPLETE, request, 5s);
  if (!done) co_return Fail(done.error());
  session_ = done->session();
  *disk_->mark.mutable_epoch() = done->epoch();
  disk_->mark.set_revision(done->revision());
  disk_->ring = done->keys();
  co_return done;
}

Task<Status> FakeChunkserver::Report() {
  proto::ChunkReportRequest request;
  request.set_server(disk_->id.value);
  request.set_session(session_);
  request.set_last(true);
  for (const auto& [chunk, replica] : disk_->replicas) *request.add_replicas() = ReportOf(chunk);
  changed_.clear();
  auto done = co_await master_.Call<proto::ChunkReportResponse>(proto::CHUNK_REPORT, request, 5s);
  if (!done) co_return Fail(done.error());
  co_return Status();
}

Task<Status> FakeChunkserver::Beat() {
  proto::HeartbeatRequest request;
  request.set_server(disk_->id.value);
  request.set_session(session_);
  request.mutable_space()->set_total_bytes(uint64_t{1} << 40);
  request.mutable_space()->set_free_bytes(disk_->free_bytes);
  for (uint64_t chunk : changed_) {
    if (disk_->replicas.contains(chunk)) *request.add_changed() = ReportOf(chunk);
  }
  changed_.clear();
  for (const auto& [chunk, version] : disk_->leases) {
    if (!disk_->extend_leases) break;
    auto* extension = request.add_extensions();
    extension->set_chunk(chunk);
    extension->set_version(version);
  }
  request.set_key_ring(disk_->ring.number());
  auto done = co_await master_.Call<proto::HeartbeatResponse>(proto::HEARTBEAT, request, 5s);
  if (!done) co_return Fail(done.error());
  if (done->has_keys() && !disk_->deaf_to_keys) disk_->ring = done->keys();
  co_return Status();
}

Task<> FakeChunkserver::Run() {
  for (;;) {
    auto registered = co_await Register();
    Status going;
    if (!registered) going = Fail(registered.error());
    if (registered && disk_->report) going = co_await Report();
    while (going) {
      co_await env_.Sleep(3s);
      going = co_await Beat();
    }
    co_await env_.Sleep(500ms);
  }
}

}  // namespace picket::test
