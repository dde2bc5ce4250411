// The calls about leases that anybody may make: LIST_LEASES, SHOW_LEASE, RECOVER_LEASE (client_master.proto).
//
// A path means the session of the file of that name; when that has none, the pending overwrites that will take
// the name when they are closed.
// Runs on the master's executor.
#pragma once

#include <optional>
#include <vector>

#include "common/rpc/server.h"
#include "master/answer_table.h"
#include "master/namespace.h"
#include "master/open_files.h"
#include "master/recovery.h"
#include "master/session_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class LeaseService {
 public:
  LeaseService(Env& env, MetaStore& store, AnswerTable& answers, Namespace& names, SessionTable& sessions,
               OpenFiles& files, Recoverer& recoverer)
      : env_(env),
        store_(store),
        answers_(answers),
        names_(names),
        sessions_(sessions),
        files_(files),
        recoverer_(recoverer) {}

  // Before server->Start.
  void Register(RpcServer* server);

  static constexpr uint32_t kPage = 200;        // leases in one answer
  static constexpr size_t kScanStep = 256;      // sessions looked at between two yields
  static constexpr size_t kMaxTargets = 16;     // pending overwrites of one name that one call recovers
  static constexpr Nanos kAnswerMargin = 500ms;  // before its deadline a caller is told what is waited for

 private:
  Task<Result<proto::ListLeasesResponse>> List(proto::ListLeasesRequest request, Mono deadline);
  Task<Result<proto::ShowLeaseResponse>> Show(proto::ShowLeaseRequest request, Mono deadline);
  Task<Result<proto::RecoverLeaseResponse>> Recover(proto::RecoverLeaseRequest request, Mono deadline);

  Result<proto::LeaseInfo> Describe(const SessionTable::Session& session) const;
  // Inodes with a session that the path means. `present`: what has the name, if anything.
  Task<Result<std::vector<InodeId>>> Targets(Path path, std::optional<Entry>* present, Mono deadline);
  Task<Status> Pause(Mono deadline, const char* what);

  Env& env_;
  MetaStore& store_;
  AnswerTable& answers_;
  Namespace& names_;
  SessionTable& sessions_;
  OpenFiles& files_;
  Recoverer& recoverer_;
};

}  // namespace picket
