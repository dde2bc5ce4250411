#include "client/cli/demo/wire.h"

#include <csignal>
#include <future>
#include <memory>

namespace picket::cli::demo {
namespace {

using Answer = Result<RpcReply>;

PosixOptions EnvironmentOptions() {
  PosixOptions options;
  options.name = "picket demo";
  options.log_level = LogLevel::kError;
  return options;
}

Task<> Deliver(std::shared_ptr<Channel> channel, proto::Method method, std::string body, Payload payload, Nanos timeout,
               std::shared_ptr<std::promise<Answer>> done) {
  Answer answer = co_await channel->Call(method, std::move(body), std::move(payload), timeout);
  done->set_value(std::move(answer));
}

}  // namespace

Wire::Wire() : env_(EnvironmentOptions()), channels_(env_) {
  // Signals are for the command's own thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { env_.Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Wire::~Wire() {
  env_.RequestStop();
  thread_.join();
}

Result<RpcReply> Wire::Send(const Endpoint& to, proto::Method method, std::string body, std::string_view payload,
                            std::chrono::milliseconds timeout) {
  auto done = std::make_shared<std::promise<Answer>>();
  auto answer = done->get_future();
  Payload bytes = payload.empty() ? Payload() : Payload(Buffer::Copy(payload));
  env_.PostFromAnyThread([this, to, method, body = std::move(body), bytes = std::move(bytes), timeout, done]() mutable {
    env_.Spawn(Deliver(channels_.Get(to), method, std::move(body), std::move(bytes), timeout, std::move(done)));
  });
  return answer.get();
}

}  // namespace picket::cli::demo
