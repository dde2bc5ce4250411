#include "common/identity/token_signer.h"

#include <openssl/evp.h>

#include <initializer_list>
#include <memory>

#include "common/base/check.h"
#include "common/base/coding.h"
#include "common/base/mutation.h"

namespace picket {
namespace {

constexpr size_t kSealNonceBytes = 12;
constexpr size_t kSealTagBytes = 16;

// Each field with its length before it; the label, which comes first, keeps the kinds apart.
std::string Labelled(std::string_view label, std::initializer_list<std::string_view> fields) {
  std::string out;
  auto put = [&out](std::string_view field) {
    PutFixed(&out, static_cast<uint32_t>(field.size()));
    out += field;
  };
  put(label);
  for (const std::string_view field : fields) put(field);
  return out;
}

std::string Numbers(std::initializer_list<uint64_t> numbers) {
  std::string out;
  for (const uint64_t number : numbers) PutFixed(&out, number);
  return out;
}

std::string SignedBytes(const std::string& cluster, const proto::WriteToken& t) {
  return Labelled("picket write token",
                  {cluster, Numbers({t.inode(), t.chunk(), t.version(), t.generation(), t.holder(),
                                     static_cast<uint64_t>(t.mode()), t.key()})});
}

std::string SignedBytes(const proto::Sequencer& s) {
  return Labelled("picket sequencer",
                  {s.cluster(), s.path(), Numbers({s.inode(), static_cast<uint64_t>(s.mode()), s.generation(),
                                                   s.holder(), s.key()})});
}

std::string Subkey(const ClusterSecret& secret, std::string_view label) {
  return HmacSha256(secret.key, Labelled(label, {secret.cluster}));
}

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

const unsigned char* Bytes(std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); }
unsigned char* Bytes(std::string& s) { return reinterpret_cast<unsigned char*>(s.data()); }

std::string SealAad(uint64_t id) { return Labelled("picket token key", {Numbers({id})}); }
std::string SealKey(const ClusterSecret& secret) { return Subkey(secret, "picket sealing of token keys"); }

Error Expired(std::string what, uint64_t key, const TokenKeyRing& ring) {
  return Error(Code::kTokenExpired, what + " is signed with key " + ToHex(key) + ", which is not honoured here")
      .WithTokens(key, ring.keys.empty() ? 0 : ring.keys.begin()->first)
      .WithNextStep("ask the master for a new one; a key is retired two rotations after its last use");
}

Error Forged(std::string what) {
  return Error(Code::kTokenForged, what + ": the signature does not fit what it says")
      .WithNextStep("use the token as the master gave it");
}

std::string Name(const proto::WriteToken& token) { return "the token for chunk " + ToHex(token.chunk()); }
std::string Name(const proto::Sequencer& sequencer) { return "the sequencer of " + sequencer.path(); }

}  // namespace

std::string SealTokenKey(const ClusterSecret& secret, uint64_t id, std::string_view key, Env& env) {
  PICKET_CHECK(key.size() == kTokenKeyBytes);
  const std::string sealing_key = SealKey(secret);
  const std::string aad = SealAad(id);
  std::string out = env.RandomBytes(kSealNonceBytes);
  std::string body(key.size(), '\0');
  std::string tag(kSealTagBytes, '\0');
  const Cipher cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int n = 0;
  const bool done =
      cipher && EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Bytes(sealing_key), Bytes(out)) == 1 &&
      EVP_EncryptUpdate(cipher.get(), nullptr, &n, Bytes(aad), static_cast<int>(aad.size())) == 1 &&
      EVP_EncryptUpdate(cipher.get(), Bytes(body), &n, Bytes(key), static_cast<int>(key.size())) == 1 &&
      EVP_EncryptFinal_ex(cipher.get(), Bytes(body) + n, &n) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kSealTagBytes, tag.data()) == 1;
  PICKET_CHECK(done);
  return out + body + tag;
}

