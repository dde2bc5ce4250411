#include "master/orders.h"

namespace picket {

AttemptId Orders::NewAttempt() { return AttemptId(uint64_t{store_.epoch().number} << 32 | ++last_attempt_); }

Result<std::shared_ptr<Channel>> Orders::Prepare(ServerId server, Incarnation incarnation, AttemptId attempt,
                                                 proto::OrderHeader* header) {
  const Server* row = servers_.Find(server);
  if (row == nullptr || row->incarnation != incarnation) {
    Error error(Code::kUnavailable, "chunkserver " + ToString(server) +
                                        (row == nullptr ? " has not registered" : " has restarted in the meantime"));
    error.server = server.value;
    return Fail(std::move(error));
  }
  header->set_cluster(cluster_);
  header->mutable_epoch()->set_number(store_.epoch().number);
  header->mutable_epoch()->set_nonce(store_.epoch().nonce);
  header->set_revision(store_.durable_revision());
  header->set_server(server.value);
  header->set_incarnation(incarnation.value);
  header->set_attempt(attempt.value);
  return channels_.Get(row->endpoint);
}

}  // namespace picket
