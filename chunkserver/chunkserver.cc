#include "chunkserver/chunkserver.h"

#include "chunkserver/heartbeat.h"
#include "chunkserver/mutation.h"
#include "chunkserver/order_service.h"
#include "chunkserver/quarantine_service.h"
#include "chunkserver/read_service.h"
#include "chunkserver/record_append.h"
#include "chunkserver/recovery_service.h"
#include "chunkserver/seal.h"
#include "chunkserver/sequencer_check.h"
#include "chunkserver/token_verifier.h"
#include "common/identity/data_dir.h"
#include "common/obs/log.h"

namespace picket {
namespace {

constexpr char kRole[] = "chunkserver";
constexpr char kSecretFile[] = "cluster-secret.toml";
constexpr char kStateFile[] = "server_state";

cs::ReplicaStore::Options StoreOptions(const ChunkserverOptions& o, const std::string& cluster) {
  cs::ReplicaStore::Options out;
  out.dir = o.dir;
  out.cluster = cluster;
  out.quarantined_for = o.quarantined_for;
  return out;
}

cs::Registrar::Options RegistrarOptions(const ChunkserverOptions& o) {
  cs::Registrar::Options out;
  out.rack = o.rack;
  out.dir = o.dir;
  out.reserve_bytes = o.reserve_bytes;
  return out;
}

}  // namespace

struct Chunkserver::Parts {
  Parts(Env& e, const ChunkserverOptions& o, DataDir d, ClusterSecret s)
      : env(e),
        dir(std::move(d)),
        secret(std::move(s)),
        state(e),
        store(e, StoreOptions(o, secret.cluster)),
        channels(e),
        leases(e, o.lease_margin_percent),
        verifier(self, secret),
        announcer(e, leases, channels, verifier),
        mutations(e, self, store, leases, channels, changes, announcer, verifier),
        records(e, self, store, leases, changes, mutations),
        seals(e, self, store, leases, channels, changes, verifier),
        reads(e, self, store, changes),
        gate(self, state),
        orders(e, gate, state, store, leases, channels, changes, announcer, verifier, o.dir, o.reserve_bytes),
        quarantine(e, gate, state, store, changes),
        recoveries(e, gate, store, leases, channels, changes),
        master(e, o.master),
        sequencers(e, store, verifier, master),
        stopping(e),
        server(e) {
    self.cluster = secret.cluster;
    self.server = dir.identity().server;
  }

  void Register();
  proto::HelloResponse Hello() const;
  // Known only once the port is.
  void JoinCluster(const ChunkserverOptions& o, Endpoint advertise);

