#include "chunkserver/recovery_service.h"

#include "chunkserver/blame.h"
#include "chunkserver/promise.h"
#include "chunkserver/replica_copy.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket::cs {

std::unexpected<Error> RecoveryService::Refusal(Error e) const {
  return Fail(BlameSelf(std::move(e), gate_.self().server));
}

Marking RecoveryService::MarkingOf(Version version, Generation generation, const proto::OrderHeader& header) const {
  Marking m;
  m.version = version;
  m.generation = generation;
  m.state = ReplicaState::kRecovering;
  m.raised_in = gate_.self().incarnation;
  m.epoch = gate_.epoch();
  m.revision = header.revision();
  return m;
}

// ---- begin -----------------------------------------------------------------------------------------

Task<Result<proto::BeginRecoveryResponse>> RecoveryService::Begin(proto::BeginRecoveryRequest r, Mono) {
  if (Status admitted = co_await gate_.Admit(r.header()); !admitted) co_return Refusal(admitted.error());
  const ChunkId chunk(r.chunk());
  LockedReplica locked = co_await store_.Locked(chunk);
  const ReplicaPtr replica = locked.replica;
  const Version mark_before = locked.marks.version;
  if (Status judged = gate_.Judge(r.header()); !judged) co_return Refusal(judged.error());
  BeginTokens tokens;
  tokens.from = Version(r.from());
  tokens.to = Version(r.to());
  tokens.generation = Generation(r.generation());
  auto step = FenceBeginRecovery(locked.marks, tokens);
  if (!step) co_return Refusal(step.error());
  if (Status ready = co_await store_.Use(replica); !ready) {
    changes_.Changed(chunk);
    co_return Refusal(ready.error());
  }
  std::optional<uint64_t> limit;
  if (r.has_limit()) limit = r.limit();
  if (*step == BeginStep::kBegin) {
    Status raised = co_await Raise(replica, std::move(r));
    changes_.Changed(chunk);
    if (!raised) co_return Refusal(raised.error());
  }
  auto promise = co_await Promise(replica, gate_.self(), mark_before, limit);
  if (!promise) {
    if (promise.error().code == Code::kCorrupt) co_await replica->file->MarkCorrupt(promise.error().message);
    changes_.Changed(chunk);
    co_return Refusal(promise.error());
  }
  proto::BeginRecoveryResponse response;
  *response.mutable_promise() = std::move(*promise);
  const Generation sealed = replica->file->slot().sealed_generation;
  response.set_sealed_generation(sealed.value);
  response.mutable_promise()->set_state(sealed ? proto::SEALED : proto::OPEN);
  co_return response;
}

Task<Status> RecoveryService::Raise(ReplicaPtr replica, proto::BeginRecoveryRequest r) {
  auto file = replica->file;
  const Marks before = file->marks();
  // From here on the writer is stopped at its primary, whatever becomes of the order.
  leases_.Drop(replica->chunk);
  const bool whole = IsWhole(before, gate_.self());
  if (before.raised_in != gate_.self().incarnation && !PICKET_MUTANT(begin_verifies)) {
    auto good = co_await file->VerifyBlocks(0, BlocksIn(file->length()));
    if (!good) co_return Fail(good.error());
    if (!*good) {
      co_await file->MarkCorrupt("its bytes do not match their checksums, found by a lease recovery");
      co_return Fail(Error(Code::kCorrupt, "chunk " + ToString(replica->chunk) +
                                               ": the bytes do not match their checksums")
                         .WithNextStep("recover from the other replicas"));
    }
  }
  Marking marking = MarkingOf(Version(r.to()), Generation(r.generation()), r.header());
  marking.raised_in = VouchedBy(before, gate_.self());
  PICKET_CO_TRY(co_await file->Raise(marking));
  // A seal at the version that the master has committed was made when all of it was acknowledged.
  if (before.state == ReplicaState::kSealed && before.version == Version(r.from())) {
    replica->known_acked = before.length;
  }
  replica->MarkRaised(whole);
  TraceReplica(&env_, gate_.self().server, ProtocolEvent::Kind::kMarkRaised, *replica, file->length(), file->length());
  PICKET_LOG(env_, kInfo, "chunk {}: lease recovery began at version {}, generation {}; {} bytes{}",
             ToString(replica->chunk), marking.version.ToString(), marking.generation.ToString(), file->length(),
             before.state == ReplicaState::kSealed ? ", sealed" : "");
  co_return Status();
}

