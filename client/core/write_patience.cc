#include "client/core/write_patience.h"

#include "common/rpc/client.h"
#include "common/rpc/retry.h"
#include "proto/rpc.pb.h"

namespace picket {
namespace {

constexpr RetryPolicy kBackoff{.initial = 50ms, .max = 2s};

}  // namespace

Mono WritePatience::Failed() {
  if (!since_) since_ = env_.Now();
  ++failures_;
  return *since_ + limit_;
}

Task<> WritePatience::BackOff(const Error& cause) {
  return env_.Sleep(NextDelay(kBackoff, failures_, env_.Random(), std::chrono::milliseconds(cause.retry_after_ms)));
}

void WritePatience::Progressed() {
  since_.reset();
  failures_ = 0;
}

Task<bool> Answers(Env* env, Endpoint server) {
  Channel channel(*env, std::move(server));
  auto hello = co_await channel.Call(proto::HELLO, proto::HelloRequest().SerializeAsString(), Payload(), kProbeTimeout);
  co_return hello.has_value() || hello.error().code != Code::kDeadlineExceeded;
}

}  // namespace picket
