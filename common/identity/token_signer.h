// The signatures of client tokens (design §1): HMAC-SHA256 under keys that the master mints and rotates and
// chunkservers learn with heartbeats. What is signed is the cluster id, a label for the kind of token, and
// every field, each with its length: no two tokens give the same bytes.
//
// A key is honoured as long as it is in the ring. One that is not there is TOKEN_EXPIRED (retired, or not
// yet heard of: the next heartbeat tells); a signature that does not fit is TOKEN_FORGED; a sequencer that
// names another cluster is WRONG_CLUSTER. Expiry protects nothing by itself: marks fence (F18).
//
// Servers prove to each other that a packet or seal was forwarded by one of them: a key of their own,
// derived from the cluster secret, over chunk, version, generation and receiver.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/identity/cluster_secret.h"
#include "common/identity/sequencer_text.h"
#include "proto/chunkserver_master.pb.h"
#include "proto/common.pb.h"

namespace picket {

inline constexpr size_t kTokenKeyBytes = 32;

// The keys in the clear, by id; and the number of this ring.
struct TokenKeyRing {
  uint64_t number = 0;
  std::map<uint64_t, std::string> keys;
};

// AES-256-GCM under a key derived from the cluster secret, bound to the key's id. Open: kCorrupt.
std::string SealTokenKey(const ClusterSecret& secret, uint64_t id, std::string_view key, Env& env);
Result<std::string> OpenTokenKey(const ClusterSecret& secret, uint64_t id, std::string_view sealed);
Result<TokenKeyRing> OpenKeyRing(const ClusterSecret& secret, const proto::KeyRing& ring);

// Sets key and signature; a sequencer's cluster too.
void Sign(const std::string& cluster, uint64_t key_id, std::string_view key, proto::WriteToken* token);
void Sign(const std::string& cluster, uint64_t key_id, std::string_view key, proto::Sequencer* sequencer);

// kTokenExpired, kTokenForged, kWrongCluster; with the next step. One HMAC each.
Status Verify(const std::string& cluster, const TokenKeyRing& ring, const proto::WriteToken& token);
Status Verify(const std::string& cluster, const TokenKeyRing& ring, const proto::Sequencer& sequencer);

struct Forwarding {
  ChunkId chunk;
  Version version;
  Generation generation;
  ServerId receiver;
  Incarnation boot;  // of the receiver
  auto operator<=>(const Forwarding&) const = default;
};
std::string ForwardProof(const ClusterSecret& secret, const Forwarding& forwarding);

}  // namespace picket
