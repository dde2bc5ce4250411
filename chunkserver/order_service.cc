#include "chunkserver/order_service.h"

#include "chunkserver/blame.h"
#include "chunkserver/promise.h"
#include "chunkserver/replica_copy.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket::cs {
std::unexpected<Error> OrderService::Refusal(Error e) const { return Fail(BlameSelf(std::move(e), gate_.self().server)); }

// ---- create ----------------------------------------------------------------------------------------

Task<Result<proto::CreateReplicaResponse>> OrderService::Create(proto::CreateReplicaRequest request, Mono) {
  if (Status admitted = co_await gate_.Admit(request.header()); !admitted) co_return Refusal(admitted.error());
  if (request.chunk() == 0 || request.version() == 0 || !ValidChunkSize(request.chunk_size())) {
    co_return Refusal(Error(Code::kInvalidArgument, "a replica of " + std::to_string(request.chunk_size()) +
                                                        " bytes at version 0 or without a chunk id cannot be created"));
  }
  ReplicaPtr replica = store_.FindOrAdd(ChunkId(request.chunk()));
  FifoLock::Ticket ticket = replica->lock().Enqueue();
  co_await ticket.Wait();
  auto created = co_await CreateLocked(replica, std::move(request));
  store_.ForgetEmpty(replica);
  if (!created) co_return Refusal(std::move(created).error());
  if (!replica->answered_at) replica->answered_at = env_.Now();
  co_return created;
}

Task<Result<proto::CreateReplicaResponse>> OrderService::CreateLocked(ReplicaPtr replica,
                                                                      proto::CreateReplicaRequest r) {
  PICKET_CO_TRY(gate_.Judge(r.header()));
  const Version version(r.version());
  const Generation generation(r.generation());
  const AttemptId attempt(r.header().attempt());
  auto step = FenceCreate(replica->marks(), version, generation, attempt);
  if (!step) co_return Fail(step.error());
  proto::CreateReplicaResponse response;
  response.set_incarnation(gate_.self().incarnation.value);
  if (*step == CreateStep::kAlreadyCreated) {
    PICKET_CO_TRY(co_await replica->file->Settle());
    response.set_instance(replica->marks().instance.value);
    co_return response;
  }
  auto space = co_await env_.fs().Space(dir_);
  if (!space) co_return Fail(space.error());
  if (space->free_bytes < reserve_bytes_ || space->free_bytes - reserve_bytes_ < r.chunk_size()) {
    co_return Fail(Error(Code::kNoSpace, dir_ + " has " + std::to_string(space->free_bytes) + " bytes free, " +
                                             std::to_string(reserve_bytes_) + " of them reserved")
                       .WithNextStep("place the chunk on another server"));
  }
  if (replica->file && replica->marks().state != ReplicaState::kTombstone) {
    // A stale replica of a lower version: its bytes go to quarantine, a joiner begins anew.
    leases_.Drop(replica->chunk);
    PICKET_CO_TRY(co_await DeleteLocked(replica, Retired::kReplaced));
  }
  auto instance = co_await state_.NextInstance();
  if (!instance) co_return Fail(instance.error());
  Slot slot;
  slot.inode = InodeId(r.inode());
  slot.version = version;
  slot.generation = generation;
  slot.state = r.joiner() ? ReplicaState::kCreating : ReplicaState::kOpen;
  slot.raised_in = gate_.self().incarnation;
  slot.instance = *instance;
  slot.attempt = attempt;
  slot.chunk_size = r.chunk_size();
  slot.epoch = gate_.epoch();
  slot.revision = r.header().revision();
  PICKET_CO_TRY(co_await store_.Create(replica, std::move(slot)));
  Trace(ProtocolEvent::Kind::kReplicaCreated, *replica, 0);
  changes_.Changed(replica->chunk);
  response.set_instance(instance->value);
  co_return response;
}

// ---- advance ---------------------------------------------------------------------------------------

