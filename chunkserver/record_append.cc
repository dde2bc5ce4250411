#include "chunkserver/record_append.h"

#include "chunkserver/blame.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"
#include "common/base/record_frame.h"

namespace picket::cs {
namespace {

void SetBytes(Buffer bytes, MutationService::Packet* packet) {
  const uint64_t offset = packet->request.offset();
  for (uint64_t at = 0; at < bytes.size();) {
    const uint64_t size = std::min<uint64_t>(kBlockSize - (offset + at) % kBlockSize, bytes.size() - at);
    packet->request.add_piece_crcs(Crc32c(bytes.data() + at, size));
    at += size;
  }
  packet->bytes = std::move(bytes);
}

}  // namespace

Error RecordAppendService::Blame(Error e) const { return BlameSelf(std::move(e), self_.server); }

void RecordAppendService::OnAppend(RpcRequest request, Responder responder) {
  Append append;
  if (!append.request.ParseFromString(request.body)) {
    Error e(Code::kInvalidArgument, "the request does not parse as its method's message");
    return responder.Reply(Result<RpcReply>(Fail(Blame(std::move(e)))));
  }
  append.record = request.payload.buffer();
  append.deadline = request.deadline;
  const ChunkId chunk(append.request.token().chunk());
  ReplicaPtr replica = store_.Find(chunk);
  if (!replica) {
    Marks none;
    none.chunk = chunk;
    return responder.Reply(Result<RpcReply>(Fail(Blame(FenceMutation(none, self_, MutationTokens()).error()))));
  }
  FifoLock::Ticket ticket = replica->lock().Enqueue();
  env_.Spawn(Run(std::move(replica), std::move(ticket), std::move(append), std::move(responder)));
}

Task<> RecordAppendService::Run(ReplicaPtr replica, FifoLock::Ticket ticket, Append append, Responder responder) {
  co_await ticket.Wait();
  auto result = co_await Process(std::move(replica), std::move(ticket), std::move(append));
  responder.Reply(result);
}

RecordAppendService::Packet RecordAppendService::NextPacket(const Replica& replica, const Append& append) const {
  Packet packet;
  packet.own = true;
  packet.deadline = append.deadline;
  *packet.request.mutable_token() = append.request.token();
  packet.request.set_target_incarnation(append.request.target_incarnation());
  packet.request.set_serial(replica.last_serial + 1);
  packet.request.set_offset(replica.marks().length);
  packet.request.set_acked_length(replica.known_acked);
  packet.request.set_sync(append.request.sync());
  return packet;
}

Status RecordAppendService::VerifyRecord(const Append& append, uint64_t chunk_size) const {
  const ChunkId chunk(append.request.token().chunk());
  if (append.request.token().mode() != proto::RECORD_APPEND) {
    return Fail(
        Error(Code::kInvalidArgument, "chunk " + ToString(chunk) + ": the token is not of a record-append session")
            .WithNextStep("open the file for record append"));
  }
  if (append.record.empty() || append.record.size() > MaxRecord(chunk_size)) {
    return Fail(Code::kInvalidArgument, "chunk " + ToString(chunk) + ": a record has 1 to " +
                                            std::to_string(MaxRecord(chunk_size)) + " bytes in chunks of " +
                                            std::to_string(chunk_size) + ", this one has " +
                                            std::to_string(append.record.size()));
  }
  if (Crc32c(append.record.view()) != append.request.crc() && !PICKET_MUTANT(record_crc)) {
    return Fail(Error(Code::kCorrupt, "chunk " + ToString(chunk) + ": record " +
                                          std::to_string(append.request.sequence()) +
                                          " does not match its checksum as received")
                    .WithNextStep("check the sender's memory and network"));
  }
  return {};
}

Task<Result<proto::AppendRecordResponse>> RecordAppendService::Process(ReplicaPtr replica, FifoLock::Ticket ticket,
                                                                       Append append) {
  Packet packet = NextPacket(*replica, append);
  if (Status judged = mutations_.Judge(*replica, &packet); !judged) co_return Fail(Blame(std::move(judged).error()));
  auto file = replica->file;
  const uint64_t chunk_size = file->slot().chunk_size;
  // Names nobody when the bytes were damaged on the way: who did it cannot be told.
  if (Status verified = VerifyRecord(append, chunk_size); !verified) co_return Fail(std::move(verified).error());
  if (Status ready = co_await store_.Use(replica); !ready) {
    if (ready.error().code == Code::kCorrupt) changes_.Changed(replica->chunk);
    co_return Fail(Blame(std::move(ready).error()));
  }
  auto records = co_await windows_.Of(replica);
  if (!records) co_return Fail(Blame(std::move(records).error()));

  const RecordId id{ClientId(append.request.token().holder()), append.request.sequence()};
  auto found = (*records)->window.Find(id, append.request.known_end());
  if (!found) co_return Fail(Blame(std::move(found).error()));
  if (*found) co_return co_await AnswerAgain(std::move(replica), std::move(ticket), std::move(packet), **found);

  RecordHeader header;
  header.length = static_cast<uint32_t>(append.record.size());
  header.client = id.client.value;
  header.sequence = id.sequence;
  header.crc = append.request.crc();
  const uint64_t offset = packet.request.offset();
  if ((*records)->torn || header.frame_size() > chunk_size - offset) {
    const bool torn = (*records)->torn;
    Error full = co_await FillUp(std::move(replica), std::move(ticket), std::move(packet), torn, header.frame_size());
    co_return Fail(std::move(full));
  }
  Buffer frame = env_.Allocate(header.frame_size());
  std::memcpy(frame.data(), EncodeRecordHeader(header).data(), kRecordHeaderSize);
  std::memcpy(frame.data() + kRecordHeaderSize, append.record.data(), append.record.size());
  SetBytes(std::move(frame), &packet);
  packet.applied = [records = *records, id, size = header.frame_size()](uint64_t) { records->window.Note(id, size); };
  auto written = co_await mutations_.Process(std::move(replica), std::move(ticket), std::move(packet));
  if (!written) co_return Fail(std::move(written).error());
  proto::AppendRecordResponse response;
  response.set_offset(offset);
  response.set_length(written->length());
  co_return response;
}

Task<Result<proto::AppendRecordResponse>> RecordAppendService::AnswerAgain(ReplicaPtr replica, FifoLock::Ticket ticket,
                                                                           Packet behind, RecordWindow::Place place) {
  proto::AppendRecordResponse response;
  response.set_offset(place.offset);
  response.set_was_applied(true);
  response.set_length(std::max(replica->known_acked, place.end));
  const bool everywhere = place.end <= replica->known_acked || PICKET_MUTANT(record_wait_replicated);
  if (everywhere && !behind.request.sync()) co_return response;
  auto answered = co_await mutations_.Process(std::move(replica), std::move(ticket), std::move(behind));
  if (!answered) co_return Fail(std::move(answered).error());
  response.set_length(answered->length());
  co_return response;
}

Task<Error> RecordAppendService::FillUp(ReplicaPtr replica, FifoLock::Ticket ticket, Packet last, bool torn,
                                        uint64_t wanted) {
  const ChunkId chunk = replica->chunk;
  auto file = replica->file;
  const uint64_t room = torn || PICKET_MUTANT(record_pad) ? 0 : file->slot().chunk_size - last.request.offset();
  const uint64_t length = last.request.offset() + room;
  last.request.set_sync(false);
  if (room > 0) {
    auto records = co_await windows_.Of(replica);
    if (!records) co_return Blame(std::move(records).error());
    SetBytes(Buffer::Copy(MakePadding(room)), &last);
    last.applied = [records = *records, room](uint64_t) { records->window.Skip(room); };
  }
  if (room > 0 || length > replica->known_acked) {
    auto answered = co_await mutations_.Process(std::move(replica), std::move(ticket), std::move(last));
    if (!answered) co_return std::move(answered).error();
  }
  // Blames nobody: the chunk did its duty.
  co_return Error(Code::kChunkFull, "chunk " + ToString(chunk) + ": a frame of " + std::to_string(wanted) +
                                        " bytes does not fit any more")
      .WithTokens(wanted, length)
      .WithNextStep("seal the chunk at " + std::to_string(length) + " bytes and append to the next one");
}

Task<Result<proto::LookupRecordResponse>> RecordAppendService::Lookup(proto::LookupRecordRequest request, Mono) {
  const ChunkId chunk(request.chunk());
  LockedReplica l = co_await store_.Locked(chunk);
  const Version version(request.version());
  if (Status judged = FenceSource(l.marks, version); !judged) co_return Fail(Blame(std::move(judged).error()));
  const bool sealed = l.marks.state == ReplicaState::kSealed;
  if (!sealed && !leases_.Held(chunk, version)) {
    co_return Fail(Blame(Error(Code::kNotPrimary, "chunk " + ToString(chunk) +
                                                      ": of an open chunk only the primary knows what was applied")
                             .WithTokens(version.value, l.marks.version.value)
                             .WithNextStep("ask the primary")));
  }
  if (Status ready = co_await store_.Use(l.replica); !ready) {
    if (ready.error().code == Code::kCorrupt) changes_.Changed(chunk);
    co_return Fail(Blame(std::move(ready).error()));
  }
  auto records = co_await windows_.Of(l.replica);
  if (!records) co_return Fail(Blame(std::move(records).error()));
  auto found = (*records)->window.Find({ClientId(request.client()), request.sequence()}, request.known_end());
  if (!found) co_return Fail(Blame(std::move(found).error()));
  proto::LookupRecordResponse response;
  if (*found && (sealed || (*found)->end <= l.replica->known_acked)) {
    response.set_applied(true);
    response.set_offset((*found)->offset);
  } else {
    response.set_definite(sealed || PICKET_MUTANT(record_lookup_definite));
  }
  co_return response;
}

}  // namespace picket::cs
