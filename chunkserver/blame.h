// Who is to blame: Error::server on errors that cross chunkservers. Pure.
//
// 1. An own failure or refusal names this server.
// 2. Only "the packet does not match its checksums, as received" names nobody: the receiver cannot
//    tell. The sender names itself then: its own copy matched (HDFS-3875).
// 3. No answer names the server that did not give it.
#pragma once

#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "proto/common.pb.h"

namespace picket::cs {

inline Error BlameSelf(Error e, ServerId self) {
  if (e.server == 0) e.server = self.value;
  return e;
}

// kCorrupt with no server.
inline Error CorruptAsReceived(ChunkId chunk, uint64_t offset) {
  return Error(Code::kCorrupt, "chunk " + ToString(chunk) + ": the packet at " + std::to_string(offset) +
                                   " does not match its checksums as received")
      .WithNextStep("check the sender's memory and network");
}

// An error that the call to `hop` ended with.
inline Error BlameHop(Error e, const proto::Hop& hop, ServerId self) {
  if (e.server != 0) return e;
  if (e.code == Code::kCorrupt) {
    e.server = self.value;
    return e;
  }
  e.server = hop.server();
  if (e.code == Code::kDeadlineExceeded || e.code == Code::kConnectionLost || e.code == Code::kUnavailable) {
    e.message = "chunkserver " + ToHex(hop.server()) + ": " + e.message;
    if (e.next_step.empty()) e.next_step = "ask the master for a grant without it";
  }
  return e;
}

}  // namespace picket::cs
