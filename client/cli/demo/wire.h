// Single requests, made by hand: what a well-behaved client never sends, such as a packet under an old token
// or an order of an old master. On a thread of its own; calls from any other one block.
#pragma once

#include <google/protobuf/message_lite.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "common/base/error.h"
#include "common/env/posix/posix_env.h"
#include "common/rpc/client.h"
#include "proto/rpc.pb.h"

namespace picket::cli::demo {

class Wire {
 public:
  Wire();
  // REQUIRES: no call is under way.
  ~Wire();
  Wire(const Wire&) = delete;

  // Sent once, never repeated.
  template <class Response>
  Result<Response> Call(const Endpoint& to, proto::Method method, const google::protobuf::MessageLite& request,
                        std::chrono::milliseconds timeout, std::string_view payload = {}) {
    auto reply = Send(to, method, request.SerializeAsString(), payload, timeout);
    if (!reply) return Fail(std::move(reply).error());
    Response response;
    if (!response.ParseFromString(reply->body))
      return Fail(Code::kCorrupt, to.ToString() + ": an answer that does not parse");
    return response;
  }

 private:
  Result<RpcReply> Send(const Endpoint& to, proto::Method method, std::string body, std::string_view payload,
                        std::chrono::milliseconds timeout);

  PosixEnv env_;
  ChannelPool channels_;
  std::thread thread_;
};

}  // namespace picket::cli::demo