Task<Result<proto::AdvanceVersionResponse>> OrderService::Advance(proto::AdvanceVersionRequest request, Mono deadline) {
  if (Status admitted = co_await gate_.Admit(request.header()); !admitted) co_return Refusal(admitted.error());
  const ChunkId chunk(request.chunk());
  LockedReplica locked = co_await store_.Locked(chunk);
  const ReplicaPtr replica = locked.replica;
  const Marks before = locked.marks;
  if (Status judged = gate_.Judge(request.header()); !judged) co_return Refusal(judged.error());
  AdvanceTokens tokens;
  tokens.from = Version(request.from());
  tokens.to = Version(request.to());
  tokens.generation = Generation(request.generation());
  tokens.reopen = request.reopen();
  tokens.set = request.has_set();
  auto step = FenceAdvance(before, tokens);
  if (!step) co_return Refusal(step.error());
  if (Status ready = co_await store_.Use(replica); !ready) {
    changes_.Changed(chunk);
    co_return Refusal(ready.error());
  }
  if (*step == AdvanceStep::kRaise) {
    Status raised = co_await Raise(replica, std::move(request), deadline);
    changes_.Changed(chunk);
    if (!raised) co_return Refusal(raised.error());
  }
  auto promise = co_await Promise(replica, gate_.self(), before.version, std::nullopt);
  if (!promise) {
    changes_.Changed(chunk);
    co_return Refusal(promise.error());
  }
  if (!replica->answered_at) replica->answered_at = env_.Now();
  co_return promise;
}

Task<Status> OrderService::Raise(ReplicaPtr replica, proto::AdvanceVersionRequest r, Mono deadline) {
  auto file = replica->file;
  const Marks before = file->marks();
  const bool reopened = before.state == ReplicaState::kSealed && r.reopen();
  Marking marking;
  marking.version = Version(r.to());
  marking.generation = Generation(r.generation());
  marking.raised_in = VouchedBy(before, gate_.self());
  marking.epoch = gate_.epoch();
  marking.revision = r.header().revision();
  // What an attempt left recovering is written again too: its recovery was not committed.
  marking.state = reopened || before.state == ReplicaState::kRecovering ? ReplicaState::kOpen : before.state;
  // From here on no packet of the old version is accepted as primary, whatever becomes of the order.
  leases_.Drop(replica->chunk);
  // A recovery that died may have found it sealed, with readers who get the data file's bytes as they are.
  if ((marking.state != before.state || r.has_set()) && !co_await file->SlicesSent(deadline)) {
    co_return Fail(Code::kUnavailable, "chunk " + ToString(replica->chunk) + ": its bytes are still being sent");
  }
  if (r.has_set()) {
    PICKET_CO_TRY(CheckSet(replica->chunk, r.set(), file->slot().chunk_size));
    PICKET_CO_TRY(co_await MakeEqual(&env_, &channels_, gate_.self().server, file, r.set(), deadline));
    marking.state = ReplicaState::kOpen;
    marking.raised_in = gate_.self().incarnation;
    PICKET_CO_TRY(co_await file->RaiseAndCut(marking, r.set().length(), TailCrcOf(r.set())));
  } else {
    PICKET_CO_TRY(co_await file->Raise(marking));
  }
  // A chunk is reopened at what it was sealed with: all of that is acknowledged.
  if (reopened) replica->known_acked = before.length;
  replica->MarkRaised(IsWhole(before, gate_.self()));
  if (file->length() < before.length) Trace(ProtocolEvent::Kind::kReplicaTruncated, *replica, file->length());
  Trace(ProtocolEvent::Kind::kMarkRaised, *replica, file->length(), file->length());
  co_return Status();
}

// ---- leases ----------------------------------------------------------------------------------------

Task<Result<proto::GrantLeaseResponse>> OrderService::Grant(proto::GrantLeaseRequest r, Mono) {
  if (Status admitted = co_await gate_.Admit(r.header()); !admitted) co_return Refusal(admitted.error());
  const ChunkId chunk(r.chunk());
  LockedReplica locked = co_await store_.Locked(chunk);
  const ReplicaPtr replica = locked.replica;
  const Marks marks = locked.marks;
  if (Status judged = gate_.Judge(r.header()); !judged) co_return Refusal(judged.error());
  const Version version(r.version());
  const Generation generation(r.generation());
  if (Status judged = FenceGrant(marks, gate_.self(), version, generation); !judged) co_return Refusal(judged.error());
  if (r.members_size() == 0 || r.members(0).server() != gate_.self().server.value) {
    co_return Refusal(
        Error(Code::kInvalidArgument, "chunk " + ToString(chunk) + ": a lease names its primary as the first member"));
  }
  if (!replica->answered_at) {
    co_return Refusal(Error(Code::kNotPrimary, "chunk " + ToString(chunk) + ": version " + version.ToString() +
                                                   " was not answered in this boot")
                          .WithNextStep("mint a new version"));
  }
  PrimaryLease lease;
  lease.version = version;
  lease.generation = generation;
  lease.others.assign(r.members().begin() + 1, r.members().end());
  Status granted =
      leases_.Grant(chunk, std::move(lease), *replica->answered_at, std::chrono::milliseconds(r.lease_ms()));
  if (!granted) co_return Refusal(granted.error());
  replica->Committed();
  if (replica->last_serial == 0) {
    // The master has committed this version: what its members hold is L, and counts as acknowledged (D6).
    replica->known_acked = marks.length;
    proto::WriteToken token;
    token.set_chunk(r.chunk());
    token.set_version(r.version());
    token.set_generation(r.generation());
    announcer_.Acked(replica, std::move(token), marks.length);
  }
  co_return proto::GrantLeaseResponse();
}

