#include "chunkserver/mutation.h"

#include "chunkserver/blame.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket::cs {

void MutationService::OnPacket(RpcRequest request, Responder responder) {
  Packet packet;
  if (!packet.request.ParseFromString(request.body)) {
    Error e(Code::kInvalidArgument, "the packet's header does not parse");
    return responder.Reply(Result<RpcReply>(Fail(BlameSelf(std::move(e), self_.server))));
  }
  packet.bytes = request.payload.buffer();
  packet.deadline = request.deadline;
  ReplicaPtr replica = store_.Find(packet.chunk());
  if (!replica) {
    // The fence's answer for a chunk without a replica.
    Marks none;
    none.chunk = packet.chunk();
    Error e = FenceMutation(none, self_, MutationTokens()).error();
    return responder.Reply(Result<RpcReply>(Fail(BlameSelf(std::move(e), self_.server))));
  }
  FifoLock::Ticket ticket = replica->lock().Enqueue();
  env_.Spawn(Run(std::move(replica), std::move(ticket), std::move(packet), std::move(responder)));
}

Task<> MutationService::Run(ReplicaPtr replica, FifoLock::Ticket ticket, Packet packet, Responder responder) {
  co_await ticket.Wait();
  auto result = co_await Process(std::move(replica), std::move(ticket), std::move(packet));
  responder.Reply(result);
}

Status MutationService::Judge(const Replica& replica, Packet* packet) const {
  proto::WritePacketRequest& r = packet->request;
  const Marks marks = replica.marks();
  MutationTokens tokens;
  tokens.version = Version(r.token().version());
  tokens.generation = Generation(r.token().generation());
  tokens.target = Incarnation(r.target_incarnation());
  PICKET_TRY(r.forwarded() ? verifier_.VerifyForwarded(r.token(), tokens.target, r.forward_proof())
                           : verifier_.Verify(r.token()));
  PICKET_TRY(FenceMutation(marks, self_, tokens));
  if (!r.forwarded()) {
    auto lease = leases_.Held(packet->chunk(), tokens.version);
    if (!lease && !PICKET_MUTANT(primary_lease)) {
      return Fail(Error(Code::kNotPrimary, "chunk " + ToString(packet->chunk()) +
                                               ": this server holds no primary "
                                               "lease for version " +
                                               tokens.version.ToString())
                      .WithTokens(tokens.version.value, marks.version.value)
                      .WithNextStep("ask the master for a grant"));
    }
    r.clear_chain();
    if (lease) {
      for (const proto::Hop& hop : lease->others) *r.add_chain() = hop;
    }
  }
  if (!r.forwarded() && replica.out_of_step == tokens.version && !PICKET_MUTANT(primary_in_step)) {
    return Fail(Error(Code::kOutOfOrder, "chunk " + ToString(packet->chunk()) +
                                             ": this primary forwarded a packet that it could not apply itself")
                    .WithTokens(r.serial(), replica.last_serial)
                    .WithNextStep("ask the master for a grant"));
  }
  // Bytes that are no frames would hide every record behind them.
  const bool records_only = !r.forwarded() && !packet->own && r.token().mode() == proto::RECORD_APPEND;
  if (records_only && !packet->bytes.empty() && !PICKET_MUTANT(record_only)) {
    return Fail(Error(Code::kConflict,
                      "chunk " + ToString(packet->chunk()) + ": in a record-append session bytes come as records")
                    .WithNextStep("append records, or open the file for writing"));
  }
  if (r.overwrite()) {
    PICKET_TRY(FenceOverwrite(marks, replica.last_serial, r.serial(), r.offset(), packet->bytes.size()));
  } else if (!packet->announcement()) {
    PICKET_TRY(FenceSequence(marks, replica.last_serial, r.serial(), r.offset(), packet->bytes.empty()));
  }
  const uint64_t start = r.overwrite() ? r.offset() : marks.length;
  const uint64_t end = start + packet->bytes.size();
  const uint64_t pieces = packet->bytes.empty() ? 0 : BlocksIn(end) - start / kBlockSize;
  if (end > replica.file->slot().chunk_size || static_cast<uint64_t>(r.piece_crcs_size()) != pieces) {
    return Fail(Code::kInvalidArgument, "chunk " + ToString(packet->chunk()) + ": a packet of " +
                                            std::to_string(packet->bytes.size()) + " bytes with " +
                                            std::to_string(r.piece_crcs_size()) + " checksums does not fit at " +
                                            std::to_string(start));
  }
  return {};
}

Status MutationService::VerifyPieces(const Packet& packet) const {
  uint64_t at = 0;
  for (uint32_t expected : packet.request.piece_crcs()) {
    const uint64_t begun = (packet.request.offset() + at) % kBlockSize;
    const uint64_t size = std::min<uint64_t>(kBlockSize - begun, packet.bytes.size() - at);
    if (Crc32c(packet.bytes.data() + at, size) != expected && !PICKET_MUTANT(verify_packet)) {
      return Fail(CorruptAsReceived(packet.chunk(), packet.request.offset() + at));
    }
    at += size;
  }
  return {};
}

