// Tells the other members how much of a chunk is acknowledged when its writer pauses (F16): packets
// carry it while they flow, and after kSilence without one the primary sends an empty packet. A failure
// is nobody's loss: readers at that member see less until the next packet.
// Runs on the chunkserver's executor.
#pragma once

#include <map>

#include "chunkserver/lease_holder.h"
#include "chunkserver/replica_store.h"
#include "chunkserver/token_verifier.h"
#include "common/rpc/client.h"
#include "proto/common.pb.h"

namespace picket::cs {

class AckedAnnouncer {
 public:
  AckedAnnouncer(Env& env, LeaseHolder& leases, ChannelPool& channels, TokenVerifier& verifier)
      : env_(env), leases_(leases), channels_(channels), verifier_(verifier) {}

  // A packet with this acknowledged length is on the wire to the others.
  void Told(ChunkId chunk, uint64_t acked);
  // This much of the chunk is applied on every member.
  void Acked(ReplicaPtr replica, proto::WriteToken token, uint64_t acked);

  static constexpr Nanos kSilence = 100ms;

 private:
  struct Stream {
    proto::WriteToken token;
    uint64_t acked = 0;
    uint64_t told = 0;
    Mono last;  // packet
  };
  void Arm(ChunkId chunk, Mono when);
  void OnTimer(ChunkId chunk);
  Task<> Announce(proto::WriteToken token, uint64_t acked, proto::Hop hop);

  Env& env_;
  LeaseHolder& leases_;
  ChannelPool& channels_;
  TokenVerifier& verifier_;
  std::map<ChunkId, Stream> streams_;  // those with a timer; gone after the first silence
};

}  // namespace picket::cs