Result<std::string> OpenTokenKey(const ClusterSecret& secret, uint64_t id, std::string_view sealed) {
  std::string key(kTokenKeyBytes, '\0');
  bool opened = sealed.size() == kSealNonceBytes + kTokenKeyBytes + kSealTagBytes;
  if (opened) {
    const std::string sealing_key = SealKey(secret);
    const std::string aad = SealAad(id);
    const std::string_view body = sealed.substr(kSealNonceBytes, kTokenKeyBytes);
    std::string tag(sealed.substr(kSealNonceBytes + kTokenKeyBytes));
    const Cipher cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
    int n = 0;
    opened = cipher &&
             EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Bytes(sealing_key), Bytes(sealed)) == 1 &&
             EVP_DecryptUpdate(cipher.get(), nullptr, &n, Bytes(aad), static_cast<int>(aad.size())) == 1 &&
             EVP_DecryptUpdate(cipher.get(), Bytes(key), &n, Bytes(body), static_cast<int>(body.size())) == 1 &&
             EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kSealTagBytes, tag.data()) == 1 &&
             EVP_DecryptFinal_ex(cipher.get(), Bytes(key) + n, &n) == 1;
  }
  if (!opened) {
    return Fail(Error(Code::kCorrupt, "token key " + ToHex(id) + " does not open with the secret of cluster " +
                                          secret.cluster)
                    .WithNextStep("put back the secret this cluster was made with"));
  }
  return key;
}

Result<TokenKeyRing> OpenKeyRing(const ClusterSecret& secret, const proto::KeyRing& ring) {
  TokenKeyRing out;
  out.number = ring.number();
  for (const auto& key : ring.keys()) {
    auto opened = OpenTokenKey(secret, key.id(), key.sealed());
    if (!opened) return Fail(std::move(opened).error());
    out.keys[key.id()] = std::move(*opened);
  }
  return out;
}

void Sign(const std::string& cluster, uint64_t key_id, std::string_view key, proto::WriteToken* token) {
  token->set_key(key_id);
  token->set_signature(HmacSha256(key, SignedBytes(cluster, *token)));
}

void Sign(const std::string& cluster, uint64_t key_id, std::string_view key, proto::Sequencer* sequencer) {
  sequencer->set_cluster(cluster);
  sequencer->set_key(key_id);
  sequencer->set_signature(HmacSha256(key, SignedBytes(*sequencer)));
}

Status Verify(const std::string& cluster, const TokenKeyRing& ring, const proto::WriteToken& token) {
  const auto key = ring.keys.find(token.key());
  if (key == ring.keys.end()) {
    if (PICKET_MUTANT(token_key_known)) return {};
    return Fail(Expired(Name(token), token.key(), ring));
  }
  const std::string expected = HmacSha256(key->second, SignedBytes(cluster, token));
  if (!ConstantTimeEqual(expected, token.signature()) && !PICKET_MUTANT(token_signature)) {
    return Fail(Forged(Name(token)));
  }
  return {};
}

Status Verify(const std::string& cluster, const TokenKeyRing& ring, const proto::Sequencer& sequencer) {
  if (sequencer.cluster() != cluster && !PICKET_MUTANT(sequencer_cluster)) {
    return Fail(Error(Code::kWrongCluster, Name(sequencer) + " is of cluster " + sequencer.cluster() +
                                               ", asked was one of cluster " + cluster)
                    .WithNextStep("ask a server of the sequencer's own cluster"));
  }
  const auto key = ring.keys.find(sequencer.key());
  if (key == ring.keys.end()) return Fail(Expired(Name(sequencer), sequencer.key(), ring));
  const std::string expected = HmacSha256(key->second, SignedBytes(sequencer));
  if (!ConstantTimeEqual(expected, sequencer.signature()) && !PICKET_MUTANT(sequencer_signature)) {
    return Fail(Forged(Name(sequencer)));
  }
  return {};
}

std::string ForwardProof(const ClusterSecret& secret, const Forwarding& f) {
  return HmacSha256(Subkey(secret, "picket forwarding"),
                    Labelled("picket forward", {Numbers({f.chunk.value, f.version.value, f.generation.value,
                                                         f.receiver.value, f.boot.value})}));
}

}  // namespace picket
