#include "client/core/block_check.h"

#include <algorithm>

#include "common/base/crc32c.h"
#include "common/base/mutation.h"

namespace picket {

Result<Buffer> VerifiedBytes(const proto::ReadResponse& answer, const Buffer& payload, uint64_t offset,
                             uint64_t size) {
  const uint64_t blocks = BlocksIn(payload.size());
  if (answer.offset() % kBlockSize != 0 || static_cast<uint64_t>(answer.block_crcs_size()) != blocks) {
    return Fail(Code::kCorrupt, "an answer of " + std::to_string(payload.size()) + " bytes at " +
                                    std::to_string(answer.offset()) + " with " +
                                    std::to_string(answer.block_crcs_size()) + " block checksums");
  }
  for (uint64_t block = 0; block < blocks; ++block) {
    const uint64_t at = block * kBlockSize;
    const Buffer bytes = payload.Slice(at, std::min(kBlockSize, payload.size() - at));
    if (Crc32c(bytes.view()) != answer.block_crcs(static_cast<int>(block)) &&
        !PICKET_MUTANT(client_verify_block)) {
      return Fail(Code::kCorrupt,
                  "block " + std::to_string(answer.offset() / kBlockSize + block) + " does not match its checksum");
    }
  }
  const uint64_t readable_end = std::min(offset + size, std::max(offset, answer.readable_length()));
  if (readable_end == offset) return Buffer();
  if (answer.offset() > offset || answer.offset() + payload.size() < readable_end) {
    return Fail(Code::kCorrupt, "an answer that covers [" + std::to_string(answer.offset()) + ", " +
                                    std::to_string(answer.offset() + payload.size()) + ") where [" +
                                    std::to_string(offset) + ", " + std::to_string(readable_end) + ") was asked");
  }
  return payload.Slice(offset - answer.offset(), readable_end - offset);
}

}  // namespace picket
