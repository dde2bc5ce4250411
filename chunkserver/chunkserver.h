// A chunkserver: the composition of everything in this directory over one data directory.
//
// Start-up order is the safety argument: the directory is locked, then the incarnation is raised durably,
// then the replicas are read, and only then is anything served or said to the master.
#pragma once

#include <memory>
#include <string>

#include "common/env/env.h"
#include "common/identity/cluster_secret.h"
#include "proto/chunkserver_master.pb.h"

namespace picket {

struct ChunkserverOptions {
  std::string dir;                  // made by InitChunkserver
  Endpoint listen{"127.0.0.1", 0};  // port 0: any free one
  Endpoint advertise;               // where others reach it; empty host or port 0: as listened on
  Endpoint master{"127.0.0.1", 7400};
  std::string rack = "default";
  uint64_t reserve_bytes = 1 << 30;   // of the disk, not offered to the master
  uint32_t lease_margin_percent = 2;  // of a lease that is not used: clocks drift
  Nanos quarantined_for = 24h;        // deleted replicas wait that long, and for the master's consent
  Nanos purge_every = 10min;
};

// Makes a data directory for a new chunkserver of the secret's cluster, durable on return.
// kAlreadyExists, kNotEmpty, kIoError. Returns the new server's id.
Task<Result<ServerId>> InitChunkserver(Env* env, std::string dir, ClusterSecret secret);

class Chunkserver {
 public:
  Chunkserver(Env& env, ChunkserverOptions options);
  ~Chunkserver();
  Chunkserver(const Chunkserver&) = delete;

  // Success: it serves. Registering with the master goes on by itself from then on.
  Task<Status> Start();
  // Serves nothing any more; what was acknowledged stays as durable as it was.
  void Stop();

  uint16_t port() const;
  ServerId server_id() const;
  Incarnation incarnation() const;
  bool registered() const;  // with a master, at present
  // What a heartbeat's answer brings; for a server that is driven without a master. REQUIRES: started.
  Status LearnKeys(const proto::KeyRing& ring);
  // HMACs computed over tokens and proofs so far.
  uint64_t hmacs() const;

 private:
  struct Parts;
  // Finds, from time to time, what has been in quarantine long enough; heartbeats offer it to the master.
  static Task<> WatchQuarantine(Chunkserver* self);

  Env& env_;
  const ChunkserverOptions options_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace picket
