// The master's orders: CREATE_REPLICA, ADVANCE_VERSION, GRANT_LEASE, REVOKE_LEASE, DELETE_REPLICA; and
// DESCRIBE_REPLICA, which orders nothing.
//
// 1. An order of a newer epoch makes that epoch the mark, durably, before anything else is done for it.
// 2. Epoch and marks are judged (again) inside the chunk's critical section.
// 3. An answer is a promise: what it says is durable before it leaves (F5).
// Runs on the chunkserver's executor.
#pragma once

#include "chunkserver/acked_announcer.h"
#include "chunkserver/change_log.h"
#include "chunkserver/lease_holder.h"
#include "chunkserver/order_gate.h"
#include "chunkserver/replica_store.h"
#include "chunkserver/server_state.h"
#include "chunkserver/token_verifier.h"
#include "common/rpc/client.h"
#include "proto/chunkserver_master.pb.h"

namespace picket::cs {

class OrderService {
 public:
  OrderService(Env& env, OrderGate& gate, ServerState& state, ReplicaStore& store, LeaseHolder& leases,
               ChannelPool& channels, ChangeLog& changes, AckedAnnouncer& announcer, const TokenVerifier& keys, std::string dir,
               uint64_t reserve_bytes)
      : env_(env),
        gate_(gate),
        state_(state),
        store_(store),
        leases_(leases),
        channels_(channels),
        changes_(changes),
        announcer_(announcer),
        keys_(keys),
        dir_(std::move(dir)),
        reserve_bytes_(reserve_bytes) {}

  Task<Result<proto::CreateReplicaResponse>> Create(proto::CreateReplicaRequest request, Mono deadline);
  Task<Result<proto::AdvanceVersionResponse>> Advance(proto::AdvanceVersionRequest request, Mono deadline);
  Task<Result<proto::GrantLeaseResponse>> Grant(proto::GrantLeaseRequest request, Mono deadline);
  Task<Result<proto::RevokeLeaseResponse>> Revoke(proto::RevokeLeaseRequest request, Mono deadline);
  Task<Result<proto::DeleteReplicaResponse>> Delete(proto::DeleteReplicaRequest request, Mono deadline);
  Task<Result<proto::DescribeReplicaResponse>> Describe(proto::DescribeReplicaRequest request, Mono deadline);

 private:
  Task<Result<proto::CreateReplicaResponse>> CreateLocked(ReplicaPtr replica, proto::CreateReplicaRequest request);
  Task<Status> Raise(ReplicaPtr replica, proto::AdvanceVersionRequest request, Mono deadline);
  Task<Status> DeleteLocked(ReplicaPtr replica, Retired why);
  void Trace(ProtocolEvent::Kind kind, const Replica& replica, uint64_t length, uint64_t value = 0);
  std::unexpected<Error> Refusal(Error e) const;

  Env& env_;
  OrderGate& gate_;
  ServerState& state_;
  ReplicaStore& store_;
  LeaseHolder& leases_;
  ChannelPool& channels_;
  ChangeLog& changes_;
  AckedAnnouncer& announcer_;
  const TokenVerifier& keys_;
  const std::string dir_;
  const uint64_t reserve_bytes_;
};

}  // namespace picket::cs
