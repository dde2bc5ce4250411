// The grant of an open chunk that stands: committed, under a lease that runs, with no attempt under way. It is
// given again where a new version would only fence writers that are in order:
//
// 1. to the other holders of a shared session. All appenders lose a primary at once, and ask one by one; the
//    first one's attempt is the answer to all. They take turns, one file at a time.
// 2. to a repeated request, as it was answered first; but not when a later attempt has raised the marks: a
//    token that every replica refuses is no answer.
// Runs on the master's executor.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/env/env.h"
#include "common/env/sync.h"
#include "master/attempt.h"
#include "master/chunk_table.h"
#include "master/lease_giver.h"
#include "master/lease_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class StandingGrants {
 public:
  StandingGrants(Env& env, ChunkTable& chunks, LeaseTable& leases, LeaseGiver& giver, Attempts& attempts)
      : env_(env), chunks_(chunks), leases_(leases), giver_(giver), attempts_(attempts) {}

  // A place in the line of those who ask for grants of one file; held until the ticket goes. One for each call
  // in progress. kDeadlineExceeded: the turn came too late.
  Task<Result<FifoLock::Ticket>> Turn(InodeId inode, Mono deadline);

  // The grant for this writer, if it is newer than the version `held` and none of `failed` is a member. Its
  // length is acknowledged, and as it was when the version was granted; the chunk has grown since. nullopt: an
  // attempt is needed.
  std::optional<proto::WriteGrant> Find(const ChunkWriter& writer, Version held,
                                        const std::vector<ServerId>& failed) const;

  // A kept answer, while its version is the chunk's newest; else kSuperseded.
  Result<proto::WriteGrant> Repeat(const std::string& kept) const;

 private:
  Env& env_;
  ChunkTable& chunks_;
  LeaseTable& leases_;
  LeaseGiver& giver_;
  Attempts& attempts_;
  std::map<InodeId, FifoLock> turns_;
};

}  // namespace picket
