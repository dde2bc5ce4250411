// A chunkserver's registration: a mutual HMAC challenge under the cluster secret, then identity, boot and
// the mark of the newest master it has seen (design §7).
//
// 1. Both sides prove the secret before either acts on what the other says.
// 2. A server whose mark this master's history does not explain is refused, and this master stops
//    granting, deleting and creating (F12).
// 3. An older boot of a registered server is refused; a newer one ends the leases of the older (D4).
// Runs on the master's executor.
#pragma once

#include <map>
#include <string>

#include "common/env/env.h"
#include "common/identity/cluster_secret.h"
#include "common/rpc/server.h"
#include "master/history.h"
#include "master/lease_table.h"
#include "master/meta_store.h"
#include "master/server_table.h"
#include "master/serving.h"
#include "master/token_keys.h"
#include "proto/chunkserver_master.pb.h"

namespace picket {

class Registration {
 public:
  Registration(Env& env, MetaStore& store, const ClusterSecret& secret, ServerTable& servers, LeaseTable& leases,
               Serving& serving, const TokenKeys& keys, uint32_t heartbeat_ms)
      : env_(env),
        store_(store),
        secret_(secret),
        servers_(servers),
        leases_(leases),
        serving_(serving),
        keys_(keys),
        heartbeat_ms_(heartbeat_ms) {}

  // Before server->Start.
  void Register(RpcServer* server);

  // kWrongCluster, kUnsupported (protocol), kInvalidArgument.
  Result<proto::RegisterBeginResponse> Begin(const proto::RegisterBeginRequest& request);
  // kPermissionDenied (no proof, or the challenge is not this one's), kHistoryLost, kConflict (older boot).
  Result<proto::RegisterCompleteResponse> Complete(const proto::RegisterCompleteRequest& request);

  // The newest mark of each server that proved the secret, admitted or refused, since this process began.
  const std::map<ServerId, SeenMark>& marks() const { return marks_; }

  // The number of the conversation in chunkserver_master.proto.
  static constexpr uint32_t kProtocol = 1;
  // Challenges given and not yet answered; the oldest goes.
  static constexpr size_t kMaxPending = 1024;

 private:
  Task<Result<proto::RegisterBeginResponse>> ServeBegin(proto::RegisterBeginRequest request);
  Task<Result<proto::RegisterCompleteResponse>> ServeComplete(proto::RegisterCompleteRequest request);

  struct Pending {
    std::string nonce;
    std::string challenge;
    uint64_t order = 0;
  };

  Env& env_;
  MetaStore& store_;
  const ClusterSecret& secret_;
  ServerTable& servers_;
  LeaseTable& leases_;
  Serving& serving_;
  const TokenKeys& keys_;
  const uint32_t heartbeat_ms_;
  std::map<ServerId, Pending> pending_;
  std::map<ServerId, SeenMark> marks_;  // at most ServerTable::kMaxServers
  uint64_t order_ = 0;
};

}  // namespace picket
