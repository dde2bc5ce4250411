// What every order of the master passes first: it is meant for this boot of this server, and its epoch is
// durable here before anything is done for it (F12, F13).
// Runs on the chunkserver's executor.
#pragma once

#include <string>

#include "chunkserver/fence.h"
#include "chunkserver/server_state.h"
#include "common/env/env.h"
#include "proto/chunkserver_master.pb.h"

namespace picket::cs {

class OrderGate {
 public:
  OrderGate(const Self& self, ServerState& state) : self_(self), state_(state) {}

  // Judges the header and makes its epoch the mark, durably.
  Task<Status> Admit(proto::OrderHeader header);
  // The same judgement inside the chunk's critical section: a newer master may have come meanwhile.
  Status Judge(const proto::OrderHeader& header);
  const Self& self() const { return self_; }
  const Epoch& epoch() const { return state_.mark().epoch; }

 private:
  const Self& self_;
  ServerState& state_;
};

}  // namespace picket::cs
