// LIST_QUARANTINE, RESTORE_REPLICA, PURGE_QUARANTINE: an operator's wishes, which the master has agreed to.
// Runs on the chunkserver's executor.
#pragma once

#include "chunkserver/change_log.h"
#include "chunkserver/order_gate.h"
#include "chunkserver/replica_store.h"

namespace picket::cs {

class QuarantineService {
 public:
  QuarantineService(Env& env, OrderGate& gate, ServerState& state, ReplicaStore& store, ChangeLog& changes)
      : env_(env), gate_(gate), state_(state), store_(store), changes_(changes) {}

  Task<Result<proto::ListQuarantineResponse>> List(proto::ListQuarantineRequest request, Mono deadline);
  Task<Result<proto::RestoreReplicaResponse>> Restore(proto::RestoreReplicaRequest request, Mono deadline);
  Task<Result<proto::PurgeQuarantineResponse>> Purge(proto::PurgeQuarantineRequest request, Mono deadline);

 private:
  Task<Status> RestoreLocked(ReplicaPtr replica, proto::RestoreReplicaRequest request);
  std::unexpected<Error> Refusal(Error e) const;

  Env& env_;
  OrderGate& gate_;
  ServerState& state_;
  ReplicaStore& store_;
  ChangeLog& changes_;
};

}  // namespace picket::cs
