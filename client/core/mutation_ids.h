// The numbers that make this client's repeated mutations harmless: a sequence for each, and the lowest
// one that still waits for its answer, below which the master may forget.
//
// A number is open from Next to Done. What gave up at its deadline is done too: it is never sent again.
#pragma once

#include <cstdint>
#include <set>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "proto/common.pb.h"

namespace picket {

class MutationIds {
 public:
  explicit MutationIds(ClientId client) : client_(client) {}

  // The master keeps the answers to a client's last 1024 mutations; an open one must not fall behind them.
  static constexpr uint64_t kMaxSpan = 1000;
  bool full() const { return !open_.empty() && last_ - *open_.begin() >= kMaxSpan; }

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
