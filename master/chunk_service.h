// The calls about chunks: ADD_CHUNK, GRANT, COMMIT_SEAL (each a duty of its own), GET_FILE and
// DESCRIBE_CHUNK. Runs on the master's executor.
#pragma once

#include "common/env/env.h"
#include "common/rpc/server.h"
#include "master/add_chunk.h"
#include "master/answer_table.h"
#include "master/chunk_table.h"
#include "master/chunk_view.h"
#include "master/commit_seal.h"
#include "master/grant.h"
#include "master/namespace.h"
#include "master/session_table.h"
#include "master/standing_grant.h"
#include "proto/client_master.pb.h"

namespace picket {

class ChunkService {
 public:
  ChunkService(MetaStore& store, AnswerTable& answers, Namespace& names, SessionTable& sessions,
               ChunkTable& chunks, ChunkView& view, AddChunk& add, Granter& granter,
               StandingGrants& standing, CommitSeal& seal)
      : store_(store),
        answers_(answers),
        names_(names),
        sessions_(sessions),
        chunks_(chunks),
        view_(view),
        add_(add),
        granter_(granter),
        standing_(standing),
        seal_(seal) {}

  // Before server->Start.
  void Register(RpcServer* server);

  Task<Result<proto::WriteGrant>> Grant(proto::GrantRequest request, Mono deadline);
  // kNotFound, kIsDirectory. Sees only what is durable.
  Task<Result<proto::GetFileResponse>> GetFile(proto::GetFileRequest request);
  // kNotFound: no such chunk.
  Task<Result<proto::DescribeChunkResponse>> Describe(proto::DescribeChunkRequest request);

  static constexpr uint32_t kChunksPage = 1000;

 private:
  MetaStore& store_;
  AnswerTable& answers_;
  Namespace& names_;
  SessionTable& sessions_;
  ChunkTable& chunks_;
  ChunkView& view_;
  AddChunk& add_;
  Granter& granter_;
  StandingGrants& standing_;
  CommitSeal& seal_;
};

}  // namespace picket
