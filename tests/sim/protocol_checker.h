// Watches a cluster's protocol events and fails the run when one breaks an invariant (docs/INVARIANTS.md).
//
//   epoch-order        the epochs of a master's data rise strictly
//   version-reuse      no version of a chunk is minted twice
//   commit-order       committed versions rise, and were minted
//   one-primary        one version has one primary
//   generation-reuse   no generation is minted twice
//   mark-order         a replica's mark never goes back, and is a minted version
//   stale-apply        a mutation is applied at the replica's mark only
//   stale-writer       a mutation bears no generation below one that the replica has been told of
//   recovery-order     each attempt at recovering a file has a generation above those before
//   serial-bytes       equal (chunk, version, serial): equal end and equal bytes on every replica; of the bytes of
//                      a version under which something was overwritten, which are moved into place later, the end
//   ack-members        what is acknowledged is applied on every member of its version
//   acked-lost         acknowledged bytes are in every later committed set and seal, as long as a replica
//                      that had them lives; see Loses
//                      (a truncation takes them away lawfully, and only down to its length)
//   seal-digest        one chunk is sealed once per version, with one length and one digest
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "common/base/ids.h"
#include "common/env/env.h"
#include "tests/sim/world.h"

namespace picket::sim {

class ProtocolChecker {
 public:
  struct Cluster {
    // The last bytes, at most `size`, of a replica's first `end` bytes as they are on the server's disk now.
    std::function<std::string(ServerId, ChunkId, uint64_t end, size_t size)> tail;
    // Up and within reach of the master for long enough that the master must have counted it.
    std::function<bool(ServerId)> lives;
  };
  ProtocolChecker(World& world, Cluster cluster) : world_(world), cluster_(std::move(cluster)) {}

  void OnEvent(const ProtocolEvent& event);
  // The server may have lost what was not durable.
  void OnPowerLoss(ServerId server);
  // The server's disk failed or rotted: none of its replicas counts as having anything any more.
  void OnDamage(ServerId server);

  uint64_t events() const { return events_; }
  uint64_t acknowledged_chunks() const;

 private:
  struct Replica {
    Version mark;
    Generation generation;  // the highest of what raised its mark
    uint64_t length = 0;
    uint64_t durable = 0;
    bool damaged = false;
    std::map<Version, uint64_t> applied;  // furthest byte applied under each version
  };
  struct Applied {
    uint64_t end = 0;
    uint32_t crc = 0;
    ServerId by;
  };
  struct Chunk {
    std::set<Version> minted;
    std::map<Version, uint64_t> committed;  // members
    std::map<Version, ServerId> primary;
    std::map<ServerId, Replica> replicas;
    std::map<std::pair<Version, uint64_t>, Applied> serials;
    std::map<Version, std::pair<uint64_t, uint64_t>> seals;  // length, digest
    std::set<Version> overwritten;                           // under these
    uint64_t acknowledged = 0;
    Version truncated;  // by the last truncation, to truncated_to
    uint64_t truncated_to = 0;
  };

  void Fail(const char* invariant, const ProtocolEvent& event, std::string why);
  void OnMark(const ProtocolEvent& event, Chunk* chunk);
  void OnApplied(const ProtocolEvent& event, Chunk* chunk);
  void OnRecoveryBegun(const ProtocolEvent& event);
  void OnCommitted(const ProtocolEvent& event, Chunk* chunk);
  // `end` bytes of the chunk are acknowledged.
  void OnAcknowledged(const ProtocolEvent& event, Chunk* chunk, uint64_t end);
  void OnSealed(const ProtocolEvent& event, Chunk* chunk);
  // `length` bytes of the chunk are left: is that a loss that nothing excuses?
  void CheckLoss(const ProtocolEvent& event, Chunk* chunk, uint64_t length);

  static constexpr size_t kTail = 64 << 10;

  World& world_;
  const Cluster cluster_;
  uint64_t epoch_ = 0;
  std::set<Generation> generations_;
  std::map<uint64_t, Generation> recoveries_;  // of an inode: the newest that has begun
  std::map<ChunkId, Chunk> chunks_;
  uint64_t events_ = 0;
};

}  // namespace picket::sim
