#include "chunkserver/read_service.h"

#include "chunkserver/blame.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"

namespace picket::cs {
namespace {

Error DoesNotParse() { return Error(Code::kInvalidArgument, "the request does not parse as its method's message"); }

std::optional<Version> ReadableFrom(const LockedReplica& l) {
  return l.replica ? l.replica->readable_from : std::nullopt;
}

}  // namespace

Error ReadService::Blame(Error e) const { return BlameSelf(std::move(e), self_.server); }

Task<Status> ReadService::Use(ReplicaPtr replica) {
  Status ready = co_await store_.Use(replica);
  if (!ready && ready.error().code == Code::kCorrupt) changes_.Changed(replica->chunk);
  co_return ready;
}

Task<Error> ReadService::FoundCorrupt(ReplicaPtr replica, std::string why) {
  co_await replica->file->MarkCorrupt(why);
  changes_.Changed(replica->chunk);
  co_return Blame(
      Error(Code::kCorrupt, "chunk " + ToString(replica->chunk) + ": " + why).WithNextStep("read another replica"));
}

Task<Result<RpcReply>> ReadService::Read(RpcRequest request) {
  proto::ReadRequest r;
  if (!r.ParseFromString(request.body)) co_return Fail(Blame(DoesNotParse()));
  LockedReplica l = co_await store_.Locked(ChunkId(r.chunk()));
  if (Status judged = FenceRead(l.marks, self_, ReadableFrom(l), Version(r.version())); !judged) {
    co_return Fail(Blame(std::move(judged).error()));
  }
  if (Status ready = co_await Use(l.replica); !ready) co_return Fail(Blame(std::move(ready).error()));
  auto file = l.replica->file;
  // Under an older version the seal is of an attempt that may never be committed (F11).
  const bool sealed = l.marks.state == ReplicaState::kSealed && l.marks.version == Version(r.version());
  uint64_t readable = file->length();
  if (!sealed && !PICKET_MUTANT(read_known_acked)) readable = std::min(readable, l.replica->known_acked);

  proto::ReadResponse response;
  response.set_readable_length(readable);
  response.set_sealed(sealed);
  const uint64_t begin = r.offset() / kBlockSize * kBlockSize;
  response.set_offset(begin);
  if (r.offset() >= readable || r.length() == 0) {
    co_return RpcReply(response.SerializeAsString(), Payload());
  }
  const uint64_t wanted = BlocksIn(r.offset() - begin + r.length()) * kBlockSize;
  const uint64_t end = std::min({begin + wanted, begin + kMaxRead, readable});
  for (uint64_t block = begin / kBlockSize; block < BlocksIn(end); ++block) {
    response.add_block_crcs(file->BlockCrc(block));
  }
  Payload payload;
  if (sealed) {
    if (Status held = co_await file->HasData(end); !held) {
      if (held.error().code != Code::kCorrupt) co_return Fail(Blame(std::move(held).error()));
      co_return Fail(co_await FoundCorrupt(l.replica, held.error().message));
    }
    payload = file->Slice(begin, end - begin);
  } else {
    uint32_t tail_crc = response.block_crcs(response.block_crcs_size() - 1);
    auto bytes = co_await ReadOpen(l.replica, begin, end, &tail_crc);
    if (!bytes) co_return Fail(Blame(std::move(bytes).error()));
    response.set_block_crcs(response.block_crcs_size() - 1, tail_crc);
    payload = std::move(*bytes);
  }
  co_return RpcReply(response.SerializeAsString(), std::move(payload));
}

Task<Result<Payload>> ReadService::ReadOpen(ReplicaPtr replica, uint64_t begin, uint64_t end, uint32_t* tail_crc) {
  auto file = replica->file;
  // The last block as far as it is written: its CRC is of all of that.
  const uint64_t whole = std::min(BlocksIn(end) * kBlockSize, file->length());
  auto bytes = co_await file->Read(begin, whole - begin);
  if (!bytes) {
    if (bytes.error().code != Code::kCorrupt) co_return Fail(bytes.error());
    co_return Fail(co_await FoundCorrupt(replica, bytes.error().message));
  }
  if (whole != end) {
    const uint64_t last = (end - 1) / kBlockSize * kBlockSize - begin;
    if (Crc32c(bytes->data() + last, whole - begin - last) != *tail_crc) {
      co_return Fail(co_await FoundCorrupt(
          replica, "the bytes at " + std::to_string(begin + last) + " do not match their checksum"));
    }
    *tail_crc = Crc32c(bytes->data() + last, end - begin - last);
  }
  co_return Payload(bytes->Slice(0, end - begin));
}

Task<Result<RpcReply>> ReadService::ReadReplica(RpcRequest request) {
  proto::ReadReplicaRequest r;
  if (!r.ParseFromString(request.body)) co_return Fail(Blame(DoesNotParse()));
  LockedReplica l = co_await store_.Locked(ChunkId(r.chunk()));
  if (Status judged = FenceSource(l.marks, Version(r.version())); !judged) {
    co_return Fail(Blame(std::move(judged).error()));
  }
  if (Status ready = co_await Use(l.replica); !ready) co_return Fail(Blame(std::move(ready).error()));
  auto file = l.replica->file;
  if (r.offset() % kBlockSize != 0 || r.length() > kMaxRead || r.offset() > file->length()) {
    co_return Fail(Blame(Error(Code::kInvalidArgument, "chunk " + ToString(l.marks.chunk) +
                                                           ": a replica is read from a block boundary, at most " +
                                                           std::to_string(kMaxRead) + " bytes at once")));
  }
  const uint64_t size = std::min<uint64_t>(r.length(), file->length() - r.offset());
  proto::ReadReplicaResponse response;
  if (size == 0) co_return RpcReply(response.SerializeAsString(), Payload());
  // Whole blocks are read, so that they can be verified.
  const uint64_t whole = std::min(BlocksIn(r.offset() + size) * kBlockSize, file->length()) - r.offset();
  auto bytes = co_await file->Read(r.offset(), whole);
  if (!bytes) {
    if (bytes.error().code != Code::kCorrupt) co_return Fail(Blame(std::move(bytes).error()));
    co_return Fail(co_await FoundCorrupt(l.replica, bytes.error().message));
  }
  for (uint64_t at = 0; at < whole; at += kBlockSize) {
    const uint64_t n = std::min(kBlockSize, whole - at);
    if (Crc32c(bytes->data() + at, n) != file->BlockCrc((r.offset() + at) / kBlockSize)) {
      co_return Fail(co_await FoundCorrupt(
          l.replica, "the bytes at " + std::to_string(r.offset() + at) + " do not match their checksum"));
    }
    const uint64_t sent = std::min(n, size - std::min(at, size));
    response.add_block_crcs(sent == n ? file->BlockCrc((r.offset() + at) / kBlockSize)
                                      : Crc32c(bytes->data() + at, sent));
  }
  co_return RpcReply(response.SerializeAsString(), Payload(bytes->Slice(0, size)));
}

Task<Result<proto::VerifyReplicaResponse>> ReadService::Verify(proto::VerifyReplicaRequest r, Mono deadline) {
  const uint64_t first = r.offset() / kBlockSize;
  const uint64_t step = kMaxRead / kBlockSize;
  proto::VerifyReplicaResponse response;
  // Step by step, so that a long range does not hold the writers up.
  for (uint64_t block = first;; block += step) {
    if (env_.Now() >= deadline) co_return Fail(Blame(Error(Code::kDeadlineExceeded, "verification was not finished")));
    LockedReplica l = co_await store_.Locked(ChunkId(r.chunk()));
    Status judged = FenceRead(l.marks, self_, ReadableFrom(l), Version(r.version()));
    if (!judged && judged.error().code == Code::kCorrupt) break;
    if (!judged) co_return Fail(Blame(std::move(judged).error()));
    if (Status ready = co_await Use(l.replica); !ready) {
      if (ready.error().code == Code::kCorrupt) break;
      co_return Fail(Blame(std::move(ready).error()));
    }
    auto file = l.replica->file;
    const uint64_t end = std::min(r.offset() + r.length(), file->length());
    if (block * kBlockSize >= end) co_return response;
    auto good = co_await file->VerifyBlocks(block, std::min(step, BlocksIn(end) - block));
    if (good && *good) continue;
    const std::string why = good ? "the bytes at block " + std::to_string(block) + " do not match their checksums"
                                 : "it cannot be read: " + good.error().message;
    (void)co_await FoundCorrupt(l.replica, why);
    break;
  }
  response.set_corrupt(true);
  co_return response;
}

}  // namespace picket::cs
