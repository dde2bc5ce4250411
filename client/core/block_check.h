// Cuts the bytes a reader asked for out of a READ's answer, after every block in it was verified. Pure.
#pragma once

#include <cstdint>

#include "client/core/packet.h"
#include "common/base/error.h"
#include "common/env/buffer.h"
#include "proto/data.pb.h"

namespace picket {

// [offset, offset + size) of the chunk, or fewer bytes where the answer ends at the readable length.
// kCorrupt: a block does not match its CRC, the answer has not the shape of one, or it does not cover
// what was asked although the replica says that it has it.
Result<Buffer> VerifiedBytes(const proto::ReadResponse& answer, const Buffer& payload, uint64_t offset, uint64_t size);

}  // namespace picket
