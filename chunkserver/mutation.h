// WRITE_PACKET: one packet of the chain (design §3).
//
// 1. Packets of a chunk are judged and applied in the order of arrival: the place in the chunk's queue
//    is drawn when the packet arrives, and everything from fence to apply happens with the lock held.
// 2. The packet is on its way to the next hop before its checksums are verified and it is written here;
//    the lock keeps the order on that wire.
// 3. It is answered when it is applied here (with `sync`: durable here) and the next hop has answered:
//    an answer means applied on every later member.
// 4. The next hop has less time than this server, so that silence is blamed on the right one.
// Runs on the chunkserver's executor.
#pragma once

#include <functional>

#include "chunkserver/acked_announcer.h"
#include "chunkserver/change_log.h"
#include "chunkserver/lease_holder.h"
#include "chunkserver/replica_store.h"
#include "chunkserver/token_verifier.h"
#include "common/rpc/server.h"
#include "proto/data.pb.h"

namespace picket::cs {

class MutationService {
 public:
  MutationService(Env& env, const Self& self, ReplicaStore& store, LeaseHolder& leases, ChannelPool& channels,
                  ChangeLog& changes, AckedAnnouncer& announcer, TokenVerifier& verifier)
      : env_(env),
        self_(self),
        store_(store),
        leases_(leases),
        channels_(channels),
        changes_(changes),
        announcer_(announcer),
        verifier_(verifier) {}

  // For RpcServer::HandleOrdered.
  void OnPacket(RpcRequest request, Responder responder);

  struct Packet {
    proto::WritePacketRequest request;
    Buffer bytes;
    Mono deadline;
    bool own = false;  // made by this server, as primary, in a client's name: a record, padding
    // Told the chunk's length when the packet is applied here, before the lock is released.
    std::function<void(uint64_t length)> applied;
    ChunkId chunk() const { return ChunkId(request.token().chunk()); }
    // The primary's: carries the acknowledged length only, outside the sequence of packets.
    bool announcement() const {
      return request.forwarded() && bytes.empty() && !request.sync() && request.serial() == 0;
    }
  };

  // Steps 1 to 4 for one packet, with the chunk's lock held by `ticket`, which is released when the packet is
  // applied here.
  Task<Result<proto::WritePacketResponse>> Process(ReplicaPtr replica, FifoLock::Ticket ticket, Packet packet);
  // The fence of a packet. Fills the chain of a client's packet from the lease. REQUIRES: the lock.
  Status Judge(const Replica& replica, Packet* packet) const;

  // The chunk's lock is held meanwhile, and the master's orders wait for it.
  static constexpr Nanos kConnectTimeout = 2s;

 private:
  Task<> Run(ReplicaPtr replica, FifoLock::Ticket ticket, Packet packet, Responder responder);
  Task<Result<std::unique_ptr<PendingCall>>> Forward(const Packet* packet, uint64_t acked, proto::Hop next);
  Status VerifyPieces(const Packet& packet) const;
  void Trace(ProtocolEvent::Kind kind, const Packet& packet, uint64_t length, uint64_t value) const;

  Env& env_;
  const Self& self_;
  ReplicaStore& store_;
  LeaseHolder& leases_;
  ChannelPool& channels_;
  ChangeLog& changes_;
  AckedAnnouncer& announcer_;
  TokenVerifier& verifier_;
};

// What the next hop gets of the time that is left here.
inline Nanos NextHopTime(Nanos left) { return left - std::min<Nanos>(left / 5, 500ms); }

}  // namespace picket::cs
