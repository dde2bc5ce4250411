// The numbers that make this client's repeated mutations harmless: a sequence for each, and the lowest
// one that still waits for its answer, below which the master may forget.
//
// A number is open from Next to Done. What gave up at its deadline is done too: it is never sent again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "proto/common.pb.h"

namespace picket {

class MutationIds {
 public:
  explicit MutationIds(ClientId client) : client_(client) {}

  // The master keeps a bounded number of answers for a client; fewer are ever open at once.
  static constexpr size_t kMaxOpen = 256;
  bool full() const { return open_.size() >= kMaxOpen; }

  // REQUIRES: !full().
  proto::MutationId Next() {
    PICKET_CHECK(!full());
    const uint64_t sequence = ++last_;
    open_.insert(sequence);
    proto::MutationId id;
    id.set_client(client_.value);
    id.set_sequence(sequence);
    id.set_first_unacked(*open_.begin());
    return id;
  }
  void Done(uint64_t sequence) { open_.erase(sequence); }

 private:
  const ClientId client_;
  uint64_t last_ = 0;
  std::set<uint64_t> open_;
};

}  // namespace picket
