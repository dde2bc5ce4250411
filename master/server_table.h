// The chunkservers that have registered with this master process. Soft state: a new process learns them
// anew from their registrations, within a heartbeat or two.
// Runs on the master's executor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/env/env.h"
#include "common/env/sync.h"
#include "master/placement.h"
#include "proto/chunkserver_master.pb.h"

namespace picket {

enum class Liveness {
  kLive,
  kSuspect,  // silent for suspect_ms: no new replicas
  kDead,     // silent for dead_ms: its replicas count as lost
};
std::string_view LivenessName(Liveness liveness);

struct Server {
  ServerId id;
  Incarnation incarnation;
  uint64_t session = 0;   // of its registration; a new one each time
  Endpoint endpoint;      // as advertised
  std::string rack;
  std::string software;
  uint32_t epoch_mark = 0;  // the newest epoch it has seen, before this registration
  proto::Space space;
  Mono heard;             // last registration, report or heartbeat
  bool reported = false;  // all replicas, in this session
  uint64_t next_page = 0;
  uint32_t recent_creations = 0;
  uint64_t beat = 0;      // the newest heartbeat of this session
  uint64_t key_ring = 0;  // the number of the ring that its last heartbeat named (token_keys.h)
};

class ServerTable {
 public:
  struct Options {
    Nanos suspect_after;
    Nanos dead_after;
    Nanos registration_grace = 10s;
  };
  ServerTable(Env& env, Options options)
      : env_(env), options_(options), complete_by_(env.Now() + options.registration_grace), changed_(env) {}

  // Sets the server's row, with a new session number (never reused within this process).
  Server& Register(Server server);
  // Null: not registered.
  Server* Find(ServerId id);
  const Server* Find(ServerId id) const;
  // The same, only for the session of its present registration.
  Server* FindSession(ServerId id, uint64_t session);
  const std::map<ServerId, Server>& all() const { return servers_; }

  Liveness LivenessOf(const Server& server) const;
  // Not registered counts as dead.
  Liveness LivenessOf(ServerId id) const;
  // Registered, and not dead, with that incarnation.
  bool IsUp(ServerId id, Incarnation incarnation) const;
  size_t live_count() const;
  // Soon after the start servers that live have not registered yet; from then on they count as absent.
  Mono complete_by() const { return complete_by_; }
  // Every server, as placement sees it.
  std::vector<PlacementCandidate> Candidates() const;

  // A heartbeat: it lives; what was created lately counts less.
  void Heard(Server* server, const proto::Space& space);
  void NoteCreation(ServerId id);

  // Somebody registered.
  Signal& changed() { return changed_; }

  static constexpr size_t kMaxServers = 4096;
  bool full() const { return servers_.size() >= kMaxServers; }

 private:
  Env& env_;
  const Options options_;
  const Mono complete_by_;
  std::map<ServerId, Server> servers_;
  uint64_t last_session_ = 0;
  Signal changed_;
};

}  // namespace picket
