#include "chunkserver/replica_copy.h"

#include "chunkserver/blame.h"
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

// The order's bytes at `at`, a block boundary, at most one frame of them, verified; the CRC of each block.
struct Fetched {
  Buffer bytes;
  std::vector<uint32_t> crcs;
};
Task<Result<Fetched>> Fetch(Channel* channel, ChunkId chunk, const proto::ReconcileSet* set, uint64_t at, Nanos left) {
  if (left <= 0ns) co_return Fail(Code::kDeadlineExceeded, "no time is left to fill the replica");
  const uint64_t size = std::min<uint64_t>(kMaxFramePayload, set->length() - at);
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
    auto fetched = co_await Fetch(channel.get(), chunk, &set, at, deadline - env->Now());
    if (!fetched) co_return Fail(std::move(fetched).error());
    if (at == *equal) PICKET_CO_TRY(co_await file->Cut(at));
    at += fetched->bytes.size();
    PICKET_CO_TRY(co_await file->Append(fetched->bytes, std::move(fetched->crcs), true));
  }
  co_return Status();
}

}  // namespace picket::cs
