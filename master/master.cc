#include "master/master.h"

#include <bit>
#include <utility>

#include "common/base/check.h"
#include "common/identity/data_dir.h"
#include "common/obs/log.h"
#include "common/rpc/server.h"
#include "master/add_chunk.h"
#include "master/adopt_service.h"
#include "master/answer_table.h"
#include "master/attempt.h"
#include "master/chunk_report.h"
#include "master/chunk_service.h"
#include "master/chunk_table.h"
#include "master/chunk_view.h"
#include "master/cluster_report.h"
#include "master/commit_seal.h"
#include "master/concat.h"
#include "master/delete_orders.h"
#include "master/file_limits.h"
#include "master/file_service.h"
#include "master/garbage_collector.h"
#include "master/grant.h"
#include "master/heartbeat_service.h"
#include "master/lease_giver.h"
#include "master/lease_service.h"
#include "master/lease_table.h"
#include "master/location_map.h"
#include "master/meta_store.h"
#include "master/namespace.h"
#include "master/open_files.h"
#include "master/open_service.h"
#include "master/orders.h"
#include "master/purge_queue.h"
#include "master/quarantine_service.h"
#include "master/reclaimer.h"
#include "master/recovery.h"
#include "master/registration.h"
#include "master/server_table.h"
#include "master/serving.h"
#include "master/session_table.h"
#include "master/stale_collector.h"
#include "master/standing_grant.h"
#include "master/token_keys.h"
#include "master/token_service.h"
#include "master/trash.h"
#include "master/truncate_service.h"

