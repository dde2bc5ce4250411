// SEAL: every member of the version, at exactly one length, with one digest (D9).
//
// The primary tells the others while it seals its own replica; success is the digest that all agree on.
// Until the master has committed it a seal is provisional (F11); a repeat is answered again.
// Runs on the chunkserver's executor.
#pragma once

#include "chunkserver/change_log.h"
#include "chunkserver/lease_holder.h"
#include "chunkserver/replica_store.h"
#include "chunkserver/token_verifier.h"
#include "common/rpc/client.h"
#include "proto/data.pb.h"

namespace picket::cs {

class SealService {
 public:
  SealService(Env& env, const Self& self, ReplicaStore& store, LeaseHolder& leases, ChannelPool& channels,
              ChangeLog& changes, TokenVerifier& verifier)
      : env_(env),
        self_(self),
        store_(store),
        leases_(leases),
        channels_(channels),
        changes_(changes),
        verifier_(verifier) {}

  Task<Result<proto::SealResponse>> Seal(proto::SealRequest request, Mono deadline);

 private:
  using Answer = Result<proto::SealResponse>;
  // Seals the own replica with the lock held by `ticket`.
  Task<Answer> SealOwn(ReplicaPtr replica, FifoLock::Ticket ticket, proto::SealRequest request, SealStep step);
  Task<Answer> SealOther(proto::SealRequest request, proto::Hop hop, Mono deadline);

  Env& env_;
  const Self& self_;
  ReplicaStore& store_;
  LeaseHolder& leases_;
  ChannelPool& channels_;
  ChangeLog& changes_;
  TokenVerifier& verifier_;
};

}  // namespace picket::cs
