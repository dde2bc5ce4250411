#include "chunkserver/token_verifier.h"

#include "common/base/mutation.h"

namespace picket::cs {
namespace {

Forwarding Names(const proto::WriteToken& token, ServerId receiver, Incarnation boot) {
  return Forwarding{ChunkId(token.chunk()), Version(token.version()), Generation(token.generation()), receiver, boot};
}

}  // namespace

Status TokenVerifier::Learn(const proto::KeyRing& ring) {
  auto opened = OpenKeyRing(secret_, ring);
  if (!opened) return Fail(std::move(opened).error());
  ring_ = std::move(*opened);
  tokens_.EraseIf([this](const Claims& claims) { return !ring_.keys.contains(claims.back()); });
  return {};
}

Status TokenVerifier::KnowsKeys() {
  if (!ring_.keys.empty()) return {};
  if (unknown_key_) unknown_key_();
  return Fail(Error(Code::kUnavailable, "this server has not heard from the master since its start and knows no "
                                        "keys to verify tokens with")
                  .WithNextStep("wait until it has registered, or ask the master for a grant without it"));
}

Status TokenVerifier::Judged(Status verdict) {
  if (!verdict && verdict.error().code == Code::kTokenExpired && unknown_key_) unknown_key_();
  return verdict;
}

Status TokenVerifier::Verify(const proto::WriteToken& t) {
  PICKET_TRY(KnowsKeys());
  const Claims claims{t.inode(),      t.chunk(),  t.version(), t.generation(),
                      t.holder(), static_cast<uint64_t>(t.mode()), t.key()};
  if (const std::string* good = tokens_.Find(claims)) {
    // One signature fits the claims, and it is not this one: forged, as the HMAC would say too.
    if (ConstantTimeEqual(*good, t.signature())) return {};
  }
  ++hmacs_;
  PICKET_TRY(Judged(picket::Verify(secret_.cluster, ring_, t)));
  tokens_.Put(claims, t.signature());
  return {};
}

Status TokenVerifier::Verify(const proto::Sequencer& sequencer) {
  PICKET_TRY(KnowsKeys());
  ++hmacs_;
  return Judged(picket::Verify(secret_.cluster, ring_, sequencer));
}

std::string TokenVerifier::Proof(const proto::WriteToken& token, ServerId receiver, Incarnation boot) {
  const Forwarding forwarding = Names(token, receiver, boot);
  if (const std::string* proof = proofs_.Find(forwarding)) return *proof;
  ++hmacs_;
  return proofs_.Put(forwarding, ForwardProof(secret_, forwarding));
}

Status TokenVerifier::VerifyForwarded(const proto::WriteToken& token, Incarnation boot, std::string_view proof) {
  const Forwarding forwarding = Names(token, self_.server, boot);
  if (const std::string* good = proofs_.Find(forwarding)) {
    if (ConstantTimeEqual(*good, proof)) return {};
  }
  ++hmacs_;
  std::string expected = ForwardProof(secret_, forwarding);
  if (!ConstantTimeEqual(expected, proof) && !PICKET_MUTANT(token_forward_proof)) {
    return Fail(Error(Code::kTokenForged,
                      "chunk " + ToHex(token.chunk()) + ": no server of this cluster forwarded this to this server")
                    .WithNextStep("send it to the primary, not to another member"));
  }
  proofs_.Put(forwarding, std::move(expected));
  return {};
}

}  // namespace picket::cs
