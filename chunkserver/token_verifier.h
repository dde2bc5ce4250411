// The judge of signatures at a chunkserver: tokens that clients show, and proofs that a packet or seal was
// forwarded by a server of this cluster (token_signer.h).
//
// 1. Keys come with registrations and heartbeats and are kept in memory only: a server that has heard of
//    none since its start answers UNAVAILABLE.
// 2. The first receiver verifies a token, later ones a proof bound to them and their boot. Both are asked
//    inside the chunk's critical section, before any mark is compared: who forges learns nothing.
// 3. What was found good is remembered, so that a packet costs one look-up and one comparison; it is
//    forgotten with its key.
// 4. A token of a key that is not known may be of one that is too new: the next heartbeat is asked for early.
// Runs on the chunkserver's executor.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "chunkserver/fence.h"
#include "chunkserver/recent_cache.h"
#include "common/env/env.h"
#include "common/identity/token_signer.h"

namespace picket::cs {

class TokenVerifier {
 public:
  TokenVerifier(const Self& self, const ClusterSecret& secret)
      : self_(self), secret_(secret), tokens_(kMaxTokens), proofs_(kMaxProofs) {}

  // Takes over a ring that opens as a whole; kCorrupt, and nothing changes, for one that does not.
  Status Learn(const proto::KeyRing& ring);
  uint64_t ring_number() const { return ring_.number; }
  // The lowest key id that is honoured here; 0 = no key yet. What was signed with a lower one is dead.
  uint64_t newest_key() const { return ring_.keys.empty() ? 0 : ring_.keys.rbegin()->first; }
  uint64_t oldest_key() const { return ring_.keys.empty() ? 0 : ring_.keys.begin()->first; }
  // Runs whenever a token of an unknown key was seen.
  void OnUnknownKey(std::function<void()> fn) { unknown_key_ = std::move(fn); }

  // ---- clients. kUnavailable (no keys yet), kTokenExpired, kTokenForged, kWrongCluster (sequencers).
  Status Verify(const proto::WriteToken& token);
  Status Verify(const proto::Sequencer& sequencer);

  // ---- servers
  // The proof for `receiver` that this server forwards.
  std::string Proof(const proto::WriteToken& token, ServerId receiver, Incarnation boot);
  // kTokenForged: no server forwarded this to this server. `boot` is the one that the sender means, which
  // the fence compares afterwards.
  Status VerifyForwarded(const proto::WriteToken& token, Incarnation boot, std::string_view proof);

  // HMACs computed so far over tokens and proofs.
  uint64_t hmacs() const { return hmacs_; }

  static constexpr size_t kMaxTokens = 8192;
  static constexpr size_t kMaxProofs = 8192;

 private:
  // Every field that is signed, the key's id last.
  using Claims = std::array<uint64_t, 7>;
  Status KnowsKeys();
  Status Judged(Status verdict);

  const Self& self_;
  const ClusterSecret& secret_;
  TokenKeyRing ring_;
  RecentCache<Claims, std::string> tokens_;      // the one signature that fits the claims
  RecentCache<Forwarding, std::string> proofs_;  // sent, and awaited here
  std::function<void()> unknown_key_;
  uint64_t hmacs_ = 0;
};

}  // namespace picket::cs
