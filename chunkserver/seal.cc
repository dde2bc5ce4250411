#include "chunkserver/seal.h"

#include "chunkserver/blame.h"
#include "chunkserver/mutation.h"
#include "common/base/mutation.h"

namespace picket::cs {

Task<SealService::Answer> SealService::Seal(proto::SealRequest request, Mono deadline) {
  const ChunkId chunk(request.token().chunk());
  MutationTokens tokens;
  tokens.version = Version(request.token().version());
  tokens.generation = Generation(request.token().generation());
  tokens.target = Incarnation(request.target_incarnation());

  LockedReplica locked = co_await store_.Locked(chunk);
  ReplicaPtr replica = locked.replica;
  Status genuine = request.from_primary()
                       ? verifier_.VerifyForwarded(request.token(), tokens.target, request.forward_proof())
                       : verifier_.Verify(request.token());
  if (!genuine) co_return Fail(BlameSelf(std::move(genuine).error(), self_.server));
  auto step = FenceSeal(locked.marks, self_, tokens, request.length());
  if (!step) co_return Fail(BlameSelf(std::move(step).error(), self_.server));

  std::vector<proto::Hop> others;
  if (!request.from_primary()) {
    auto lease = leases_.Held(chunk, tokens.version);
    // A replica that is sealed already changes no more: its writer may have it synced wherever it lies.
    if (!lease && *step == SealStep::kSeal && !PICKET_MUTANT(primary_lease_seal)) {
      Error e(Code::kNotPrimary, "chunk " + ToString(chunk) + ": this server holds no primary lease for version " +
                                     tokens.version.ToString());
      e.server = self_.server.value;
      co_return Fail(std::move(e).WithNextStep("ask the master for a grant"));
    }
    if (lease) others = lease->others;
  }
  if (Status ready = co_await store_.Use(replica); !ready) {
    co_return Fail(BlameSelf(std::move(ready).error(), self_.server));
  }

  std::vector<Task<Answer>> seals;
  for (const proto::Hop& hop : others) seals.push_back(SealOther(request, hop, deadline));
  seals.push_back(SealOwn(std::move(replica), std::move(locked.ticket), request, *step));
  auto answers = co_await WhenAll(&env_, std::move(seals));

  // The own failure first: it cannot be somebody else's fault.
  std::rotate(answers.begin(), answers.end() - 1, answers.end());
  proto::SealResponse response;
  for (auto& answer : answers) {
    if (!answer) co_return Fail(std::move(answer).error());
    if (response.sealed_servers_size() > 0 && answer->digest() != response.digest()) {
      Error e(Code::kIntegrity, "chunk " + ToString(chunk) + ": two replicas sealed at " +
                                    std::to_string(request.length()) + " bytes with different digests");
      e.server = answer->sealed_servers(0);
      co_return Fail(std::move(e)
                         .WithTokens(answer->digest(), response.digest())
                         .WithNextStep("ask the master for a grant without the replica that differs"));
    }
    response.set_length(answer->length());
    response.set_digest(answer->digest());
    response.add_sealed_servers(answer->sealed_servers(0));
  }
  co_return response;
}

Task<SealService::Answer> SealService::SealOwn(ReplicaPtr replica, FifoLock::Ticket ticket, proto::SealRequest request,
                                               SealStep step) {
  auto file = replica->file;
  if (step == SealStep::kSeal || (request.sync() && file->dirty())) {
    // A seal that a power cut tears makes the whole replica corrupt: bytes that are promised already must
    // not go with it.
    const bool promised = file->slot().durable_length > 0;
    const bool sync = (request.sync() || promised) && !PICKET_MUTANT(sync_seal);
    Status sealed = co_await file->Seal(Generation(request.token().generation()), sync);
    changes_.Changed(replica->chunk);
    if (!sealed) co_return Fail(BlameSelf(std::move(sealed).error(), self_.server));
    replica->Committed();
    ProtocolEvent e{};
    e.kind = ProtocolEvent::Kind::kReplicaSealed;
    e.server = self_.server;
    e.chunk = replica->chunk;
    e.version = file->slot().version;
    e.generation = file->slot().generation;
    e.length = file->length();
    e.value = file->slot().digest;
    env_.Trace(e);
  } else if (request.sync()) {
    if (Status settled = co_await file->Settle(); !settled)
      co_return Fail(BlameSelf(std::move(settled).error(), self_.server));
  }
  proto::SealResponse response;
  response.set_length(file->length());
  response.set_digest(file->slot().digest);
  response.add_sealed_servers(self_.server.value);
  co_return response;
}

Task<SealService::Answer> SealService::SealOther(proto::SealRequest request, proto::Hop hop, Mono deadline) {
  const Nanos left = NextHopTime(deadline - env_.Now());
  if (left <= 0ns) co_return Fail(BlameSelf(Error(Code::kDeadlineExceeded, "no time is left to seal"), self_.server));
  request.set_from_primary(true);
  request.set_target_incarnation(hop.incarnation());
  request.set_forward_proof(
      verifier_.Proof(request.token(), ServerId(hop.server()), Incarnation(hop.incarnation())));
  auto channel = channels_.Get(Endpoint(hop.host(), static_cast<uint16_t>(hop.port())));
  auto answer = co_await channel->Call<proto::SealResponse>(proto::SEAL, request, left);
  if (!answer) co_return Fail(BlameHop(std::move(answer).error(), hop, self_.server));
  answer->clear_sealed_servers();
  answer->add_sealed_servers(hop.server());
  co_return answer;
}

}  // namespace picket::cs
