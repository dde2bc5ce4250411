#include "master/token_keys.h"

#include <algorithm>
#include <vector>

#include "common/base/check.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"
#include "master/keys.h"

namespace picket {
namespace {

// The key that signs; what is above it waits, what is below it has signed.
constexpr std::string_view kSigningCounter = "token_key";

}  // namespace

Task<Status> TokenKeys::Open() {
  PICKET_CHECK(keys_.empty());
  ring_.number = uint64_t{store_.epoch().number} << 32 | 1;
  auto rows = store_.Scan(keys::kTokenKeys, "", kMaxKeys + 1);
  if (!rows) co_return Fail(rows.error());
  for (const MetaRow& row : *rows) {
    const uint64_t id = keys::LastNumber(row.key);
    Key key;
    key.since_ring = ring_.number;
    if (!key.row.ParseFromString(row.value)) co_return Fail(Code::kCorrupt, "token key " + ToHex(id) + " does not parse");
    auto opened = OpenTokenKey(secret_, id, key.row.sealed());
    if (!opened) co_return Fail(opened.error());
    ring_.keys[id] = std::move(*opened);
    keys_[id] = std::move(key);
  }
  auto signing = store_.Get(keys::Counter(kSigningCounter));
  if (!signing) co_return Fail(signing.error());
  signing_ = *signing ? keys::DecodeU64(**signing) : 0;
  if (!keys_.empty() && !keys_.contains(signing_)) {
    co_return Fail(Code::kCorrupt, "the signing key " + ToHex(signing_) + " is not among the token keys");
  }
  rotated_ = env_.Now();

  Batch batch;
  if (keys_.empty()) {
    // Nobody has signed anything yet; every server learns it before it can be a member of anything.
    Mint(&batch);
    SignWith(&batch, newest());
  } else if (!waiting() && keys_.size() < kMaxKeys) {
    Mint(&batch);
  }
  if (batch.empty()) co_return Status();
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  co_return Status();
}

Task<> TokenKeys::Run() {
  while (!store_.failed()) {
    co_await env_.Sleep(kLook);
    auto stepped = co_await Step();
    if (!stepped) PICKET_LOG(env_, kWarning, "the token keys stay as they are: {}", stepped.error().ToString());
  }
}

Task<Status> TokenKeys::Step() {
  Batch batch;
  if (waiting()) {
    if (EveryServerHas(keys_.rbegin()->second)) SignWith(&batch, newest());
  } else if (env_.Now() - rotated_ >= options_.rotation) {
    Rotate(&batch);
  }
  if (batch.empty()) co_return Status();
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  co_return Status();
}

void TokenKeys::Rotate(Batch* batch) {
  rotated_ = env_.Now();
  std::vector<uint64_t> retired;
  for (auto& [id, key] : keys_) {
    if (id == signing_) continue;
    key.row.set_rotations_since(key.row.rotations_since() + 1);
    batch->Put(keys::TokenKey(id), key.row);
    if (key.row.rotations_since() >= kRotations) retired.push_back(id);
  }
  for (const uint64_t id : retired) Retire(batch, id);
  if (keys_.size() < kMaxKeys) Mint(batch);
}

bool TokenKeys::EveryServerHas(const Key& key) const {
  if (PICKET_MUTANT(key_waits_for_servers)) return true;
  // Soon after a start, servers that live have not registered yet.
  if (env_.Now() < servers_.complete_by()) return false;
  return std::ranges::all_of(servers_.all(), [&](const auto& entry) {
    return servers_.LivenessOf(entry.second) == Liveness::kDead || entry.second.key_ring >= key.since_ring;
  });
}

void TokenKeys::Mint(Batch* batch) {
  const uint64_t id = uint64_t{store_.epoch().number} << 32 | ++last_id_;
  const std::string secret = env_.RandomBytes(kTokenKeyBytes);
  if (!keys_.empty()) ++ring_.number;
  Key key;
  key.since_ring = ring_.number;
  key.row.set_sealed(SealTokenKey(secret_, id, secret, env_));
  key.row.set_minted_wall_ns(env_.WallNanos());
  batch->Put(keys::TokenKey(id), key.row);
  ring_.keys[id] = secret;
  keys_[id] = std::move(key);
  PICKET_LOG(env_, kInfo, "token key {} is made", ToHex(id));
}

void TokenKeys::Retire(Batch* batch, uint64_t id) {
  batch->Remove(keys::TokenKey(id));
  keys_.erase(id);
  ring_.keys.erase(id);
  ++ring_.number;
  PICKET_LOG(env_, kInfo, "token key {} is retired", ToHex(id));
}

void TokenKeys::SignWith(Batch* batch, uint64_t id) {
  signing_ = id;
  batch->Put(keys::Counter(kSigningCounter), keys::EncodeU64(id));
  PICKET_LOG(env_, kInfo, "token key {} signs from now on", ToHex(id));
}

void TokenKeys::Sign(proto::WriteToken* token) const {
  picket::Sign(secret_.cluster, signing_, ring_.keys.at(signing_), token);
}

proto::Sequencer TokenKeys::SignSequencer(std::string path, InodeId inode, proto::SessionMode mode,
                                          Generation generation, ClientId holder) const {
  proto::Sequencer sequencer;
  sequencer.set_path(std::move(path));
  sequencer.set_inode(inode.value);
  sequencer.set_mode(mode);
  sequencer.set_generation(generation.value);
  sequencer.set_holder(holder.value);
  picket::Sign(secret_.cluster, signing_, ring_.keys.at(signing_), &sequencer);
  return sequencer;
}

Status TokenKeys::Check(const proto::Sequencer& sequencer) const {
  return Verify(secret_.cluster, ring_, sequencer);
}

proto::KeyRing TokenKeys::Ring() const {
  proto::KeyRing ring;
  ring.set_number(ring_.number);
  for (const auto& [id, key] : keys_) {
    auto* out = ring.add_keys();
    out->set_id(id);
    out->set_sealed(key.row.sealed());
  }
  return ring;
}

}  // namespace picket
