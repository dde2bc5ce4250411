#include "client/core/master_client.h"

#include "common/rpc/retry.h"

namespace picket {
namespace {

constexpr RetryPolicy kBackoff{.initial = 50ms, .max = 2s};

// Nobody there, no answer, or one that asks to come again with the same request. What a newer attempt
// overtook (SUPERSEDED) needs another request, which is the caller's to make.
bool SendAgain(Code code) {
  switch (code) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kConnectionLost:
    case Code::kSafeMode:
    case Code::kWaitingFor:
      return true;
    default:
      return false;
  }
}

// The transport's own failures: nothing was heard from a master.
bool Silence(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kConnectionLost;
}

// A master uses these codes too, for its disk or for chunkservers; it then says whom or what to do, which
// the transport never does.
bool SaidByMaster(const Error& error) {
  return !Silence(error.code) || error.server != 0 || error.retry_after_ms != 0 || !error.next_step.empty();
}

Error NoMaster(const Endpoint& at, const Error& cause) {
  Error error(Code::kUnavailable, "no master answers at " + at.ToString() + ": " + cause.message);
  error.next_step =
      "check that picket-master runs there and that --master, PICKET_MASTER or the configuration file has its address";
  return error;
}

}  // namespace

MasterClient::MasterClient(Env& env, Endpoint master, ClientId client, Nanos connect_timeout)
    : env_(env),
      client_(client),
      connect_timeout_(connect_timeout),
      channel_(env, std::move(master)),
      ids_(client),
      done_(env) {}

Task<Status> MasterClient::FirstContact(Mono deadline) {
  if (reached_) co_return Status();
  const Mono end = std::min(deadline, env_.Now() + connect_timeout_);
  for (int failures = 1;; ++failures) {
    auto hello = co_await channel_.Call<proto::HelloResponse>(proto::HELLO, proto::HelloRequest(), end - env_.Now());
    if (reached_) co_return Status();
    if (hello) {
      if (hello->role() != "master") {
        Error error(Code::kInvalidArgument, endpoint().ToString() + " is a " + hello->role() + ", not a master");
        error.next_step = "give the address of picket-master";
        co_return Fail(std::move(error));
      }
      reached_ = true;
      co_return Status();
    }
    if (!Silence(hello.error().code)) co_return Fail(hello.error());
    const Nanos delay = NextDelay(kBackoff, failures, env_.Random());
    if (env_.Now() + delay >= end) co_return Fail(NoMaster(endpoint(), hello.error()));
    co_await env_.Sleep(delay);
  }
}

Task<MasterClient::Mutation> MasterClient::NewMutation() {
  while (ids_.full()) co_await done_.Wait();
  co_return Mutation(this, ids_.Next());
}

Task<Result<std::string>> MasterClient::Send(proto::Method method, std::string body, Mono deadline) {
  PICKET_CO_TRY(co_await FirstContact(deadline));
  for (int failures = 1;; ++failures) {
    const Nanos timeout = std::min(deadline - env_.Now(), kAttemptTimeout);
    if (timeout <= 0ns) co_return Fail(Code::kDeadlineExceeded, "no time was left to ask the master");
    auto reply = co_await channel_.Call(method, body, Payload(), timeout);
    if (reply) co_return std::move(reply->body);
    Error error = std::move(reply).error();
    if (!SendAgain(error.code)) co_return Fail(std::move(error));
    const Nanos asked = std::chrono::milliseconds(error.retry_after_ms);
    const Nanos delay = NextDelay(kBackoff, failures, env_.Random(), asked);
    if (env_.Now() + delay >= deadline) {
      if (SaidByMaster(error)) co_return Fail(std::move(error));
      co_return Fail(NoMaster(endpoint(), error));
    }
    co_await env_.Sleep(delay);
  }
}

}  // namespace picket
