#include "chunkserver/replica_copy.h"

#include "chunkserver/blame.h"
#include "chunkserver/mutation.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"
#include "proto/data.pb.h"

namespace picket::cs {
namespace {

Error SourceFailed(Error e, const proto::Hop& source) {
  e.server = source.server();
  e.message = "source " + ToHex(source.server()) + ": " + e.message;
  return e;
}

// The order's bytes from `at`, a block boundary, to `end`, at most one frame of them, verified; the CRC of
// each block.
struct Fetched {
  Buffer bytes;
  std::vector<uint32_t> crcs;
};
Task<Result<Fetched>> Fetch(Channel* channel, ChunkId chunk, const proto::ReconcileSet* set, uint64_t at, uint64_t end,
                            Nanos left) {
  if (left <= 0ns) co_return Fail(Code::kDeadlineExceeded, "no time is left to fill the replica");
  const uint64_t size = end - at;
  proto::ReadReplicaRequest request;
  request.set_chunk(chunk.value);
  request.set_version(set->source_version());
  request.set_offset(at);
  request.set_length(static_cast<uint32_t>(size));
  auto reply = co_await channel->Call(proto::READ_REPLICA, request.SerializeAsString(), Payload(), left);
  if (!reply) co_return Fail(SourceFailed(std::move(reply).error(), set->source()));
  Fetched out;
  out.bytes = reply->payload.buffer();
  if (out.bytes.size() != size) {
    co_return Fail(
        SourceFailed(Error(Code::kShort, "the replica ends before " + std::to_string(at + size)), set->source()));
  }
  for (uint64_t i = 0; i < size; i += kBlockSize) {
    const uint32_t expected = set->block_crcs(static_cast<int>((at + i) / kBlockSize));
    if (Crc32c(out.bytes.data() + i, std::min(kBlockSize, size - i)) != expected && !PICKET_MUTANT(verify_fill)) {
      co_return Fail(SourceFailed(
          Error(Code::kCorrupt, "the bytes at " + std::to_string(at + i) + " are not those of the order"),
          set->source()));
    }
    out.crcs.push_back(expected);
  }
  co_return out;
}

// Where the run of blocks that differ, beginning at `at`, ends: at most one frame further.
uint64_t DifferenceEnd(const ReplicaFile& file, const std::vector<uint32_t>& crcs, uint64_t at, uint64_t length) {
  const uint64_t limit = std::min(at + kMaxFramePayload, length);
  uint64_t end = at + kBlockSize;
  while (end < limit) {
    const uint64_t next = end + kBlockSize;
    if (next <= std::min(limit, file.length()) && file.BlockCrc(end / kBlockSize) == crcs[end / kBlockSize]) break;
    end = next;
  }
  return std::min(end, limit);
}

// Puts blocks at `at`: what lies below the replica's end is replaced, the rest is appended.
Task<Status> Put(std::shared_ptr<ReplicaFile> file, uint64_t at, Fetched blocks) {
  const uint64_t size = blocks.bytes.size();
  const uint64_t own = std::min(file->length() - at, size);
  uint64_t replaced = own;
  if (own < size && own % kBlockSize != 0) {
    // The replica's partial last block, mostly the beginning of the whole one.
    const uint64_t last = own / kBlockSize * kBlockSize;
    const uint32_t crc = Crc32c(blocks.bytes.data() + last, own - last);
    if (crc == file->BlockCrc((at + last) / kBlockSize)) replaced = last;
    blocks.crcs[last / kBlockSize] = crc;
  }
  if (replaced > 0) {
    std::vector<uint32_t> crcs(blocks.crcs.begin(), blocks.crcs.begin() + static_cast<ptrdiff_t>(BlocksIn(replaced)));
    PICKET_CO_TRY(co_await file->Overwrite(at, blocks.bytes.Slice(0, replaced), std::move(crcs)));
  }
  if (own == size) co_return Status();
  // Of a block that was begun, Append goes on with the CRC of what is there.
  blocks.crcs.erase(blocks.crcs.begin(), blocks.crcs.begin() + static_cast<ptrdiff_t>(own / kBlockSize));
  co_return co_await file->Append(blocks.bytes.Slice(own, size - own), std::move(blocks.crcs), true);
}

}  // namespace

Status CheckSet(ChunkId chunk, const proto::ReconcileSet& set, uint64_t chunk_size) {
  if (set.length() <= chunk_size && static_cast<uint64_t>(set.block_crcs_size()) == BlocksIn(set.length())) return {};
  return Fail(Code::kInvalidArgument, "chunk " + ToString(chunk) + ": " + std::to_string(set.block_crcs_size()) +
                                          " block checksums for " + std::to_string(set.length()) + " bytes");
}

Task<Status> MakeEqual(Env* env, ChannelPool* channels, ServerId self, std::shared_ptr<ReplicaFile> file,
                       proto::ReconcileSet set, Mono deadline) {
  const ChunkId chunk = file->slot().chunk;
  const std::vector<uint32_t> crcs(set.block_crcs().begin(), set.block_crcs().end());
  auto equal = co_await file->EqualPrefix(set.length(), crcs);
  if (!equal) co_return Fail(equal.error());
  if (*equal == set.length()) co_return Status();
  if (set.source().server() == self.value) {
    co_return Fail(Error(Code::kShort, "chunk " + ToString(chunk) + ": named as the source, this replica has " +
                                           std::to_string(*equal) + " of the " + std::to_string(set.length()) +
                                           " bytes")
                       .WithTokens(set.length(), *equal)
                       .WithNextStep("choose another source"));
  }
  auto channel = channels->Get(Endpoint(set.source().host(), static_cast<uint16_t>(set.source().port())));
  for (uint64_t at = *equal; at < set.length();) {
    // Readers get a sealed replica's data file as it is: from the first difference on it is given up.
    const bool sealed = file->slot().state == ReplicaState::kSealed;
    const uint64_t end = sealed ? std::min<uint64_t>(at + kMaxFramePayload, set.length())
                                : DifferenceEnd(*file, crcs, at, set.length());
    auto fetched = co_await Fetch(channel.get(), chunk, &set, at, end, NextHopTime(deadline - env->Now()));
    if (!fetched) co_return Fail(std::move(fetched).error());
    if (sealed) PICKET_CO_TRY(co_await file->Cut(at));
    PICKET_CO_TRY(co_await Put(file, at, std::move(*fetched)));
    auto next = co_await file->EqualPrefix(set.length(), crcs, end);
    if (!next) co_return Fail(next.error());
    at = *next;
  }
  co_return Status();
}

}  // namespace picket::cs
