// Takes what a chunkserver says of its replicas, in full (paged, after each registration) or in the
// changes of a heartbeat, into the location map; judges each, and tells the operator what does not fit.
// Nothing is deleted on a report's word: garbage is the garbage collector's, what does not count the stale
// collector's.
// Runs on the master's executor.
#pragma once

#include <array>
#include <map>

#include "common/env/env.h"
#include "common/rpc/server.h"
#include "master/chunk_table.h"
#include "master/location_map.h"
#include "master/replica_judge.h"
#include "master/server_table.h"
#include "proto/chunkserver_master.pb.h"

namespace picket {

class ChunkReports {
 public:
  ChunkReports(Env& env, MetaStore& store, ChunkTable& chunks, ServerTable& servers, LocationMap& locations)
      : env_(env), store_(store), chunks_(chunks), servers_(servers), locations_(locations) {}

  // Before server->Start.
  void Register(RpcServer* server);
  // One page, in order; a page that has been taken may come again. kNotFound: not the session of a
  // registered server; kOutOfOrder: a page is missing.
  Task<Result<proto::ChunkReportResponse>> Page(proto::ChunkReportRequest request);
  // What changed, from a heartbeat. REQUIRES: the server's present session.
  void Changes(const Server& server, const google::protobuf::RepeatedPtrField<proto::ReplicaReport>& changed,
               const google::protobuf::RepeatedField<uint64_t>& removed);

 private:
  // Replicas looked up between two turns of the executor.
  static constexpr int kSlice = 256;
  using Tally = std::array<uint64_t, kWorths>;  // by Worth

  void Take(const Server& server, const proto::ReplicaReport& report, Tally* tally);
  void Summarise(const Server& server, const Tally& tally) const;

  Env& env_;
  MetaStore& store_;
  ChunkTable& chunks_;
  ServerTable& servers_;
  LocationMap& locations_;
  std::map<ServerId, Tally> tallies_;  // of the reports under way
};

}  // namespace picket
