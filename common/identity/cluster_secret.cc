#include "common/identity/cluster_secret.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <initializer_list>

#include "common/base/check.h"
#include "common/base/coding.h"
#include "common/base/mutation.h"
#include "common/obs/toml.h"

namespace picket {
namespace {

std::string HexEncode(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

bool HexDecode(std::string_view hex, std::string* out) {
  if (hex.size() % 2 != 0) return false;
  out->clear();
  for (size_t i = 0; i < hex.size(); i += 2) {
    uint64_t byte = 0;
    if (!FromHex(hex.substr(i, 2), &byte)) return false;
    out->push_back(static_cast<char>(byte));
  }
  return true;
}

std::string Number(uint64_t v) {
  std::string out;
  PutFixed(&out, v);
  return out;
}

bool Proves(std::string_view proof, const std::string& expected) {
  return PICKET_MUTANT(registration_proof) || ConstantTimeEqual(proof, expected);
}

std::string Proof(const ClusterSecret& secret, std::initializer_list<std::string_view> fields) {
  std::string message;
  for (const std::string_view field : fields) {
    PutFixed(&message, static_cast<uint32_t>(field.size()));
    message += field;
  }
  return HmacSha256(secret.key, message);
}

}  // namespace

ClusterSecret MintClusterSecret(Env& env) {
  ClusterSecret secret;
  secret.cluster = HexEncode(env.RandomBytes(8));
  secret.key = env.RandomBytes(kSecretBytes);
  return secret;
}

bool IsClusterId(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string FormatClusterSecret(const ClusterSecret& secret) {
  return fmt::format(
      "# The secret shared by the servers of one cluster. Whoever reads it can pose as any of them.\n"
      "cluster = \"{}\"\nkey = \"{}\"\n",
      secret.cluster, HexEncode(secret.key));
}

Task<Result<ClusterSecret>> LoadClusterSecret(Fs* fs, std::string path) {
  auto text = co_await ReadFile(fs, path);
  if (!text) {
    Error e = std::move(text).error();
    e.message = fmt::format("cannot read the cluster secret {}: {}", path, e.message);
    if (e.code == Code::kNotFound) e.next_step = "copy it from the directory of the master";
    co_return Fail(std::move(e));
  }
  ClusterSecret secret;
  auto values = ParseToml(*text, path);
  const bool well_formed = values && values->size() == 2 && values->contains("cluster") && values->contains("key") &&
                           IsClusterId(values->at("cluster").text) &&
                           HexDecode(values->at("key").text, &secret.key) && secret.key.size() == kSecretBytes;
  if (!well_formed) {
    co_return Fail(Error(Code::kInvalidArgument, path + " is not a cluster secret")
                       .WithNextStep("copy it again from the directory of the master"));
  }
  secret.cluster = values->at("cluster").text;
  co_return secret;
}

Task<Status> SaveClusterSecret(Fs* fs, std::string path, ClusterSecret secret) {
  const bool exists = co_await fs->Exists(path);
  if (exists) co_return Fail(Code::kAlreadyExists, path + " exists: a cluster secret is never overwritten");
  co_return co_await WriteFileAtomic(fs, path, FormatClusterSecret(secret));
}

std::string HmacSha256(std::string_view key, std::string_view message) {
  std::string out(32, '\0');
  unsigned int size = 0;
  const auto* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                          reinterpret_cast<unsigned char*>(out.data()), &size);
  PICKET_CHECK(done != nullptr && size == out.size());
  return out;
}

bool ConstantTimeEqual(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string MasterProof(const ClusterSecret& secret, std::string_view nonce, std::string_view challenge,
                        ServerId server) {
  return Proof(secret, {"picket master", secret.cluster, nonce, challenge, Number(server.value)});
}

std::string ChunkserverProof(const ClusterSecret& secret, std::string_view challenge, std::string_view nonce,
                             ServerId server, Incarnation incarnation) {
  return Proof(secret, {"picket chunkserver", secret.cluster, challenge, nonce, Number(server.value),
                        Number(incarnation.value)});
}

bool VerifyMasterProof(const ClusterSecret& secret, std::string_view nonce, std::string_view challenge,
                       ServerId server, std::string_view proof) {
  return nonce.size() == kNonceBytes && challenge.size() == kNonceBytes &&
         Proves(proof, MasterProof(secret, nonce, challenge, server));
}

bool VerifyChunkserverProof(const ClusterSecret& secret, std::string_view challenge, std::string_view nonce,
                            ServerId server, Incarnation incarnation, std::string_view proof) {
  return nonce.size() == kNonceBytes && challenge.size() == kNonceBytes &&
         Proves(proof, ChunkserverProof(secret, challenge, nonce, server, incarnation));
}

}  // namespace picket
