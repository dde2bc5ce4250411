// Orders to chunkservers: fills in who orders, under which epoch, and which boot of the server is meant.
//
// Every order carries a revision that is durable here: a server keeps the highest it has seen, and a
// master that has lost it afterwards is found out (F12).
// Runs on the master's executor.
#pragma once

#include <string>

#include "common/env/env.h"
#include "common/rpc/client.h"
#include "master/meta_store.h"
#include "master/server_table.h"
#include "proto/chunkserver_master.pb.h"

namespace picket {

class Orders {
 public:
  Orders(Env& env, MetaStore& store, ServerTable& servers, std::string cluster)
      : store_(store), servers_(servers), channels_(env), cluster_(std::move(cluster)) {}

  // A number no order has borne before: epoch << 32 | counter.
  AttemptId NewAttempt();

  // kUnavailable without sending when the server is not registered, or as another boot than the one meant.
  // An error names the server (Error::server).
  template <class Response, class Request>
  Task<Result<Response>> Send(proto::Method method, ServerId server, Incarnation incarnation, AttemptId attempt,
                              Request request, Nanos timeout) {
    auto channel = Prepare(server, incarnation, attempt, request.mutable_header());
    if (!channel) co_return Fail(channel.error());
    auto response = co_await (*channel)->template Call<Response>(method, request, timeout);
    if (!response) {
      Error error = std::move(response).error();
      if (error.server == 0) error.server = server.value;
      co_return Fail(std::move(error));
    }
    co_return std::move(*response);
  }

 private:
  Result<std::shared_ptr<Channel>> Prepare(ServerId server, Incarnation incarnation, AttemptId attempt,
                                           proto::OrderHeader* header);

  MetaStore& store_;
  ServerTable& servers_;
  ChannelPool channels_;
  const std::string cluster_;
  uint32_t last_attempt_ = 0;
};

}  // namespace picket
