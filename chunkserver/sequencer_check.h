// CHECK_SEQUENCER at a chunkserver: the signature is verified here, a newer mark here makes it stale, and
// only the master says "valid": a server that cannot ask it says UNAVAILABLE and what it knows.
// Runs on the chunkserver's executor.
#pragma once

#include "chunkserver/replica_store.h"
#include "chunkserver/token_verifier.h"
#include "common/rpc/client.h"
#include "proto/client_master.pb.h"

namespace picket::cs {

class SequencerCheck {
 public:
  SequencerCheck(Env& env, ReplicaStore& store, TokenVerifier& verifier, Channel& master)
      : env_(env), store_(store), verifier_(verifier), master_(master) {}

  // kUnavailable, with the next step.
  Task<Result<proto::CheckSequencerResponse>> Check(proto::CheckSequencerRequest request, Mono deadline);

 private:
  Env& env_;
  ReplicaStore& store_;
  TokenVerifier& verifier_;
  Channel& master_;
};

}  // namespace picket::cs
