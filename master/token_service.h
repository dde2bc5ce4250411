// The calls about tokens: REFRESH_TOKEN, a write token anew under the present key (F18), and
// CHECK_SEQUENCER, whether a sequencer is still the newest word on its file (Chubby §2.4).
// Runs on the master's executor.
#pragma once

#include "common/env/env.h"
#include "common/rpc/server.h"
#include "master/chunk_table.h"
#include "master/lease_giver.h"
#include "master/meta_store.h"
#include "master/namespace.h"
#include "master/session_table.h"
#include "master/token_keys.h"
#include "proto/client_master.pb.h"

namespace picket {

class TokenService {
 public:
  TokenService(MetaStore& store, Namespace& names, SessionTable& sessions, ChunkTable& chunks, const LeaseGiver& giver,
               const TokenKeys& keys)
      : store_(store), names_(names), sessions_(sessions), chunks_(chunks), giver_(giver), keys_(keys) {}

  // Before server->Start.
  void Register(RpcServer* server);

  // The same version, for the writer that has it: no set changes and no number is minted. What CheckWriter
  // refuses; kNotFound; kStaleVersion: ask for a grant.
  Task<Result<proto::RefreshTokenResponse>> Refresh(proto::RefreshTokenRequest request);
  // Authoritative, from what is durable. Every text has a verdict.
  Task<Result<proto::CheckSequencerResponse>> CheckSequencer(proto::CheckSequencerRequest request);

 private:
  Result<proto::WriteToken> Judge(const proto::RefreshTokenRequest& request) const;
  Result<proto::CheckSequencerResponse> Judge(const std::string& text) const;

  MetaStore& store_;
  Namespace& names_;
  SessionTable& sessions_;
  ChunkTable& chunks_;
  const LeaseGiver& giver_;
  const TokenKeys& keys_;
};

}  // namespace picket
