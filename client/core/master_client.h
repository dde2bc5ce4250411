// Calls to the master that outlast its restarts: each is repeated over reconnects, with growing delays,
// until it has an answer or its deadline passes; a mutation always under the same MutationId.
//
// Until the master answered for the first time a call waits at most connect_timeout, and then fails with
// kUnavailable, naming the address and what to check. Runs on one executor.
#pragma once

#include <memory>
#include <string>

#include "client/core/mutation_ids.h"
#include "common/base/error.h"
#include "common/env/env.h"
#include "common/env/sync.h"
#include "common/rpc/client.h"
#include "proto/rpc.pb.h"

namespace picket {

class MasterClient {
 public:
  MasterClient(Env& env, Endpoint master, ClientId client, Nanos connect_timeout);
  MasterClient(const MasterClient&) = delete;

  const Endpoint& endpoint() const { return channel_.endpoint(); }
  ClientId client() const { return client_; }

  // HELLO: is there a master?
  Task<Status> FirstContact(Mono deadline);

  // A request that may be executed any number of times.
  template <class Response>
  Task<Result<Response>> Read(proto::Method method, const google::protobuf::MessageLite& request, Mono deadline) {
    return Typed<Response>(this, method, request.SerializeAsString(), deadline);
  }
  // A change: the id that every request for it bears, as long as it is wanted.
  class Mutation {
   public:
    Mutation(MasterClient* client, proto::MutationId id) : client_(client), id_(std::move(id)) {}
    Mutation(Mutation&& o) noexcept : client_(std::exchange(o.client_, nullptr)), id_(std::move(o.id_)) {}
    Mutation& operator=(Mutation&&) = delete;
    ~Mutation() {
      if (client_ != nullptr) client_->Done(id_.sequence());
    }
    const proto::MutationId& id() const { return id_; }

   private:
    MasterClient* client_;
    proto::MutationId id_;
  };
  // Waits while too many are open.
  Task<Mutation> NewMutation();

  // A request with an effect.
  template <class Response, class Request>
  Task<Result<Response>> Mutate(proto::Method method, Request request, Mono deadline) {
    const Mutation mutation = co_await NewMutation();
    *request.mutable_mutation() = mutation.id();
    co_return co_await Read<Response>(method, request, deadline);
  }

  // How long one attempt waits for its answer before the connection is doubted.
  static constexpr Nanos kAttemptTimeout = 15s;

 private:
  void Done(uint64_t sequence) {
    ids_.Done(sequence);
    done_.NotifyAll();
  }
  Task<Result<std::string>> Send(proto::Method method, std::string body, Mono deadline);

  template <class Response>
  static Task<Result<Response>> Typed(MasterClient* self, proto::Method method, std::string body, Mono deadline) {
    auto reply = co_await self->Send(method, std::move(body), deadline);
    if (!reply) co_return Fail(std::move(reply).error());
    Response response;
    if (!response.ParseFromString(*reply)) {
      co_return Fail(Code::kCorrupt, "the answer of the master at " + self->endpoint().ToString() + " does not parse");
    }
    co_return response;
  }

  Env& env_;
  const ClientId client_;
  const Nanos connect_timeout_;
  Channel channel_;
  MutationIds ids_;
  Signal done_;
  bool reached_ = false;
};

}  // namespace picket
