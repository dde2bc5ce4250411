#include "chunkserver/replica_format.h"

#include "common/base/check.h"
#include "common/base/coding.h"
#include "common/base/crc32c.h"

namespace picket::cs {
namespace {

constexpr uint64_t kSlotMagic = 0x31544c53544b4350;      // "PCKTSLT1"
constexpr uint64_t kProgressMagic = 0x31475250544b4350;  // "PCKTPRG1"
constexpr size_t kSlotCrcOffset = kSlotSize - 4;

// Reads fixed-width fields one after the other.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : at_(bytes.data()) {}
  template <class T>
  T Take() {
    const T v = LoadFixed<T>(at_);
    at_ += sizeof(T);
    return v;
  }
  std::string_view Bytes(size_t n) {
    std::string_view v(at_, n);
    at_ += n;
    return v;
  }

 private:
  const char* at_;
};

}  // namespace

std::string_view StateName(ReplicaState state) {
  switch (state) {
    case ReplicaState::kNone:
      return "none";
    case ReplicaState::kCreating:
      return "creating";
    case ReplicaState::kOpen:
      return "open";
    case ReplicaState::kRecovering:
      return "recovering";
    case ReplicaState::kSealed:
      return "sealed";
    case ReplicaState::kCorrupt:
      return "corrupt";
    case ReplicaState::kTombstone:
      return "tombstone";
  }
  return "unknown";
}

std::string EncodeSlot(const Slot& s) {
  PICKET_CHECK(s.cluster.size() <= kMaxClusterName);
  std::string out;
  out.reserve(kSlotSize);
  PutFixed(&out, kSlotMagic);
  PutFixed(&out, kReplicaFormat);
  PutFixed(&out, static_cast<uint32_t>(s.state));
  PutFixed(&out, s.sequence);
  std::string cluster = s.cluster;
  cluster.resize(kMaxClusterName);
  out += cluster;
  for (uint64_t v : {s.chunk.value, s.inode.value, s.version.value, s.generation.value, s.length, s.durable_length}) {
    PutFixed(&out, v);
  }
  PutFixed(&out, s.tail_crc);
  PutFixed(&out, s.digest);
  for (uint64_t v :
       {s.raised_in.value, s.instance.value, s.attempt.value, s.chunk_size, s.sealed_generation.value, s.lineage,
        uint64_t{s.epoch.number}, s.epoch.nonce, s.revision, static_cast<uint64_t>(s.deleted_ns),
        uint64_t{s.overwritten}, s.retired_key, static_cast<uint64_t>(s.retired)}) {
    PutFixed(&out, v);
  }
  out.resize(kSlotCrcOffset);
  PutFixed(&out, Crc32c(out));
  return out;
}

Result<Slot> DecodeSlot(std::string_view bytes) {
  if (bytes.size() < kSlotSize) return Fail(Code::kCorrupt, "the slot is cut short");
  bytes = bytes.substr(0, kSlotSize);
  Cursor in(bytes);
  if (in.Take<uint64_t>() != kSlotMagic) return Fail(Code::kCorrupt, "not a replica slot");
  if (Crc32c(bytes.substr(0, kSlotCrcOffset)) != LoadFixed<uint32_t>(bytes.data() + kSlotCrcOffset)) {
    return Fail(Code::kCorrupt, "the slot does not match its checksum");
  }
  const auto format = in.Take<uint32_t>();
  if (format > kReplicaFormat) {
    return Fail(Code::kUnsupported, "replica format " + std::to_string(format) + " is newer than this software");
  }
  Slot s;
  const auto state = in.Take<uint32_t>();
  if (state == 0 || state > static_cast<uint32_t>(ReplicaState::kTombstone)) {
    return Fail(Code::kCorrupt, "the slot has an unknown state");
  }
  s.state = static_cast<ReplicaState>(state);
  s.sequence = in.Take<uint64_t>();
  s.cluster = in.Bytes(kMaxClusterName);
  s.cluster.resize(s.cluster.find_last_not_of('\0') + 1);
  s.chunk.value = in.Take<uint64_t>();
  s.inode.value = in.Take<uint64_t>();
  s.version.value = in.Take<uint64_t>();
  s.generation.value = in.Take<uint64_t>();
  s.length = in.Take<uint64_t>();
  s.durable_length = in.Take<uint64_t>();
  s.tail_crc = in.Take<uint32_t>();
  s.digest = in.Take<uint32_t>();
  s.raised_in.value = in.Take<uint64_t>();
  s.instance.value = in.Take<uint64_t>();
  s.attempt.value = in.Take<uint64_t>();
  s.chunk_size = in.Take<uint64_t>();
  s.sealed_generation.value = in.Take<uint64_t>();
  s.lineage = in.Take<uint64_t>();
  s.epoch.number = static_cast<uint32_t>(in.Take<uint64_t>());
  s.epoch.nonce = in.Take<uint64_t>();
  s.revision = in.Take<uint64_t>();
  s.deleted_ns = in.Take<int64_t>();
  s.overwritten = in.Take<uint64_t>() != 0;
  s.retired_key = in.Take<uint64_t>();
  s.retired = static_cast<Retired>(std::min<uint64_t>(in.Take<uint64_t>(), static_cast<uint64_t>(Retired::kReplaced)));
  if (!ValidChunkSize(s.chunk_size) || s.length > s.chunk_size || s.durable_length > s.length) {
    return Fail(Code::kCorrupt, "the slot's lengths contradict each other");
  }
  return s;
}

Result<std::optional<Slot>> NewestSlot(std::string_view both) {
  if (both.find_first_not_of('\0') == std::string_view::npos) return std::optional<Slot>();
  auto a = DecodeSlot(both);
  auto b = DecodeSlot(both.size() > kSlotSize ? both.substr(kSlotSize) : std::string_view());
  if (a && b) return std::optional<Slot>(a->sequence > b->sequence ? *std::move(a) : *std::move(b));
  if (a) return std::optional<Slot>(*std::move(a));
  if (b) return std::optional<Slot>(*std::move(b));
  return Fail(b.error().code == Code::kUnsupported ? std::move(b).error() : std::move(a).error());
}

std::string EncodeProgress(const Progress& p) {
  std::string out;
  PutFixed(&out, kProgressMagic);
  PutFixed(&out, p.lineage);
  PutFixed(&out, p.length);
  PutFixed(&out, p.tail_crc);
  PutFixed(&out, Crc32c(out));
  return out;
}

std::optional<Progress> DecodeProgress(std::string_view bytes) {
  if (bytes.size() < kProgressSize) return std::nullopt;
  bytes = bytes.substr(0, kProgressSize);
  Cursor in(bytes);
  if (in.Take<uint64_t>() != kProgressMagic) return std::nullopt;
  if (Crc32c(bytes.substr(0, kProgressSize - 4)) != LoadFixed<uint32_t>(bytes.data() + kProgressSize - 4)) {
    return std::nullopt;
  }
  Progress p;
  p.lineage = in.Take<uint64_t>();
  p.length = in.Take<uint64_t>();
  p.tail_crc = in.Take<uint32_t>();
  return p;
}

}  // namespace picket::cs
