// CLUSTER_REPORT: the servers, and a count of the chunks, of those below their goal, and of replicas ahead of
// this history, made by a walk over the tables in bounded steps. Runs on the master's executor.
#pragma once

#include <string>

#include "common/env/env.h"
#include "common/rpc/server.h"
#include "master/chunk_table.h"
#include "master/chunk_view.h"
#include "master/location_map.h"
#include "master/namespace.h"
#include "master/server_table.h"
#include "master/serving.h"
#include "master/session_table.h"
#include "proto/client_master.pb.h"

namespace picket {

class ClusterReport {
 public:
  ClusterReport(Env& env, MetaStore& store, Namespace& names, SessionTable& sessions, ChunkTable& chunks,
                ChunkView& view, ServerTable& servers, const LocationMap& locations, const Serving& serving, std::string cluster)
      : env_(env),
        started_(env.Now()),
        store_(store),
        names_(names),
        sessions_(sessions),
        chunks_(chunks),
        view_(view),
        servers_(servers),
        locations_(locations),
        serving_(serving),
        cluster_(std::move(cluster)) {}

  // The master's address, known when it listens.
  void SetAddress(const Endpoint& advertised) { address_ = advertised.ToString(); }
  // Before server->Start.
  void Register(RpcServer* server);
  Task<Result<proto::ClusterReportResponse>> Make();

 private:
  // Replicas that this history did not make (D14).
  Task<Result<uint64_t>> CountAhead();
  std::string State(uint64_t ahead) const;

  static constexpr size_t kStep = 500;  // chunks between two turns of the executor

  Env& env_;
  const Mono started_;
  MetaStore& store_;
  Namespace& names_;
  SessionTable& sessions_;
  ChunkTable& chunks_;
  ChunkView& view_;
  ServerTable& servers_;
  const LocationMap& locations_;
  const Serving& serving_;
  const std::string cluster_;
  std::string address_;
};

}  // namespace picket
