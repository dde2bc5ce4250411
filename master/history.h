// Is this master's metadata the continuation of what a chunkserver has seen? Pure.
//
// A restored backup of older metadata would mint numbers again that replicas already bear, and so
// truncate or delete what the lost history wrote (F12, MooseFS#151). An epoch therefore has an identity
// (number + nonce), and the master a row per activation that says where each epoch ended.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "proto/records.pb.h"

namespace picket {

// The newest master a server has seen: its epoch and the highest revision seen with it.
struct SeenMark {
  Epoch epoch;  // number 0: none yet
  uint64_t revision = 0;
};

// Ok, or kHistoryLost (token = the mark's epoch number, mark = this master's) for an epoch above this
// master's, one it has no row of, the same number with another nonce, or a revision beyond where the
// table ends that epoch. `activations` oldest first, the last is this master; `revision` is its newest.
// After an adoption, which an operator decided, every mark of an epoch below that activation's is accepted.
Status JudgeHistory(const std::vector<record::Activation>& activations, uint64_t revision, const SeenMark& seen);

// The epoch of the newest activation that adopted; 0: none did.
uint32_t AdoptedEpoch(const std::vector<record::Activation>& activations);

// An epoch that this history went through.
bool IsOfHistory(const std::vector<record::Activation>& activations, uint32_t epoch);

}  // namespace picket