Task<Result<proto::RevokeLeaseResponse>> OrderService::Revoke(proto::RevokeLeaseRequest r, Mono) {
  if (Status admitted = co_await gate_.Admit(r.header()); !admitted) co_return Refusal(admitted.error());
  if (Status judged = gate_.Judge(r.header()); !judged) co_return Refusal(judged.error());
  leases_.Revoke(ChunkId(r.chunk()), Version(r.version()));
  co_return proto::RevokeLeaseResponse();
}

// ---- delete ----------------------------------------------------------------------------------------

Task<Result<proto::DeleteReplicaResponse>> OrderService::Delete(proto::DeleteReplicaRequest r, Mono) {
  if (Status admitted = co_await gate_.Admit(r.header()); !admitted) co_return Refusal(admitted.error());
  const ChunkId chunk(r.chunk());
  LockedReplica locked = co_await store_.Locked(chunk);
  const ReplicaPtr replica = locked.replica;
  const Marks marks = locked.marks;
  if (Status judged = gate_.Judge(r.header()); !judged) co_return Refusal(judged.error());
  auto step = FenceDelete(marks, Version(r.version()), InstanceId(r.instance()));
  if (!step) co_return Refusal(step.error());
  if (*step == DeleteStep::kDelete) {
    leases_.Drop(chunk);
    if (Status deleted = co_await DeleteLocked(replica, Retired::kDeleted); !deleted) co_return Refusal(deleted.error());
    PICKET_LOG(env_, kInfo, "chunk {}: replica deleted by order (version {}, instance {}); its bytes are in quarantine",
               ToString(chunk), Version(r.version()).ToString(), r.instance());
  } else if (replica && replica->file) {
    if (Status settled = co_await replica->file->Settle(); !settled) co_return Refusal(settled.error());
  }
  co_return proto::DeleteReplicaResponse();
}

Task<Status> OrderService::DeleteLocked(ReplicaPtr replica, Retired why) {
  Retirement retirement;
  retirement.boot = gate_.self().incarnation;
  retirement.epoch = gate_.epoch();
  retirement.key = keys_.newest_key();
  retirement.why = why;
  PICKET_CO_TRY(co_await store_.Delete(replica, retirement));
  replica->answered_at.reset();
  changes_.Removed(replica->chunk);
  Trace(ProtocolEvent::Kind::kReplicaDeleted, *replica, 0);
  co_return Status();
}

// ---- describe --------------------------------------------------------------------------------------

Task<Result<proto::DescribeReplicaResponse>> OrderService::Describe(proto::DescribeReplicaRequest r, Mono) {
  ReplicaPtr replica = store_.Find(ChunkId(r.chunk()));
  if (!replica || !replica->file) {
    co_return Refusal(Error(Code::kNotFound, "chunk " + ToHex(r.chunk()) + ": no replica here"));
  }
  proto::DescribeReplicaResponse response;
  *response.mutable_replica() = store_.Report(*replica, gate_.self().incarnation);
  response.set_durable_length(replica->file->slot().durable_length);
  response.set_known_acked(replica->known_acked);
  response.set_lease_left_ms(static_cast<uint32_t>(leases_.Left(replica->chunk) / 1ms));
  response.set_incarnation(gate_.self().incarnation.value);
  co_return response;
}

void OrderService::Trace(ProtocolEvent::Kind kind, const Replica& replica, uint64_t length, uint64_t value) {
  TraceReplica(&env_, gate_.self().server, kind, replica, length, value);
}

}  // namespace picket::cs
