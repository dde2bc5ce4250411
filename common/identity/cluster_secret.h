// The cluster's id and the secret its servers share, and the proofs of a registration.
//
// A proof is an HMAC-SHA256 under the secret over a label and the fields, each with its length before
// it, so that no two lists of fields give the same bytes. The labels of the two sides differ: neither
// side's proof can be played back to it as the other's.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/env.h"

namespace picket {

inline constexpr size_t kSecretBytes = 32;
inline constexpr size_t kNonceBytes = 32;

struct ClusterSecret {
  std::string cluster;  // 16 lower-case hex digits
  std::string key;      // kSecretBytes bytes; never printed
};

// A new cluster: random id, random key.
ClusterSecret MintClusterSecret(Env& env);

bool IsClusterId(std::string_view text);

// The text of the secret's file.
std::string FormatClusterSecret(const ClusterSecret& secret);

// A TOML file, readable by its owner only. Load: kNotFound, kIoError, or kInvalidArgument for a file
// that is not a cluster secret. Save is durable on return and refuses an existing file (kAlreadyExists):
// a secret written over is a cluster lost.
Task<Result<ClusterSecret>> LoadClusterSecret(Fs* fs, std::string path);
Task<Status> SaveClusterSecret(Fs* fs, std::string path, ClusterSecret secret);

std::string HmacSha256(std::string_view key, std::string_view message);
// Takes the same time wherever the strings differ.
bool ConstantTimeEqual(std::string_view a, std::string_view b);

// `nonce` is the chunkserver's challenge, `challenge` the master's.
std::string MasterProof(const ClusterSecret& secret, std::string_view nonce, std::string_view challenge,
                        ServerId server);
std::string ChunkserverProof(const ClusterSecret& secret, std::string_view challenge, std::string_view nonce,
                             ServerId server, Incarnation incarnation);
bool VerifyMasterProof(const ClusterSecret& secret, std::string_view nonce, std::string_view challenge,
                       ServerId server, std::string_view proof);
bool VerifyChunkserverProof(const ClusterSecret& secret, std::string_view challenge, std::string_view nonce,
                            ServerId server, Incarnation incarnation, std::string_view proof);

}  // namespace picket
