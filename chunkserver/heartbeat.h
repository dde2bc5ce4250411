// The conversation with the master: register, beat, and begin again whenever that ends, for whatever
// reason and for ever (HDFS-7009). Without a master the server goes on serving what it may.
// Runs on the chunkserver's executor.
#pragma once

#include <string>

#include "chunkserver/change_log.h"
#include "chunkserver/lease_holder.h"
#include "chunkserver/registrar.h"
#include "chunkserver/token_verifier.h"
#include "chunkserver/tombstones.h"
#include "common/env/sync.h"

namespace picket::cs {

class Heartbeat {
 public:
  Heartbeat(Env& env, const Self& self, ServerState& state, ReplicaStore& store, LeaseHolder& leases,
            ChangeLog& changes, Registrar& registrar, Channel& master, TokenVerifier& verifier)
      : env_(env),
        self_(self),
        state_(state),
        store_(store),
        leases_(leases),
        changes_(changes),
        registrar_(registrar),
        master_(master),
        verifier_(verifier),
        tombstones_(env, self, state, store, verifier),
        stopping_(env) {
    verifier_.OnUnknownKey([this] { BeatSoon(); });
  }

  // Until Stop.
  Task<> Run();
  void Stop() {
    stopped_ = true;
    stopping_.NotifyAll();
  }
  bool registered() const { return registered_; }
  // The next beat does not wait for its time, only for kSoonest after the last one.
  void BeatSoon() {
    soon_ = true;
    stopping_.NotifyAll();
  }

  static constexpr size_t kMaxChanges = 5000;  // in one heartbeat
  static constexpr size_t kMaxExpired = 200;   // of quarantine, in one heartbeat
  static constexpr Nanos kSoonest = 200ms;     // between two beats
  static constexpr Nanos kFirstPause = 200ms;
  static constexpr Nanos kLongestPause = 10s;

 private:
  Task<> AwaitBeat(Nanos pause);
  // Beats until the session is lost; says why.
  Task<Error> BeatUntilLost(MasterSession session);
  Task<Result<proto::HeartbeatResponse>> BeatOnce(const MasterSession* session);
  // Says it once for each new reason.
  void Complain(const Error& e);

  Env& env_;
  const Self& self_;
  ServerState& state_;
  ReplicaStore& store_;
  LeaseHolder& leases_;
  ChangeLog& changes_;
  Registrar& registrar_;
  Channel& master_;
  TokenVerifier& verifier_;
  Tombstones tombstones_;
  uint64_t beats_ = 0;  // rises over sessions too
  Signal stopping_;
  bool stopped_ = false;
  bool registered_ = false;
  bool soon_ = false;
  std::string complaint_;
};

}  // namespace picket::cs