  Env& env;
  const DataDir dir;
  const ClusterSecret secret;
  cs::Self self;
  cs::ServerState state;
  cs::ReplicaStore store;
  cs::ChangeLog changes;
  ChannelPool channels;
  cs::LeaseHolder leases;
  cs::TokenVerifier verifier;
  cs::AckedAnnouncer announcer;
  cs::MutationService mutations;
  cs::RecordAppendService records;
  cs::SealService seals;
  cs::ReadService reads;
  cs::OrderGate gate;
  cs::OrderService orders;
  cs::QuarantineService quarantine;
  cs::RecoveryService recoveries;
  Channel master;
  cs::SequencerCheck sequencers;
  std::unique_ptr<cs::Registrar> registrar;
  std::unique_ptr<cs::Heartbeat> heartbeat;
  Signal stopping;
  bool stopped = false;
  RpcServer server;
};

proto::HelloResponse Chunkserver::Parts::Hello() const {
  proto::HelloResponse r;
  r.set_role(kRole);
  r.set_software(PICKET_VERSION);
  r.set_cluster(self.cluster);
  r.mutable_epoch()->set_number(state.mark().epoch.number);
  r.mutable_epoch()->set_nonce(state.mark().epoch.nonce);
  r.set_server(self.server.value);
  r.set_incarnation(self.incarnation.value);
  return r;
}

void Chunkserver::Parts::Register() {
  server.HandleOrdered(proto::WRITE_PACKET, [this](RpcRequest request, Responder responder) {
    mutations.OnPacket(std::move(request), std::move(responder));
  });
  server.HandleOrdered(proto::APPEND_RECORD, [this](RpcRequest request, Responder responder) {
    records.OnAppend(std::move(request), std::move(responder));
  });
  server.Handle<proto::LookupRecordRequest, proto::LookupRecordResponse>(
      proto::LOOKUP_RECORD,
      [this](auto request, Mono deadline) { return records.Lookup(std::move(request), deadline); });
  server.Handle<proto::SealRequest, proto::SealResponse>(
      proto::SEAL, [this](auto request, Mono deadline) { return seals.Seal(std::move(request), deadline); });
  server.Handle(proto::READ, [this](RpcRequest request) { return reads.Read(std::move(request)); });
  server.Handle(proto::READ_REPLICA, [this](RpcRequest request) { return reads.ReadReplica(std::move(request)); });
  server.Handle<proto::VerifyReplicaRequest, proto::VerifyReplicaResponse>(
      proto::VERIFY_REPLICA,
      [this](auto request, Mono deadline) { return reads.Verify(std::move(request), deadline); });

  server.Handle<proto::CheckSequencerRequest, proto::CheckSequencerResponse>(
      proto::CHECK_SEQUENCER,
      [this](auto request, Mono deadline) { return sequencers.Check(std::move(request), deadline); });

  server.Handle<proto::CreateReplicaRequest, proto::CreateReplicaResponse>(
      proto::CREATE_REPLICA,
      [this](auto request, Mono deadline) { return orders.Create(std::move(request), deadline); });
  server.Handle<proto::AdvanceVersionRequest, proto::AdvanceVersionResponse>(
      proto::ADVANCE_VERSION,
      [this](auto request, Mono deadline) { return orders.Advance(std::move(request), deadline); });
  server.Handle<proto::BeginRecoveryRequest, proto::BeginRecoveryResponse>(
      proto::BEGIN_RECOVERY,
      [this](auto request, Mono deadline) { return recoveries.Begin(std::move(request), deadline); });
  server.Handle<proto::FinishRecoveryRequest, proto::FinishRecoveryResponse>(
      proto::FINISH_RECOVERY,
      [this](auto request, Mono deadline) { return recoveries.Finish(std::move(request), deadline); });
  server.Handle<proto::GrantLeaseRequest, proto::GrantLeaseResponse>(
      proto::GRANT_LEASE, [this](auto request, Mono deadline) { return orders.Grant(std::move(request), deadline); });
  server.Handle<proto::RevokeLeaseRequest, proto::RevokeLeaseResponse>(
      proto::REVOKE_LEASE, [this](auto request, Mono deadline) { return orders.Revoke(std::move(request), deadline); });
  server.Handle<proto::DeleteReplicaRequest, proto::DeleteReplicaResponse>(
      proto::DELETE_REPLICA,
      [this](auto request, Mono deadline) { return orders.Delete(std::move(request), deadline); });
  server.Handle<proto::ListQuarantineRequest, proto::ListQuarantineResponse>(
      proto::LIST_QUARANTINE,
      [this](auto request, Mono deadline) { return quarantine.List(std::move(request), deadline); });
  server.Handle<proto::RestoreReplicaRequest, proto::RestoreReplicaResponse>(
      proto::RESTORE_REPLICA,
      [this](auto request, Mono deadline) { return quarantine.Restore(std::move(request), deadline); });
  server.Handle<proto::PurgeQuarantineRequest, proto::PurgeQuarantineResponse>(
      proto::PURGE_QUARANTINE,
      [this](auto request, Mono deadline) { return quarantine.Purge(std::move(request), deadline); });
  server.Handle<proto::DescribeReplicaRequest, proto::DescribeReplicaResponse>(
      proto::DESCRIBE_REPLICA,
      [this](auto request, Mono deadline) { return orders.Describe(std::move(request), deadline); });
  server.Handle(proto::HELLO, [this](RpcRequest) -> Task<Result<RpcReply>> {
    struct Answer {
      static Task<Result<RpcReply>> Give(proto::HelloResponse hello) {
        co_return RpcReply(hello.SerializeAsString(), Payload());
      }
    };
    return Answer::Give(Hello());
  });
}

void Chunkserver::Parts::JoinCluster(const ChunkserverOptions& o, Endpoint advertise) {
  cs::Registrar::Options options = RegistrarOptions(o);
  options.advertise = std::move(advertise);
  registrar = std::make_unique<cs::Registrar>(env, self, secret, state, store, master, verifier, std::move(options));
  heartbeat = std::make_unique<cs::Heartbeat>(env, self, state, store, leases, changes, *registrar, master, verifier);
  env.Spawn(heartbeat->Run());
}

Chunkserver::Chunkserver(Env& env, ChunkserverOptions options) : env_(env), options_(std::move(options)) {}
Chunkserver::~Chunkserver() = default;

Task<Result<ServerId>> InitChunkserver(Env* env, std::string dir, ClusterSecret secret) {
  ServerId server;
  while (!server) server = ServerId(env->Random());
  std::map<std::string, std::string> files;
  files[kSecretFile] = FormatClusterSecret(secret);
  files[kStateFile] = cs::ServerState::Initial(server);
  PICKET_CO_TRY(co_await InitDataDir(env, dir, kRole, secret.cluster, server, std::move(files)));
  co_return server;
}

Task<Status> Chunkserver::Start() {
  Endpoint advertise = options_.advertise.host.empty() ? options_.listen : options_.advertise;
  if (advertise.host == "0.0.0.0" || advertise.host == "::") {
    co_return Fail(Error(Code::kInvalidArgument, "nobody can connect to " + advertise.host)
                       .WithNextStep("set `advertise` to an address of this machine"));
  }
  auto dir = co_await DataDir::Open(&env_, options_.dir, kRole);
  if (!dir) co_return Fail(std::move(dir).error());
  auto secret = co_await LoadClusterSecret(&env_.fs(), dir->Path(kSecretFile));
  if (!secret) co_return Fail(std::move(secret).error());
  if (secret->cluster != dir->identity().cluster) {
    co_return Fail(Error(Code::kWrongCluster, options_.dir + " belongs to cluster " + dir->identity().cluster +
                                                  ", its secret to cluster " + secret->cluster)
                       .WithNextStep("put the secret of the directory's cluster there"));
  }
  parts_ = std::make_unique<Parts>(env_, options_, std::move(*dir), std::move(*secret));
  Parts& p = *parts_;
  PICKET_CO_TRY(co_await p.state.Open(p.dir.Path(kStateFile), p.self.server));
  p.self.incarnation = p.state.incarnation();
  PICKET_CO_TRY(co_await cs::ReplicaStore::Init(&env_, options_.dir));
  PICKET_CO_TRY(co_await env_.fs().SyncDir(options_.dir));
  PICKET_CO_TRY(co_await p.store.Open(&p.state));
  p.Register();
  PICKET_CO_TRY(p.server.Start(options_.listen));

  if (advertise.port == 0) advertise.port = p.server.port();
  const auto totals = p.store.totals();
  PICKET_LOG(env_, kInfo, "chunkserver {} of cluster {}, boot {}, serves {} replicas ({} bytes) of {} at {}",
             ToString(p.self.server), p.self.cluster, p.self.incarnation.value, totals.replicas, totals.bytes,
             options_.dir, advertise.ToString());
  p.JoinCluster(options_, std::move(advertise));
  env_.Spawn(WatchQuarantine(this));
  co_return Status();
}

void Chunkserver::Stop() {
  if (!parts_) return;
  parts_->stopped = true;
  parts_->server.Stop();
  if (parts_->heartbeat) parts_->heartbeat->Stop();
  parts_->stopping.NotifyAll();
}

Task<> Chunkserver::WatchQuarantine(Chunkserver* self) {
  Parts* p = self->parts_.get();
  while (!p->stopped) {
    if (Status found = co_await p->store.quarantine().FindExpired(); !found) {
      PICKET_LOG(self->env_, kWarning, "{}: the quarantine cannot be looked through: {}", self->options_.dir,
                 found.error().ToString());
    }
    if (p->stopped) co_return;
    (void)co_await p->stopping.WaitFor(self->options_.purge_every);
  }
}

uint16_t Chunkserver::port() const { return parts_ ? parts_->server.port() : 0; }
ServerId Chunkserver::server_id() const { return parts_ ? parts_->self.server : ServerId(); }
Incarnation Chunkserver::incarnation() const { return parts_ ? parts_->self.incarnation : Incarnation(); }
Status Chunkserver::LearnKeys(const proto::KeyRing& ring) { return parts_->verifier.Learn(ring); }
uint64_t Chunkserver::hmacs() const { return parts_ ? parts_->verifier.hmacs() : 0; }
bool Chunkserver::registered() const { return parts_ && parts_->heartbeat && parts_->heartbeat->registered(); }

}  // namespace picket