// ---- finish ----------------------------------------------------------------------------------------

Task<Result<proto::FinishRecoveryResponse>> RecoveryService::Finish(proto::FinishRecoveryRequest r, Mono deadline) {
  if (Status admitted = co_await gate_.Admit(r.header()); !admitted) co_return Refusal(admitted.error());
  const ChunkId chunk(r.chunk());
  LockedReplica locked = co_await store_.Locked(chunk);
  const ReplicaPtr replica = locked.replica;
  if (Status judged = gate_.Judge(r.header()); !judged) co_return Refusal(judged.error());
  FinishTokens tokens;
  tokens.version = Version(r.version());
  tokens.generation = Generation(r.generation());
  tokens.length = r.set().length();
  tokens.digest = r.digest();
  tokens.truncation = r.truncation();
  auto step = FenceFinishRecovery(locked.marks, replica ? replica->known_acked : 0, tokens);
  if (!step) co_return Refusal(step.error());
  if (Status ready = co_await store_.Use(replica); !ready) {
    changes_.Changed(chunk);
    co_return Refusal(ready.error());
  }
  if (*step == FinishStep::kFinish) {
    Status completed = co_await Complete(replica, std::move(r), deadline);
    changes_.Changed(chunk);
    if (!completed) co_return Refusal(completed.error());
  } else if (Status settled = co_await replica->file->Settle(); !settled) {
    changes_.Changed(chunk);
    co_return Refusal(settled.error());
  }
  proto::FinishRecoveryResponse response;
  response.set_instance(replica->marks().instance.value);
  response.set_incarnation(gate_.self().incarnation.value);
  co_return response;
}

Task<Status> RecoveryService::Complete(ReplicaPtr replica, proto::FinishRecoveryRequest r, Mono deadline) {
  auto file = replica->file;
  const Marks before = file->marks();
  const proto::ReconcileSet& set = r.set();
  PICKET_CO_TRY(CheckSet(replica->chunk, set, file->slot().chunk_size));
  const std::vector<uint32_t> crcs(set.block_crcs().begin(), set.block_crcs().end());
  const uint32_t digest = Crc32c(crcs.data(), crcs.size() * 4);
  if (digest != r.digest() && !PICKET_MUTANT(finish_digest)) {
    co_return Fail(Error(Code::kInvalidArgument, "chunk " + ToString(replica->chunk) +
                                                     ": the order's digest is not that of its block checksums")
                       .WithTokens(r.digest(), digest)
                       .WithNextStep("begin a new recovery"));
  }
  // Readers that got their bytes as a part of the file, while the replica was sealed.
  if (!co_await file->SlicesSent(deadline)) {
    co_return Fail(Code::kUnavailable, "chunk " + ToString(replica->chunk) + ": its bytes are still being sent");
  }
  Status equal = co_await MakeEqual(&env_, &channels_, gate_.self().server, file, set, deadline);
  if (!equal) {
    Error e = std::move(equal).error();
    if (e.server == 0 || e.code == Code::kShort) co_return Fail(std::move(e));
    // Whatever the source's trouble: this replica is not what the recovery needs.
    e.message = "chunk " + ToString(replica->chunk) + ": this replica has not the " + std::to_string(set.length()) +
                " bytes of the order and cannot be filled: " + e.message;
    e.code = Code::kShort;
    co_return Fail(std::move(e).WithTokens(set.length(), file->length()).WithNextStep("choose another source"));
  }
  PICKET_CO_TRY(co_await file->Finish(MarkingOf(Version(r.version()), Generation(r.generation()), r.header()),
                                      set.length(), TailCrcOf(set)));
  if (file->length() < before.length) {
    TraceReplica(&env_, gate_.self().server, ProtocolEvent::Kind::kReplicaTruncated, *replica, file->length());
  }
  replica->MarkRaised(!r.truncation());
  TraceReplica(&env_, gate_.self().server, ProtocolEvent::Kind::kReplicaSealed, *replica, file->length(),
               file->slot().digest);
  PICKET_LOG(env_, kInfo, "chunk {}: lease recovery sealed it at {} bytes, version {}", ToString(replica->chunk),
             file->length(), file->slot().version.ToString());
  co_return Status();
}

}  // namespace picket::cs
