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

}  // namespace

Task<Status> FillFrom(Env* env, ChannelPool* channels, std::shared_ptr<ReplicaFile> file, proto::ReconcileSet set,
                      Mono deadline) {
  const proto::Hop& source = set.source();
  auto channel = channels->Get(Endpoint(source.host(), static_cast<uint16_t>(source.port())));
  proto::ReadReplicaRequest request;
  request.set_chunk(file->slot().chunk.value);
  request.set_version(set.source_version());
  while (file->length() < set.length()) {
    const uint64_t at = file->length();
    const uint64_t size = std::min<uint64_t>(kMaxFramePayload, set.length() - at);
    request.set_offset(at);
    request.set_length(static_cast<uint32_t>(size));
    const Nanos left = deadline - env->Now();
    if (left <= 0ns) co_return Fail(Code::kDeadlineExceeded, "no time is left to fill the replica");
    auto reply = co_await channel->Call(proto::READ_REPLICA, request.SerializeAsString(), Payload(), left);
    if (!reply) co_return Fail(SourceFailed(std::move(reply).error(), source));
    const Buffer bytes = reply->payload.buffer();
    if (bytes.size() != size) {
      co_return Fail(SourceFailed(Error(Code::kShort, "the replica ends before " + std::to_string(at + size)), source));
    }
    std::vector<uint32_t> crcs;
    for (uint64_t i = 0; i < size; i += kBlockSize) {
      const uint32_t expected = set.block_crcs(static_cast<int>((at + i) / kBlockSize));
      if (Crc32c(bytes.data() + i, std::min(kBlockSize, size - i)) != expected && !PICKET_MUTANT(verify_fill)) {
        co_return Fail(SourceFailed(
            Error(Code::kCorrupt, "the bytes at " + std::to_string(at + i) + " are not those of the order"), source));
      }
      crcs.push_back(expected);
    }
    PICKET_CO_TRY(co_await file->Append(bytes, std::move(crcs), true));
  }
  co_return Status();
}

}  // namespace picket::cs
