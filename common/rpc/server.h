// Serves calls on one listener. Handlers are registered by method before Start.
//
// A request whose caller has given up before the work began is dropped unanswered. A frame that is not
// a request closes its connection. Handlers run as tasks of the environment: they may use the objects
// that registered them, which must live until its teardown (env.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/env/env.h"
#include "common/env/sync.h"
#include "common/rpc/client.h"
#include "proto/rpc.pb.h"

namespace picket {

struct RpcRequest {
  proto::Method method = proto::METHOD_UNKNOWN;
  std::string body;
  Payload payload;       // always a buffer or empty
  Mono deadline;         // on this node's clock: receipt + what was left; nested calls get the rest
  std::string peer;      // for messages only
  RpcRequest() = default;
  Nanos Left(Env& env) const { return deadline > env.Now() ? deadline - env.Now() : Nanos(0); }
};

// Answers one request, once, from anywhere on the executor; dropping it unanswered answers
// kInternal. Harmless when the connection has gone.
class Responder {
 public:
  Responder() = default;
  Responder(Responder&&) noexcept = default;
  Responder& operator=(Responder&& other) noexcept;
  ~Responder();
  void Reply(Result<RpcReply> reply);
  template <class Response>
  void Reply(const Result<Response>& response) {
    if (!response) return Reply(Result<RpcReply>(Fail(response.error())));
    Reply(Result<RpcReply>(RpcReply(response->SerializeAsString(), Payload())));
  }

 private:
  friend class RpcServer;
  struct Conn;
  void Drop();  // ends the request without an answer: its caller has given up
  std::weak_ptr<Conn> conn_;  // empty: answered, moved from, or never armed
  uint64_t id_ = 0;
  size_t bytes_ = 0;  // of the request
};

class RpcServer {
 public:
  // Runs as a task of its own, in parallel with other requests of the same connection.
  using Handler = std::function<Task<Result<RpcReply>>(RpcRequest)>;
  // Called in the order of arrival on each connection, must not block; answers through the responder.
  using OrderedHandler = std::function<void(RpcRequest, Responder)>;

  explicit RpcServer(Env& env);
  ~RpcServer();

  void Handle(proto::Method method, Handler handler);
  void HandleOrdered(proto::Method method, OrderedHandler handler);
  // Typed: parses the request (kInvalidArgument when it does not parse), serialises the response.
  //   server.Handle<proto::StatRequest, proto::StatResponse>(proto::STAT, [this](auto request, auto context) {...});
  template <class Request, class Response>
  void Handle(proto::Method method, std::function<Task<Result<Response>>(Request, Mono deadline)> fn) {
    Handle(method, Handler([fn = std::move(fn)](RpcRequest r) { return Typed<Request, Response>(&fn, std::move(r)); }));
  }

  // Listens and begins to serve.
  Status Start(Endpoint at);
  uint16_t port() const;
  // Stops accepting, closes every connection; handlers still running answer into the void.
  void Stop();

  // Bounds, per connection: requests in flight, their bytes, and queued response bytes. Beyond them
  // nothing more is read from the connection, so that the peer's sending stalls.
  static constexpr size_t kMaxInFlight = 1024;
  static constexpr size_t kMaxInFlightBytes = 64 << 20;
  static constexpr size_t kMaxQueuedBytes = 16 << 20;
  // Connections beyond it are closed at once.
  static constexpr size_t kMaxConnections = 16384;

 private:
  template <class Request, class Response>
  static Task<Result<RpcReply>> Typed(const std::function<Task<Result<Response>>(Request, Mono)>* fn, RpcRequest r) {
    Request request;
    if (!request.ParseFromString(r.body)) {
      co_return Fail(Code::kInvalidArgument, "the request does not parse as its method's message");
    }
    const Mono deadline = r.deadline;
    auto response = co_await (*fn)(std::move(request), deadline);
    if (!response) co_return Fail(response.error());
    std::string body = response->SerializeAsString();
    co_return RpcReply(std::move(body), Payload());
  }
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace picket
