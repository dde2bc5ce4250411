// The keys that sign client tokens: minted here, kept sealed under the cluster secret, handed to every
// chunkserver with its registration and heartbeats (design §1, F18).
//
// 1. A key is durable before it signs. Ids are epoch << 32 | n: the synced epoch row reserves them.
// 2. A new epoch goes on with the old keys and adds one, unless one waits already; a restart withdraws none:
//    marks fence, not keys.
// 3. A new key signs only when every server that is not dead has named, in a heartbeat, a ring with it.
// 4. A key is retired, and gone from the ring, two rotations after its last use for signing. A rotation
//    that finds a key still waiting (3) is put off.
// Runs on the master's executor.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/env/env.h"
#include "common/identity/cluster_secret.h"
#include "common/identity/token_signer.h"
#include "master/meta_store.h"
#include "master/server_table.h"
#include "proto/chunkserver_master.pb.h"
#include "proto/client_master.pb.h"

namespace picket {

class TokenKeys {
 public:
  struct Options {
    Nanos rotation = 8h;
  };
  TokenKeys(Env& env, MetaStore& store, ServerTable& servers, const ClusterSecret& secret, Options options)
      : env_(env), store_(store), servers_(servers), secret_(secret), options_(options) {}

  // After MetaStore::Open: reads the keys and makes what this epoch adds durable. kCorrupt: a key does not
  // open with this secret.
  Task<Status> Open();
  // Rotates, and moves on to a new key, as long as the store takes changes. REQUIRES: Open.
  Task<> Run();
  // One look: signs with the newest key once all have it; rotates when that is due. Durable on return.
  Task<Status> Step();

  // Sets key and signature.
  void Sign(proto::WriteToken* token) const;
  // The proof of holding `path` (of a lock): cluster, key and signature set.
  proto::Sequencer SignSequencer(std::string path, InodeId inode, proto::SessionMode mode, Generation generation,
                                 ClientId holder) const;
  // kTokenExpired, kTokenForged, kWrongCluster.
  Status Check(const proto::Sequencer& sequencer) const;

  // Every key that is honoured, sealed; `number` names this ring.
  proto::KeyRing Ring() const;
  uint64_t ring_number() const { return ring_.number; }
  uint64_t signing_key() const { return signing_; }
  const std::string& cluster() const { return secret_.cluster; }

  static constexpr Nanos kLook = 1s;         // between two looks
  static constexpr size_t kMaxKeys = 64;     // beyond, none is added until some are retired
  static constexpr uint32_t kRotations = 2;  // after its last use a key is honoured that long

 private:
  struct Key {
    record::TokenKey row;
    uint64_t since_ring = 0;  // the first ring of this process that has it
  };
  // Into the batch and, as the newest, into memory.
  void Mint(Batch* batch);
  void Rotate(Batch* batch);
  void Retire(Batch* batch, uint64_t id);
  void SignWith(Batch* batch, uint64_t id);
  uint64_t newest() const { return keys_.rbegin()->first; }
  bool waiting() const { return newest() != signing_; }
  bool EveryServerHas(const Key& key) const;

  Env& env_;
  MetaStore& store_;
  ServerTable& servers_;
  const ClusterSecret& secret_;
  const Options options_;
  std::map<uint64_t, Key> keys_;
  TokenKeyRing ring_;  // the same in the clear
  uint64_t signing_ = 0;
  uint32_t last_id_ = 0;  // of this epoch
  Mono rotated_;
};

}  // namespace picket
