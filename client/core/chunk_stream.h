// One chunk at one version, as its writer sees it: packets to the primary in serial order, cumulative
// acknowledgements, the seal. A stream that broke stays broken, and the next version gets a new one, unless
// it broke for its token alone: then the same version goes on under a new token (F18).
//
// 1. end() is what was put on the wire, acked() <= end() what every member of the set has applied.
// 2. An acknowledgement of serial n covers all before it: a replica applies n+1 only.
// Runs on one executor. The tasks it spawns keep it alive and end after Stop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "client/core/packet.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/env.h"
#include "common/env/sync.h"
#include "common/rpc/client.h"
#include "proto/client_master.pb.h"
#include "proto/data.pb.h"

namespace picket {

class ChunkStream : public std::enable_shared_from_this<ChunkStream> {
 public:
  static constexpr size_t kWindow = 4;             // packets on the wire
  static constexpr Nanos kConnectTimeout = 5s;
  static constexpr Nanos kPacketTimeout = 15s;
  static constexpr Nanos kSyncTimeout = 40s;       // a packet or seal that waits for disks

  // sync_at_seal: what the writer means to do, for the replicas' disks to begin early.
  // `news` is notified whenever acked, synced or broken changed.
  // REQUIRES: grant.chain is not empty.
  ChunkStream(Env& env, proto::WriteGrant grant, bool sync_at_seal, std::shared_ptr<Signal> news);

  // Connects to the primary; breaks when that fails.
  static Task<> Connect(std::shared_ptr<ChunkStream> self);
  // The packet must begin at end(). With sync: it is acknowledged when all is durable.
  void Send(const Packet& packet, bool sync);
  // Replaces bytes: the packet must end at or below end(). With sync: as Send.
  void Overwrite(const Packet& packet, bool sync);
  // No bytes: all that was sent so far is made durable.
  void SendSync();
  // Seals every member at end(). REQUIRES: nothing in flight. An answer that was lost is asked for once more.
  static Task<Result<proto::SealResponse>> Seal(std::shared_ptr<ChunkStream> self, bool sync);
  // Of an expired stream a weightier cause takes the place of the expiry.
  void Break(Error cause);
  // The same version goes on from what is acknowledged. REQUIRES: expired(), nothing in flight.
  void Renew(proto::WriteToken token);
  // Closes the connection; what is in flight ends and changes nothing any more.
  void Stop();

  const proto::WriteGrant& grant() const { return grant_; }
  ServerId primary() const { return ServerId(grant_.chain(0).server()); }
  Endpoint primary_endpoint() const {
    return Endpoint(grant_.chain(0).host(), static_cast<uint16_t>(grant_.chain(0).port()));
  }
  size_t in_flight() const { return in_flight_; }
  bool room() const { return in_flight_ < kWindow; }
  uint64_t end() const { return end_; }
  uint64_t acked() const { return acked_; }
  uint64_t synced() const { return synced_; }            // durable on every member, by a sync on this stream
  uint64_t sync_asked() const { return sync_asked_; }    // a sync that covers it is on the wire
  // The same by packets: overwrites do not move the end.
  uint64_t serial() const { return serial_; }            // of the last packet sent
  uint64_t acked_serial() const { return acked_serial_; }
  uint64_t synced_serial() const { return synced_serial_; }
  const std::optional<Error>& broken() const { return broken_; }
  // Broken because the primary does not honour the token's key: nothing that was refused so was applied.
  bool expired() const { return broken_ && broken_->code == Code::kTokenExpired; }

 private:
  void Transmit(proto::WritePacketRequest request, Payload payload);
  static Task<> AwaitAnswer(std::shared_ptr<ChunkStream> self, std::unique_ptr<PendingCall> call, uint64_t end,
                            uint64_t serial, bool sync);

  Env& env_;
  proto::WriteGrant grant_;
  const bool sync_at_seal_;
  const std::shared_ptr<Signal> news_;
  std::unique_ptr<Channel> channel_;
  uint64_t serial_ = 0;
  uint64_t acked_serial_ = 0;
  uint64_t synced_serial_ = 0;
  uint64_t end_ = 0;
  uint64_t acked_ = 0;
  uint64_t synced_ = 0;
  uint64_t sync_asked_ = 0;
  size_t in_flight_ = 0;
  std::optional<Error> broken_;
};

}  // namespace picket
