#include "chunkserver/acked_announcer.h"

#include "proto/data.pb.h"

namespace picket::cs {

void AckedAnnouncer::Told(ChunkId chunk, uint64_t acked) {
  auto it = streams_.find(chunk);
  if (it == streams_.end()) return;
  it->second.told = std::max(it->second.told, acked);
  it->second.last = env_.Now();
}

void AckedAnnouncer::Acked(ReplicaPtr replica, proto::WriteToken token, uint64_t acked) {
  auto [it, fresh] = streams_.try_emplace(replica->chunk);
  Stream& s = it->second;
  if (!fresh && s.token.version() != token.version()) s.told = 0;
  s.token = std::move(token);
  s.acked = acked;
  s.last = env_.Now();
  if (fresh) Arm(replica->chunk, s.last + kSilence);
}

void AckedAnnouncer::Arm(ChunkId chunk, Mono when) {
  env_.At(when, [this, chunk] { OnTimer(chunk); });
}

void AckedAnnouncer::OnTimer(ChunkId chunk) {
  auto it = streams_.find(chunk);
  if (it == streams_.end()) return;
  const Mono due = it->second.last + kSilence;
  if (due > env_.Now()) return Arm(chunk, due);
  const Stream stream = std::move(it->second);
  streams_.erase(it);
  if (stream.acked <= stream.told) return;
  auto lease = leases_.Held(chunk, Version(stream.token.version()));
  if (!lease) return;
  for (const proto::Hop& hop : lease->others) env_.Spawn(Announce(stream.token, stream.acked, hop));
}

Task<> AckedAnnouncer::Announce(proto::WriteToken token, uint64_t acked, proto::Hop hop) {
  proto::WritePacketRequest request;
  *request.mutable_token() = std::move(token);
  request.set_acked_length(acked);
  request.set_target_incarnation(hop.incarnation());
  request.set_forwarded(true);
  request.set_forward_proof(
      verifier_.Proof(request.token(), ServerId(hop.server()), Incarnation(hop.incarnation())));
  auto channel = channels_.Get(Endpoint(hop.host(), static_cast<uint16_t>(hop.port())));
  (void)co_await channel->Call<proto::WritePacketResponse>(proto::WRITE_PACKET, request, 2s);
}

}  // namespace picket::cs
