// TRUNCATE: cuts a closed file to a length, as a recovery with a limit (D19).
//
//   one batch: an exclusive session of the requester, in recovery from its birth; inode.truncate_to; the answer
//     → the recovery, which ends at that length (recovery.h)
//
// 1. From that batch on the cut is bound to happen, whatever crashes: recovery goes on by itself, and a repeat
//    of the request awaits its end. So it happens once, also if others write the file in between.
// 2. Whoever holds the file is treated as by OPEN_FILE (session_claim.h).
// Runs on the master's executor.
#pragma once

#include <functional>

#include "common/env/env.h"
#include "common/rpc/server.h"
#include "master/change.h"
#include "master/namespace.h"
#include "master/open_files.h"
#include "master/recovery.h"
#include "master/session_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class TruncateService {
 public:
  using Recover = std::function<Task<Result<Entry>>(Recoverer::Ask)>;
  TruncateService(Env& env, MetaStore& store, Changes changes, Namespace& names, SessionTable& sessions,
                  OpenFiles& files, Recover recover)
      : env_(env),
        store_(store),
        changes_(changes),
        names_(names),
        sessions_(sessions),
        files_(files),
        recover_(std::move(recover)) {}

  // Before server->Start.
  void Register(RpcServer* server);

  // Returns when the file is closed at the new length; the length that it has already is success. kInvalidArgument:
  // longer than the file. kConflict, kLeaseConflict; kWaitingFor at the deadline: the same request waits on.
  Task<Result<proto::TruncateResponse>> Run(proto::TruncateRequest request, Mono deadline);

 private:
  struct Step {
    Batch batch;
    Entry entry;
    std::string recover;  // not empty: the file is recovered first
    bool begun = false;   // else: there is nothing to cut
  };
  Result<Step> Look(const proto::TruncateRequest& request, const Path& path, const SessionTable::Spec& spec);
  // The end of a truncation that is under way, and the status then.
  Task<Result<proto::TruncateResponse>> Ended(proto::TruncateRequest request, proto::TruncateResponse begun,
                                              Mono deadline);

  Env& env_;
  MetaStore& store_;
  const Changes changes_;
  Namespace& names_;
  SessionTable& sessions_;
  OpenFiles& files_;
  const Recover recover_;
};

}  // namespace picket
