// BEGIN_RECOVERY, FINISH_RECOVERY (design §4): a member's part in agreeing on what a stalled writer left.
//
// 1. Begin stops the writer: the lease is dropped and the marks are raised under the chunk's lock, durably,
//    and the answer promises what it reports (F5). A mark below `from` stays as it is (F3).
// 2. Begin changes no byte. What this boot has not received itself is read and verified before it is
//    promised: bytes that came with their checksums, in this boot, were verified on receipt, and reading them
//    again would cost a takeover the reading of a whole chunk.
// 3. Finish fills, cuts and seals at exactly Begin's marks, once (F7), and the slot that says so is written
//    last: a crash before it leaves a replica that is still recovering.
// 4. A replica left `recovering` by an attempt that died takes part in the next one, a recovery or a grant.
// Runs on the chunkserver's executor.
#pragma once

#include "chunkserver/change_log.h"
#include "chunkserver/lease_holder.h"
#include "chunkserver/order_gate.h"
#include "chunkserver/replica_store.h"
#include "common/rpc/client.h"

namespace picket::cs {

class RecoveryService {
 public:
  RecoveryService(Env& env, OrderGate& gate, ReplicaStore& store, LeaseHolder& leases, ChannelPool& channels,
                  ChangeLog& changes)
      : env_(env), gate_(gate), store_(store), leases_(leases), channels_(channels), changes_(changes) {}

  Task<Result<proto::BeginRecoveryResponse>> Begin(proto::BeginRecoveryRequest request, Mono deadline);
  Task<Result<proto::FinishRecoveryResponse>> Finish(proto::FinishRecoveryRequest request, Mono deadline);

 private:
  Task<Status> Raise(ReplicaPtr replica, proto::BeginRecoveryRequest request);
  Task<Status> Complete(ReplicaPtr replica, proto::FinishRecoveryRequest request, Mono deadline);
  Marking MarkingOf(Version version, Generation generation, const proto::OrderHeader& header) const;
  std::unexpected<Error> Refusal(Error e) const;

  Env& env_;
  OrderGate& gate_;
  ReplicaStore& store_;
  LeaseHolder& leases_;
  ChannelPool& channels_;
  ChangeLog& changes_;
};

}  // namespace picket::cs