namespace picket {
namespace {

uint32_t Millis(Nanos duration) { return static_cast<uint32_t>(duration / 1ms); }

Granter::Options GrantOptions(const MasterOptions& o) {
  Granter::Options out;
  out.min_write_replicas = o.min_write_replicas;
  out.promises.dead_after = o.dead_after;
  return out;
}

Recoverer::Options RecoveryOptions(const MasterOptions& o) {
  Recoverer::Options out;
  out.rounds.min_write_replicas = o.min_write_replicas;
  out.rounds.dead_after = o.dead_after;
  return out;
}

AddChunk::Options AddChunkOptions(const MasterOptions& o) {
  AddChunk::Options out;
  out.min_write_replicas = o.min_write_replicas;
  return out;
}

std::function<uint32_t()> LiveServers(Env* env, ServerTable* servers) {
  return [env, servers] {
    // No false alarm soon after the start: what each new chunk gets tells.
    const bool complete = env->Now() >= servers->complete_by();
    return complete ? static_cast<uint32_t>(servers->live_count()) : kMaxReplication;
  };
}

FileService::Options FileOptions(const MasterOptions& o, Env* env, ServerTable* servers) {
  FileService::Options out;
  out.default_replication = o.default_replication;
  out.default_chunk_size = o.default_chunk_size;
  out.min_write_replicas = o.min_write_replicas;
  out.live_servers = LiveServers(env, servers);
  return out;
}

OpenService::Options OpenOptions(const MasterOptions& o, Env* env, ServerTable* servers, Recoverer* recoverer,
                                 ChunkView* view, TokenKeys* keys) {
  OpenService::Options out;
  out.recover = [recoverer](Recoverer::Ask ask) { return recoverer->Recover(std::move(ask)); };
  out.describe = [view](const ChunkRow& chunk) { return view->Describe(chunk, false); };
  out.sequencer = [keys](const std::string& path, const SessionTable::Session& session, ClientId holder) {
    return keys->SignSequencer(path, session.inode, session.mode, session.generation, holder);
  };
  out.live_servers = LiveServers(env, servers);
  out.min_write_replicas = o.min_write_replicas;
  out.default_replication = o.default_replication;
  out.default_chunk_size = o.default_chunk_size;
  return out;
}

Status CheckOptions(const MasterOptions& o) {
  if (!std::has_single_bit(o.default_chunk_size)) {
    return Fail(Code::kInvalidArgument,
                "default_chunk_size is " + std::to_string(o.default_chunk_size) + " bytes, not a power of two");
  }
  if (o.heartbeat >= o.suspect_after || o.suspect_after >= o.dead_after) {
    return Fail(Code::kInvalidArgument, "heartbeat, suspect_after and dead_after must rise in this order");
  }
  if (o.lock_delay > std::chrono::milliseconds(SessionTable::kMaxLockDelayMs)) {
    return Fail(Code::kInvalidArgument, "lock_delay must not be above an hour");
  }
  if (o.soft_limit > o.hard_limit) return Fail(Code::kInvalidArgument, "soft_limit must not be above hard_limit");
  return {};
}

}  // namespace

// In the order of construction: what is used stands before its users.
struct Master::Parts {
  Parts(Env& env, const MasterOptions& o, DataDir d, ClusterSecret s)
      : dir(std::move(d)),
        secret(std::move(s)),
        store(env, MetaStore::Options{dir.Path("meta"), o.cache_bytes}),
        answers(env, store),
        names(env, store),
        sessions(env, store, SessionTable::Options{Millis(o.soft_limit), Millis(o.hard_limit), Millis(o.lock_delay)}),
        purge(env, names, sessions),
        chunks(store),
        files(env, names, sessions, purge, chunks),
        trash(env, store, serving, names, purge, Trash::Options{Millis64(o.trash_retention)}),
        reclaimer(env, store, serving, names, sessions, purge, chunks),
        servers(env, ServerTable::Options{o.suspect_after, o.dead_after}),
        leases(env, o.lease),
        keys(env, store, servers, secret, TokenKeys::Options{o.token_key_rotation}),
        orders(env, store, servers, secret.cluster),
        registration(env, store, secret, servers, leases, serving, keys, Millis(o.heartbeat)),
        reports(env, store, chunks, servers, locations),
        view(env, store, servers, locations, leases),
        heartbeats(env, store, chunks, servers, leases, reports, serving, keys, view),
        attempts(env, store, chunks, sessions, orders, serving),
        giver(env, sessions, servers, leases, orders, attempts, keys),
        granter(env, store, chunks, servers, locations, leases, orders, attempts, giver, GrantOptions(o)),
        standing(env, chunks, leases, giver, attempts),
        add_chunk(env, store, answers, names, sessions, chunks, servers, locations, orders, giver, granter, standing,
                  serving, AddChunkOptions(o)),
        commit_seal(env, Changes(store, answers, serving), names, sessions, files, chunks, attempts, servers, locations,
                    leases),
        recoverer(env, store, names, sessions, files, chunks, servers, locations, leases, orders, attempts, view,
                  serving, RecoveryOptions(o)),
        deletes(env, servers, locations, orders),
        garbage(env, store, chunks, servers, locations, leases, deletes, serving,
                GarbageCollector::Options{o.gc_interval, o.gc_settle, o.dead_after}),
        stale(env, store, chunks, sessions, servers, locations, deletes, serving,
              StaleCollector::Options{o.stale_interval, o.stale_settle, o.orphan_grace}),
        file_service(env, store, serving, answers, names, sessions, files, purge, trash, FileOptions(o, &env, &servers)),
        open_service(env, store, Changes(store, answers, serving), names, sessions, files, chunks,
                     OpenOptions(o, &env, &servers, &recoverer, &view, &keys)),
        truncate(env, store, Changes(store, answers, serving), names, sessions, files,
                 [this](Recoverer::Ask ask) { return recoverer.Recover(std::move(ask)); }),
        concat(env, Changes(store, answers, serving), names, sessions, files, purge, chunks),
        chunk_service(store, answers, names, sessions, chunks, view, add_chunk, granter, standing, commit_seal),
        tokens(store, names, sessions, chunks, giver, keys),
        lease_service(env, store, answers, names, sessions, files, recoverer),
        report(env, store, names, sessions, chunks, view, servers, locations, serving, secret.cluster),
        quarantine(Changes(store, answers, serving), store, names, chunks, view, servers, locations, orders),
        adopt(env, Changes(store, answers, serving), store, names, chunks, servers, locations, leases, deletes,
              registration, serving),
        server(env) {}

  static uint64_t Millis64(Nanos duration) { return static_cast<uint64_t>(duration / 1ms); }