Task<Result<std::unique_ptr<PendingCall>>> MutationService::Forward(const Packet* packet, uint64_t acked,
                                                                    proto::Hop next) {
  const Nanos left = NextHopTime(packet->deadline - env_.Now());
  if (left <= 0ns) {
    // Spent here: it waited for the chunk's lock.
    co_return Fail(BlameSelf(
        Error(Code::kDeadlineExceeded, "chunk " + ToString(packet->chunk()) + ": no time is left to forward a packet"),
        self_.server));
  }
  auto channel = channels_.Get(Endpoint(next.host(), static_cast<uint16_t>(next.port())));
  if (!channel->connected()) {
    Status connected = co_await channel->Connect(std::min(left, kConnectTimeout));
    if (!connected) co_return Fail(connected.error());
  }
  proto::WritePacketRequest onward = packet->request;
  onward.set_forwarded(true);
  onward.set_acked_length(acked);
  onward.set_target_incarnation(next.incarnation());
  onward.set_forward_proof(verifier_.Proof(onward.token(), ServerId(next.server()), Incarnation(next.incarnation())));
  onward.mutable_chain()->DeleteSubrange(0, 1);
  const Nanos rest = NextHopTime(packet->deadline - env_.Now());
  co_return channel->Start(proto::WRITE_PACKET, onward.SerializeAsString(), Payload(packet->bytes), rest);
}

Task<Result<proto::WritePacketResponse>> MutationService::Process(ReplicaPtr replica, FifoLock::Ticket ticket,
                                                                  Packet packet) {
  const bool from_client = !packet.request.forwarded();
  Status judged = Judge(*replica, &packet);
  if (!judged) {
    Trace(ProtocolEvent::Kind::kMutationRefused, packet, 0, static_cast<uint64_t>(judged.error().code));
    co_return Fail(BlameSelf(std::move(judged).error(), self_.server));
  }
  if (Status ready = co_await store_.Use(replica); !ready) {
    if (ready.error().code == Code::kCorrupt) changes_.Changed(packet.chunk());
    co_return Fail(BlameSelf(std::move(ready).error(), self_.server));
  }
  const proto::WritePacketRequest& r = packet.request;
  auto file = replica->file;
  // What every member has the primary knows itself: a client's word for it would be shown to readers.
  const uint64_t acked = from_client && !PICKET_MUTANT(acked_by_client) ? replica->known_acked : r.acked_length();

  proto::Hop next;
  std::unique_ptr<PendingCall> onward;
  if (r.chain_size() > 0 && !packet.announcement()) {
    next = r.chain(0);
    auto started = co_await Forward(&packet, acked, next);
    if (!started) co_return Fail(BlameHop(std::move(started).error(), next, self_.server));
    onward = std::move(*started);
    if (from_client) announcer_.Told(packet.chunk(), acked);
  }

  if (Status verified = VerifyPieces(packet); !verified) co_return Fail(std::move(verified).error());
  if (onward) replica->out_of_step = Version(r.token().version());  // until it is applied here too
  std::vector<uint32_t> crcs(r.piece_crcs().begin(), r.piece_crcs().end());
  Status applied;
  if (r.overwrite()) {
    applied = co_await file->Overwrite(r.offset(), packet.bytes, std::move(crcs));
  } else {
    applied = co_await file->Append(packet.bytes, std::move(crcs), !r.unsynced_seal());
  }
  if (!applied) {
    PICKET_LOG(env_, kWarning, "chunk {}: a packet could not be written: {}", ToString(packet.chunk()),
               applied.error().ToString());
    changes_.Changed(packet.chunk());
    co_return Fail(BlameSelf(std::move(applied).error(), self_.server));
  }
  replica->out_of_step = Version();
  const uint64_t length = file->length();
  const uint64_t lineage = file->slot().lineage;
  if (!packet.announcement()) replica->last_serial = r.serial();
  replica->Committed();
  replica->known_acked = std::max(replica->known_acked, std::min(acked, length));
  if (from_client) leases_.MarkMutated(packet.chunk(), Version(r.token().version()));
  if (packet.applied) packet.applied(length);
  if (r.overwrite()) {
    Trace(ProtocolEvent::Kind::kOverwriteApplied, packet, r.offset() + packet.bytes.size(), r.serial());
  } else if (!packet.bytes.empty()) {
    Trace(ProtocolEvent::Kind::kMutationApplied, packet, length, r.serial());
  }
  ticket.Release();

  if (r.sync() && !PICKET_MUTANT(sync_packet)) {
    Status synced = co_await file->SyncUpTo(length, lineage);
    if (!synced) {
      changes_.Changed(packet.chunk());
      co_return Fail(BlameSelf(std::move(synced).error(), self_.server));
    }
  }
  if (onward && !PICKET_MUTANT(ack_every_member)) {
    auto answered = co_await onward->Wait();
    if (!answered) co_return Fail(BlameHop(std::move(answered).error(), next, self_.server));
  }
  // Applied on every member: a later version takes none of it away.
  if (from_client && file == replica->file && file->slot().lineage == lineage) {
    replica->known_acked = std::max(replica->known_acked, length);
    if (r.chain_size() > 0) announcer_.Acked(replica, r.token(), replica->known_acked);
  }
  proto::WritePacketResponse response;
  response.set_serial(r.serial());
  response.set_length(length);
  co_return response;
}

void MutationService::Trace(ProtocolEvent::Kind kind, const Packet& packet, uint64_t length, uint64_t value) const {
  ProtocolEvent e{};
  e.kind = kind;
  e.server = self_.server;
  e.chunk = packet.chunk();
  e.version = Version(packet.request.token().version());
  e.generation = Generation(packet.request.token().generation());
  e.length = length;
  e.value = value;
  env_.Trace(e);
}

}  // namespace picket::cs
