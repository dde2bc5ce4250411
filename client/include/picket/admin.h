// What a cluster says of itself: chunks and replicas, servers, who holds which file, what is in quarantine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace picket::client {

struct ReplicaInfo {
  std::string server;               // id, 16 hex digits
  std::string address;
  std::string rack;
  uint64_t version = 0;
  uint64_t generation = 0;
  uint64_t length = 0;
  std::string state;                // "open", "sealed", "corrupt", …
  bool counted = false;             // one of those that hold the chunk's committed content
  std::string worth;                // as the master judges it; empty: as `counted` says
};
struct ChunkInfo {
  uint64_t id = 0;
  uint64_t index = 0;
  uint64_t version = 0;
  uint64_t minted = 0;
  uint64_t generation = 0;
  uint64_t length = 0;
  bool sealed = false;
  uint32_t digest = 0;
  std::string primary;              // server id; empty: none
  uint32_t lease_left_ms = 0;
  std::string path;                 // of the file; empty for garbage
  std::vector<ReplicaInfo> replicas;
};

struct ServerInfo {
  std::string id;
  std::string address;
  std::string rack;
  std::string state;                // "live", "suspect", "dead"
  std::string software;
  uint64_t incarnation = 0;
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t replica_count = 0;
  uint64_t replica_bytes = 0;
  int64_t last_heartbeat_ms_ago = 0;
  uint32_t epoch_mark = 0;
};
struct ClusterInfo {
  std::string master;               // its address, as it advertises it
  std::string cluster_id;
  uint32_t epoch = 0;
  uint64_t epoch_nonce = 0;
  uint64_t revision = 0;
  std::string software;
  std::string state;
  int64_t uptime_ms = 0;
  uint64_t inode_count = 0;
  uint64_t chunk_count = 0;
  uint64_t open_files = 0;
  uint64_t chunks_under_goal = 0;
  uint64_t chunks_missing = 0;
  uint64_t garbage_chunks = 0;
  std::vector<ServerInfo> servers;
};

// ---- who holds a file ------------------------------------------------------------------------------

struct LeaseHolder {
  std::string client;               // id, 16 hex digits
  std::string writer_id;            // of the logical writer, if it said one
  int64_t renewed_ms_ago = 0;
};
// What a replica's server said in a lease recovery.
struct RecoveryAnswer {
  std::string server;
  std::string state;                // "waiting", "answered", "failed", "gone"
  bool clean = false;
  uint64_t version = 0;
  uint64_t length = 0;
  bool sealed = false;
  uint64_t sealed_generation = 0;
  std::string error;
};
struct LeaseInfo {
  std::string path;                 // of a pending overwrite: the name it will take
  bool pending = false;             // it has no name yet: it takes its own at close
  uint64_t inode = 0;
  std::string mode;                 // "exclusive", "record_append", "shared_lock"
  bool lock = false;
  uint64_t generation = 0;
  std::vector<LeaseHolder> holders;
  uint32_t soft_limit_ms = 0;
  uint32_t hard_limit_ms = 0;
  int64_t soft_left_ms = 0;         // negative: another client may claim the file
  int64_t hard_left_ms = 0;
  uint64_t open_chunk = 0;          // the chunk that is not sealed; 0: none
  // Recovery, while one is under way.
  bool recovering = false;
  uint64_t attempt = 0;
  uint64_t recovery_version = 0;
  uint32_t attempts = 0;
  std::string phase;                // "asking", "waiting", "finishing", "committing"
  std::string reason;               // why it began
  std::string waiting_for;          // empty: nobody
  std::string stalled_holder;       // who held the file before; empty: nobody
  std::vector<RecoveryAnswer> answers;
};

// ---- replicas that are set aside -------------------------------------------------------------------

struct QuarantineEntry {
  std::string name;
  uint64_t chunk = 0;
  uint64_t version = 0;
  uint64_t generation = 0;
  uint64_t bytes = 0;
  int64_t since_ns = 0;
  std::string reason;
  bool last_hope = false;           // its chunk has no counted replica: kept without limit
  std::string path;
  std::string refused;              // why it was not touched; empty: it was
};

// Replicas that this cluster's history did not make: after an older copy of the metadata was started.
struct AdoptItem {
  uint64_t chunk = 0;
  std::string path;
  std::string server;
  uint64_t version = 0;
  uint64_t minted = 0;
  uint64_t length = 0;
  std::string state;
  std::string action;               // what is done with it, or why nothing
};
struct AdoptReport {
  bool history_lost = false;        // the master had stopped
  uint32_t epoch = 0;               // that it serves in now, or would
  std::vector<AdoptItem> replicas;
};

}  // namespace picket::client
