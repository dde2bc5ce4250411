// The master: the composition of its tables and duties over one Env. Used by the program and, unchanged, by
// the simulator. Everything runs on the one executor, which owns all tables.
#pragma once

#include <memory>
#include <string>

#include "common/env/env.h"
#include "common/identity/cluster_secret.h"
#include "proto/rpc.pb.h"

namespace picket {

struct MasterOptions {
  std::string dir;                       // made by InitMaster
  Endpoint listen{"127.0.0.1", 7400};
  Endpoint advertise;                    // where others reach it; empty host or port 0: as listened on
  uint64_t cache_bytes = 256 << 20;      // of metadata, in memory

  Nanos lease = 60s;                     // primary leases
  Nanos heartbeat = 3s;                  // asked of chunkservers
  Nanos suspect_after = 15s;             // of silence: no new replicas
  Nanos dead_after = 60s;                // of silence: its replicas count as lost
  Nanos soft_limit = 60s;                // write sessions: another client may claim the file after it
  Nanos hard_limit = 20min;              // the master recovers the file by itself after it
  Nanos lock_delay = 60s;                // after a lock was not released: nobody gets it
  Nanos trash_retention = 72h;
  Nanos token_key_rotation = 8h;         // of the keys that sign client tokens

  uint32_t default_replication = 3;
  uint32_t min_write_replicas = 2;       // of files with a higher goal; a write goes on with that many
  uint64_t default_chunk_size = 64 << 20;

  Nanos gc_interval = 2s;
  Nanos stale_interval = 10s;            // between two looks for replicas that count for nothing
  Nanos stale_settle = 60s;              // they are left alone at least that long
  Nanos orphan_grace = 1h;               // and those of unknown chunks that long
  Nanos gc_settle = 20s;                 // deleted chunks keep their record at least that long
};

inline constexpr uint16_t kMasterPort = 7400;
// In the master's directory; chunkservers need a copy of it at their init.
inline constexpr std::string_view kSecretFile = "cluster.secret";

// Makes `dir` a master's: mints the cluster's id and secret. Durable on return. kAlreadyExists, kNotEmpty.
Task<Result<ClusterSecret>> InitMaster(Env* env, std::string dir);

class Master {
 public:
  Master(Env& env, MasterOptions options);
  ~Master();

  // Opens the directory, activates a new epoch (durable before the first answer) and serves. Not again
  // after an error.
  Task<Status> Start();
  // Ends every connection; what is answered by then is durable.
  void Stop();
  uint16_t port() const;
  const std::string& cluster() const;

 private:
  struct Parts;
  Task<Result<proto::HelloResponse>> Hello();
  void RegisterHandlers();

  Env& env_;
  const MasterOptions options_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace picket
