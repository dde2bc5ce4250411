// One registration with the master: mutual proof of the cluster's secret, then the epoch mark, durable
// before the first report (F13), then the full report.
// Runs on the chunkserver's executor.
#pragma once

#include <string>

#include "chunkserver/fence.h"
#include "chunkserver/replica_store.h"
#include "chunkserver/server_state.h"
#include "chunkserver/token_verifier.h"
#include "common/identity/cluster_secret.h"
#include "common/rpc/client.h"
#include "proto/chunkserver_master.pb.h"

namespace picket::cs {

struct MasterSession {
  uint64_t number = 0;
  Nanos heartbeat = 3s;
};

class Registrar {
 public:
  struct Options {
    Endpoint advertise;
    std::string rack;
    std::string dir;             // for its free space
    uint64_t reserve_bytes = 0;  // not offered
  };
  Registrar(Env& env, const Self& self, const ClusterSecret& secret, ServerState& state, ReplicaStore& store,
            Channel& master, TokenVerifier& verifier, Options options)
      : env_(env),
        self_(self),
        secret_(secret),
        state_(state),
        store_(store),
        master_(master),
        verifier_(verifier),
        options_(std::move(options)) {}

  // Registers and reports. WRONG_CLUSTER, PERMISSION_DENIED (a secret differs), HISTORY_LOST, STALE_EPOCH,
  // or what the network says.
  Task<Result<MasterSession>> Register();
  // Every replica, in pages. An order that was judged by an older mark and is still under way is waited for: no
  // delete of an old master takes a replica away that the new one was told of (F13).
  Task<Status> ReportAll(uint64_t session);
  Task<proto::Space> Space();

  static constexpr uint32_t kProtocol = 1;
  static constexpr size_t kPageReplicas = 2000;
  static constexpr Nanos kCallTimeout = 5s;
  static constexpr int kPageAttempts = 3;

 private:
  Env& env_;
  const Self& self_;
  const ClusterSecret& secret_;
  ServerState& state_;
  ReplicaStore& store_;
  Channel& master_;
  TokenVerifier& verifier_;
  const Options options_;
};

}  // namespace picket::cs
