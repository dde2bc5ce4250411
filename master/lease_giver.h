// Gives the primary lease of a committed version: the order, and what the writer needs to write.
// Runs on the master's executor.
#pragma once

#include <vector>

#include "common/env/env.h"
#include "master/attempt.h"
#include "master/lease_table.h"
#include "master/orders.h"
#include "master/server_table.h"
#include "master/session_table.h"
#include "master/token_keys.h"
#include "proto/client_master.pb.h"

namespace picket {

class LeaseGiver {
 public:
  LeaseGiver(Env& env, SessionTable& sessions, ServerTable& servers, LeaseTable& leases, Orders& orders,
             Attempts& attempts, const TokenKeys& keys)
      : env_(env),
        sessions_(sessions),
        servers_(servers),
        leases_(leases),
        orders_(orders),
        attempts_(attempts),
        keys_(keys) {}

  // The signed token of the committed `record`.
  proto::WriteToken ToToken(const ChunkWriter& writer, const record::Chunk& record) const;
  // What a writer gets for the committed `record` of its chunk: the token, and the members as a chain, the
  // first being the primary; it goes on from `length`.
  proto::WriteGrant ToGrant(const ChunkWriter& writer, const record::Chunk& record, uint64_t length) const;

  // Orders the first of the chain to be primary of the attempt's version, which is committed; sent again
  // for the same version when lost (D3). `answered`: when its answer for that version was received (F19).
  Task<Status> Give(Attempt attempt, proto::WriteGrant grant, Mono answered);

 private:
  static constexpr Nanos kTimeout = 3s;
  static constexpr int kTries = 2;

  Env& env_;
  SessionTable& sessions_;
  ServerTable& servers_;
  LeaseTable& leases_;
  Orders& orders_;
  Attempts& attempts_;
  const TokenKeys& keys_;
};

}  // namespace picket
