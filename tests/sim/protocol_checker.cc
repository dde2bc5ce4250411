#include "tests/sim/protocol_checker.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/crc32c.h"

namespace picket::sim {

void ProtocolChecker::Fail(const char* invariant, const ProtocolEvent& e, std::string why) {
  world_.Fail(invariant, fmt::format("{} chunk {} server {} version {}: {}", KindName(e.kind), ToString(e.chunk),
                                     ToString(e.server), e.version.ToString(), why));
}

void ProtocolChecker::OnEvent(const ProtocolEvent& e) {
  using Kind = ProtocolEvent::Kind;
  ++events_;
  switch (e.kind) {
    case Kind::kEpochActivated:
      if (e.value <= epoch_) Fail("epoch-order", e, fmt::format("epoch {} after {}", e.value, epoch_));
      epoch_ = e.value;
      return;
    case Kind::kGenerationMinted:
      if (!generations_.insert(e.generation).second) Fail("generation-reuse", e, e.generation.ToString());
      return;
    case Kind::kRecoveryBegun:
      return OnRecoveryBegun(e);
    default:
      break;
  }
  Chunk& chunk = chunks_[e.chunk];
  switch (e.kind) {
    case Kind::kVersionMinted:
      // Two of one commit may be told of in either order, so only a repeat is wrong.
      if (!chunk.minted.insert(e.version).second) Fail("version-reuse", e, "minted before");
      return;
    case Kind::kVersionCommitted:
      OnCommitted(e, &chunk);
      return;
    case Kind::kLeaseGranted: {
      auto [it, fresh] = chunk.primary.emplace(e.version, e.server);
      if (!fresh && it->second != e.server) Fail("one-primary", e, "the primary was " + ToString(it->second));
      return;
    }
    case Kind::kReplicaCreated:
    case Kind::kMarkRaised:
      OnMark(e, &chunk);
      return;
    case Kind::kMutationApplied:
    case Kind::kOverwriteApplied:
      OnApplied(e, &chunk);
      return;
    case Kind::kReplicaTruncated:
      chunk.replicas[e.server].length = e.length;
      return;
    case Kind::kReplicaSealed:
      OnSealed(e, &chunk);
      return;
    case Kind::kReplicaDeleted:
      chunk.replicas[e.server].length = 0;
      return;
    case Kind::kAcknowledged:
      OnAcknowledged(e, &chunk, e.length);
      return;
    case Kind::kRecordAcknowledged:
      // Found in a sealed chunk, it bears no version.
      if (e.version) OnAcknowledged(e, &chunk, e.length + 1);
      return;
    case Kind::kChunkTruncated:
      chunk.acknowledged = std::min(chunk.acknowledged, e.length);
      chunk.truncated = e.version;
      chunk.truncated_to = e.length;
      return;
    case Kind::kChunkSealed:
      OnSealed(e, &chunk);
      CheckLoss(e, &chunk, e.length);
      return;
    default:
      return;
  }
}

void ProtocolChecker::OnMark(const ProtocolEvent& e, Chunk* chunk) {
  Replica& replica = chunk->replicas[e.server];
  const bool created = e.kind == ProtocolEvent::Kind::kReplicaCreated;
  if (e.version < replica.mark) Fail("mark-order", e, "the mark was " + replica.mark.ToString());
  if (!chunk->minted.contains(e.version)) Fail("mark-order", e, "never minted");
  // Restored from quarantine: as it was, and nothing is claimed of its bytes before the next mark.
  const bool restored = created && replica.mark && e.version <= replica.mark;
  replica.mark = std::max(replica.mark, e.version);
  replica.generation = std::max(replica.generation, e.generation);
  replica.length = replica.durable = created ? 0 : e.value;
  if (created && !restored) replica.damaged = false;
  uint64_t& applied = replica.applied[e.version];
  applied = std::max(applied, replica.length);
}

void ProtocolChecker::OnApplied(const ProtocolEvent& e, Chunk* chunk) {
  Replica& replica = chunk->replicas[e.server];
  const bool overwrite = e.kind == ProtocolEvent::Kind::kOverwriteApplied;
  if (e.version != replica.mark) Fail("stale-apply", e, "the mark is " + replica.mark.ToString());
  if (e.generation < replica.generation) {
    Fail("stale-writer", e,
         fmt::format("session {}, after {}", e.generation.ToString(), replica.generation.ToString()));
  }
  if (!overwrite) replica.length = e.length;
  if (overwrite) chunk->overwritten.insert(e.version);
  uint64_t& applied = replica.applied[e.version];
  applied = std::max(applied, e.length);
  // What rot has changed since says nothing of the bytes that were applied.
  if (replica.damaged) return;
  const uint32_t crc = Crc32c(cluster_.tail(e.server, e.chunk, e.length, kTail));
  auto [it, fresh] = chunk->serials.emplace(std::pair(e.version, e.value), Applied{e.length, crc, e.server});
  if (fresh) return;
  const bool same = it->second.crc == crc || chunk->overwritten.contains(e.version);
  if (it->second.end != e.length || !same) {
    Fail("serial-bytes", e,
         fmt::format("serial {} ends at {} with CRC {:08x}, on server {} at {} with {:08x}", e.value, e.length, crc,
                     ToString(it->second.by), it->second.end, it->second.crc));
  }
}

void ProtocolChecker::OnRecoveryBegun(const ProtocolEvent& e) {
  Generation& newest = recoveries_[e.value];
  if (e.generation <= newest)
    Fail("recovery-order", e, fmt::format("{} after {}", e.generation.ToString(), newest.ToString()));
  newest = std::max(newest, e.generation);
}

void ProtocolChecker::OnCommitted(const ProtocolEvent& e, Chunk* chunk) {
  if (!chunk->minted.contains(e.version)) Fail("commit-order", e, "never minted");
  if (!chunk->committed.empty() && e.version <= chunk->committed.rbegin()->first) {
    Fail("commit-order", e, "after " + chunk->committed.rbegin()->first.ToString());
  }
  chunk->committed[e.version] = e.value;
  // The members are among those that answered at this mark.
  uint64_t length = 0;
  for (auto& [server, replica] : chunk->replicas) {
    if (replica.mark == e.version) length = std::max(length, replica.length);
  }
  CheckLoss(e, chunk, length);
}

void ProtocolChecker::OnAcknowledged(const ProtocolEvent& e, Chunk* chunk, uint64_t end) {
  // An answer may have been on its way since before a truncation.
  const uint64_t left = e.version < chunk->truncated ? std::min(end, chunk->truncated_to) : end;
  chunk->acknowledged = std::max(chunk->acknowledged, left);
  const auto committed = chunk->committed.find(e.version);
  if (committed == chunk->committed.end()) return Fail("ack-members", e, "the version was never committed");
  uint64_t have = 0;
  for (auto& [server, replica] : chunk->replicas) {
    auto it = replica.applied.find(e.version);
    if (it != replica.applied.end() && it->second >= end) ++have;
  }
  if (have < committed->second) {
    Fail("ack-members", e, fmt::format("{} of {} members applied {} bytes", have, committed->second, end));
  }
}

void ProtocolChecker::OnSealed(const ProtocolEvent& e, Chunk* chunk) {
  if (e.kind == ProtocolEvent::Kind::kReplicaSealed) chunk->replicas[e.server].length = e.length;
  auto [it, fresh] = chunk->seals.emplace(e.version, std::pair(e.length, e.value));
  if (!fresh && it->second != std::pair(e.length, e.value)) {
    Fail("seal-digest", e,
         fmt::format("length {} digest {:08x}, before {} and {:08x}", e.length, e.value, it->second.first,
                     it->second.second));
  }
}

void ProtocolChecker::CheckLoss(const ProtocolEvent& e, Chunk* chunk, uint64_t length) {
  if (length >= chunk->acknowledged) return;
  for (auto& [server, replica] : chunk->replicas) {
    if (replica.damaged || replica.length < chunk->acknowledged || !cluster_.lives(server)) continue;
    Fail("acked-lost", e,
         fmt::format("{} bytes are left of {} acknowledged, and server {} has {}", length, chunk->acknowledged,
                     ToString(server), replica.length));
    return;
  }
  // All that had them are gone: only what was synced was promised beyond that.
  world_.Note(nullptr, LogLevel::kWarning,
              fmt::format("chunk {}: lawfully lost {} of {} acknowledged bytes", ToString(e.chunk),
                          chunk->acknowledged - length, chunk->acknowledged));
  chunk->acknowledged = length;
}

void ProtocolChecker::OnPowerLoss(ServerId server) {
  for (auto& [id, chunk] : chunks_) {
    auto it = chunk.replicas.find(server);
    if (it != chunk.replicas.end()) it->second.length = std::min(it->second.length, it->second.durable);
  }
}

void ProtocolChecker::OnDamage(ServerId server) {
  for (auto& [id, chunk] : chunks_) {
    auto it = chunk.replicas.find(server);
    if (it != chunk.replicas.end()) it->second.damaged = true;
  }
}

uint64_t ProtocolChecker::acknowledged_chunks() const {
  return static_cast<uint64_t>(std::ranges::count_if(chunks_, [](auto& c) { return c.second.acknowledged > 0; }));
}

}  // namespace picket::sim
