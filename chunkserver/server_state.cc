#include "chunkserver/server_state.h"

#include "common/base/coding.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"

namespace picket::cs {
namespace {

constexpr uint64_t kMagic = 0x31565253544b4350;  // "PCKTSRV1"
constexpr uint64_t kFormat = 1;
constexpr size_t kFields = 9;
constexpr size_t kCrcOffset = kServerSlotSize - 4;

}  // namespace

std::string EncodeServerSlot(const ServerNumbers& n) {
  std::string out;
  out.reserve(kServerSlotSize);
  const uint64_t fields[kFields] = {kMagic,
                                    kFormat,
                                    n.sequence,
                                    n.server.value,
                                    n.incarnation.value,
                                    n.instances_reserved,
                                    n.mark.epoch.number,
                                    n.mark.epoch.nonce,
                                    n.mark.revision};
  for (uint64_t v : fields) PutFixed(&out, v);
  out.resize(kCrcOffset);
  PutFixed(&out, Crc32c(out));
  return out;
}

Result<ServerNumbers> DecodeServerSlot(std::string_view bytes) {
  if (bytes.size() < kServerSlotSize) return Fail(Code::kCorrupt, "the slot is cut short");
  bytes = bytes.substr(0, kServerSlotSize);
  uint64_t fields[kFields];
  for (size_t i = 0; i < kFields; ++i) fields[i] = LoadFixed<uint64_t>(bytes.data() + 8 * i);
  if (fields[0] != kMagic || Crc32c(bytes.substr(0, kCrcOffset)) != LoadFixed<uint32_t>(bytes.data() + kCrcOffset)) {
    return Fail(Code::kCorrupt, "the slot does not match its checksum");
  }
  if (fields[1] > kFormat) return Fail(Code::kUnsupported, "the slot has a newer format than this software");
  ServerNumbers n;
  n.sequence = fields[2];
  n.server.value = fields[3];
  n.incarnation.value = fields[4];
  n.instances_reserved = fields[5];
  n.mark.epoch.number = static_cast<uint32_t>(fields[6]);
  n.mark.epoch.nonce = fields[7];
  n.mark.revision = fields[8];
  return n;
}

std::string ServerState::Initial(ServerId server) {
  ServerNumbers first;
  first.server = server;
  // Both slots, so that every later change overwrites.
  return EncodeServerSlot(first) + EncodeServerSlot(first);
}

Task<Status> ServerState::Open(std::string path, ServerId server) {
  path_ = path;
  auto file = co_await env_.fs().Open(path, OpenMode::kReadWrite);
  if (!file) co_return Fail(file.error());
  file_ = std::move(*file);
  Buffer both = Buffer::Allocate(2 * kServerSlotSize);
  auto n = co_await file_->ReadAt(0, both);
  if (!n) co_return Fail(n.error());
  const std::string_view bytes = both.view().substr(0, *n);
  auto a = DecodeServerSlot(bytes);
  auto b = DecodeServerSlot(bytes.size() > kServerSlotSize ? bytes.substr(kServerSlotSize) : std::string_view());
  if (!a && !b) {
    co_return Fail(Error(a.error().code, path + ": neither slot is valid: " + a.error().message)
                       .WithNextStep("restore the file, or init a new directory and let the master re-replicate"));
  }
  numbers_ = a && (!b || a->sequence >= b->sequence) ? *a : *b;
  if (numbers_.server != server) {
    co_return Fail(Error(Code::kInvalidArgument, path + " belongs to server " + ToString(numbers_.server) +
                                                     ", the directory to " + ToString(server))
                       .WithNextStep("do not mix files of two chunkservers"));
  }
  last_instance_ = numbers_.instances_reserved;
  // A process that was killed may have left the newest slot unsynced, and the other is about to go.
  PICKET_CO_TRY(co_await file_->Sync());
  ServerNumbers next = numbers_;
  ++next.incarnation.value;
  co_return co_await Write(next);
}

Task<Result<InstanceId>> ServerState::NextInstance() {
  auto ticket = co_await writing_.Lock();
  if (last_instance_ >= numbers_.instances_reserved) {
    ServerNumbers next = numbers_;
    next.instances_reserved += kInstanceRange;
    PICKET_CO_TRY(co_await Write(next));
  }
  co_return InstanceId(++last_instance_);
}

Task<Status> ServerState::RaiseEpoch(Epoch epoch) {
  if (epoch == numbers_.mark.epoch) co_return Status();
  auto ticket = co_await writing_.Lock();
  const Epoch mark = numbers_.mark.epoch;
  if (epoch == mark) co_return Status();
  if (epoch.number < mark.number) {
    co_return Fail(Error(Code::kStaleEpoch, "epoch " + std::to_string(epoch.number) + " is older than epoch " +
                                                std::to_string(mark.number) + ", which is known here")
                       .WithTokens(epoch.number, mark.number)
                       .WithNextStep("a newer master was active: find it, or restore its metadata"));
  }
  if (epoch.number == mark.number) {
    co_return Fail(Error(Code::kHistoryLost, "epoch " + std::to_string(mark.number) +
                                                 " has another nonce here: the master's metadata is another history")
                       .WithTokens(epoch.nonce, mark.nonce)
                       .WithNextStep("stop the master and restore its newest metadata"));
  }
  ServerNumbers next = numbers_;
  next.mark = EpochMark{epoch, 0};
  co_return co_await Write(next);
}

void ServerState::SeeRevision(const Epoch& epoch, uint64_t revision) {
  if (epoch == numbers_.mark.epoch) numbers_.mark.revision = std::max(numbers_.mark.revision, revision);
}

Task<Status> ServerState::Write(ServerNumbers next) {
  if (failed_) co_return Fail(Code::kIoError, path_ + ": an earlier sync failed; restart the server on a good disk");
  ++next.sequence;
  Buffer slot = Buffer::Copy(EncodeServerSlot(next));
  Status done = co_await file_->WriteAt(next.sequence % 2 * kServerSlotSize, slot);
  if (done && !PICKET_MUTANT(sync_server_state)) done = co_await file_->Sync();
  if (!done) {
    failed_ = true;
    co_return done;
  }
  // Revisions seen meanwhile stay seen.
  if (next.mark.epoch == numbers_.mark.epoch) next.mark.revision = std::max(next.mark.revision, numbers_.mark.revision);
  numbers_ = next;
  co_return Status();
}

}  // namespace picket::cs