  DataDir dir;
  ClusterSecret secret;
  Serving serving;
  // Metadata.
  MetaStore store;
  AnswerTable answers;
  Namespace names;
  SessionTable sessions;
  PurgeQueue purge;
  ChunkTable chunks;
  OpenFiles files;
  Trash trash;
  Reclaimer reclaimer;
  // The cluster.
  ServerTable servers;
  LocationMap locations;
  LeaseTable leases;
  TokenKeys keys;
  Orders orders;
  Registration registration;
  ChunkReports reports;
  ChunkView view;
  HeartbeatService heartbeats;
  Attempts attempts;
  LeaseGiver giver;
  Granter granter;
  StandingGrants standing;
  AddChunk add_chunk;
  CommitSeal commit_seal;
  Recoverer recoverer;
  DeleteOrders deletes;
  GarbageCollector garbage;
  StaleCollector stale;
  // Calls.
  FileService file_service;
  OpenService open_service;
  TruncateService truncate;
  Concat concat;
  ChunkService chunk_service;
  TokenService tokens;
  LeaseService lease_service;
  ClusterReport report;
  QuarantineService quarantine;
  AdoptService adopt;
  RpcServer server;
};

Task<Result<ClusterSecret>> InitMaster(Env* env, std::string dir) {
  ClusterSecret secret = MintClusterSecret(*env);
  std::map<std::string, std::string> files;
  files[std::string(kSecretFile)] = FormatClusterSecret(secret);
  PICKET_CO_TRY(co_await InitDataDir(env, std::move(dir), "master", secret.cluster, ServerId(), std::move(files)));
  co_return secret;
}

Master::Master(Env& env, MasterOptions options) : env_(env), options_(std::move(options)) {}
Master::~Master() = default;

Task<Status> Master::Start() {
  PICKET_CHECK(parts_ == nullptr);
  PICKET_CO_TRY(CheckOptions(options_));
  auto dir = co_await DataDir::Open(&env_, options_.dir, "master");
  if (!dir) co_return Fail(dir.error());
  auto secret = co_await LoadClusterSecret(&env_.fs(), dir->Path(kSecretFile));
  if (!secret) co_return Fail(secret.error());
  if (secret->cluster != dir->identity().cluster) {
    co_return Fail(Error(Code::kWrongCluster, dir->Path(kSecretFile) + " is of cluster " + secret->cluster +
                                                  ", its directory of " + dir->identity().cluster)
                       .WithNextStep("put back the secret that init made for this directory"));
  }
  parts_ = std::make_unique<Parts>(env_, options_, std::move(*dir), std::move(*secret));
  Parts& p = *parts_;
  PICKET_CO_TRY(co_await p.store.Open());
  PICKET_CO_TRY(co_await p.names.Open());
  PICKET_CO_TRY(p.sessions.Load());
  PICKET_CO_TRY(co_await p.keys.Open());
  RegisterHandlers();
  PICKET_CO_TRY(p.server.Start(options_.listen));
  Endpoint advertised = options_.advertise.host.empty() ? options_.listen : options_.advertise;
  if (advertised.port == 0 || options_.advertise.host.empty()) advertised.port = port();
  p.report.SetAddress(advertised);
  env_.Spawn(p.answers.SweepLoop());
  env_.Spawn(p.reclaimer.Run());
  env_.Spawn(p.trash.ExpireLoop());
  env_.Spawn(p.garbage.Run());
  env_.Spawn(p.stale.Run());
  env_.Spawn(p.recoverer.Run());
  env_.Spawn(p.keys.Run());
  PICKET_LOG(env_, kInfo, "the master of cluster {} serves at {} in epoch {}", p.secret.cluster,
             advertised.ToString(), p.store.epoch().number);
  co_return Status();
}

void Master::RegisterHandlers() {
  Parts& p = *parts_;
  p.file_service.Register(&p.server);
  p.open_service.Register(&p.server);
  p.truncate.Register(&p.server);
  p.concat.Register(&p.server);
  p.chunk_service.Register(&p.server);
  p.tokens.Register(&p.server);
  p.lease_service.Register(&p.server);
  p.report.Register(&p.server);
  p.quarantine.Register(&p.server);
  p.adopt.Register(&p.server);
  p.registration.Register(&p.server);
  p.reports.Register(&p.server);
  p.heartbeats.Register(&p.server);
  p.server.Handle<proto::HelloRequest, proto::HelloResponse>(proto::HELLO, [this](auto, Mono) { return Hello(); });
}

Task<Result<proto::HelloResponse>> Master::Hello() {
  proto::HelloResponse response;
  response.set_role("master");
  response.set_software(PICKET_VERSION);
  response.set_cluster(parts_->secret.cluster);
  response.mutable_epoch()->set_number(parts_->store.epoch().number);
  response.mutable_epoch()->set_nonce(parts_->store.epoch().nonce);
  co_return response;
}

void Master::Stop() {
  if (parts_ != nullptr) parts_->server.Stop();
}

uint16_t Master::port() const { return parts_->server.port(); }
const std::string& Master::cluster() const { return parts_->secret.cluster; }

}  // namespace picket
