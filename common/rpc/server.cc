#include "common/rpc/server.h"

#include "common/base/mutation.h"
#include "common/obs/log.h"
#include "common/rpc/error_proto.h"

namespace picket {

// One served connection. Kept by its reading task and, until that ends, by the server.
struct Responder::Conn {
  Conn(Env& e, std::unique_ptr<FrameConn> f) : env(e), frames(std::move(f)), room(e) {}

  bool Full() const {
    return in_flight >= RpcServer::kMaxInFlight || in_flight_bytes >= RpcServer::kMaxInFlightBytes;
  }
  void Send(uint64_t id, Result<RpcReply> reply) {
    proto::RpcHeader header;
    header.set_id(id);
    header.set_response(true);
    Payload payload;
    if (reply && (reply->body.size() > kMaxFrameHeader - kRpcHeaderRoom || reply->payload.size() > kMaxFramePayload)) {
      reply = Fail(Code::kInternal, "the response is too large to send");
    }
    if (reply) {
      header.set_body(std::move(reply->body));
      payload = std::move(reply->payload);
    } else {
      ToProto(reply.error(), header.mutable_error());
    }
    frames->Send(Frame(header.SerializeAsString(), std::move(payload)));
  }
  void End(size_t request_bytes) {
    in_flight_bytes -= request_bytes;
    --in_flight;
    room.NotifyAll();
  }
  void Close() {
    closed = true;
    frames->Close();
    room.NotifyAll();
  }

  Env& env;
  const std::unique_ptr<FrameConn> frames;
  Signal room;  // a request has ended, or the connection was closed
  size_t in_flight = 0;
  size_t in_flight_bytes = 0;
  bool closed = false;
};

namespace {

Result<RpcReply> Unanswered() { return Fail(Code::kInternal, "the request was dropped unanswered"); }

}  // namespace

Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) {
    Reply(Unanswered());
    conn_ = std::exchange(other.conn_, {});
    id_ = other.id_;
    bytes_ = other.bytes_;
  }
  return *this;
}

Responder::~Responder() { Reply(Unanswered()); }

void Responder::Reply(Result<RpcReply> reply) {
  auto conn = std::exchange(conn_, {}).lock();
  if (!conn) return;
  if (!conn->closed) conn->Send(id_, std::move(reply));
  conn->End(bytes_);
}

void Responder::Drop() {
  if (auto conn = std::exchange(conn_, {}).lock()) conn->End(bytes_);
}

struct RpcServer::State {
  explicit State(Env& e) : env(e) {}

  static Task<> Accept(std::shared_ptr<State> self);
  static Task<> Serve(std::shared_ptr<State> self, uint64_t number, std::shared_ptr<Responder::Conn> conn);
  static Task<> Run(std::shared_ptr<State> self, const Handler* handler, RpcRequest request, Responder responder);
  // Hands one request to its handler. False if it is not a request.
  static bool Dispatch(const std::shared_ptr<State>& self, const std::shared_ptr<Responder::Conn>& conn, Frame frame);

  Env& env;
  std::map<proto::Method, Handler> handlers;
  std::map<proto::Method, OrderedHandler> ordered;
  std::unique_ptr<Listener> listener;
  std::map<uint64_t, std::shared_ptr<Responder::Conn>> conns;  // by number, in the order of arrival
  uint64_t last_number = 0;
  bool stopped = false;
};

Task<> RpcServer::State::Accept(std::shared_ptr<State> self) {
  while (!self->stopped) {
    auto frames = co_await self->listener->Accept();
    if (self->stopped) co_return;
    if (!frames) {
      // Out of descriptors, for one: what is open goes on, and what waits is accepted later.
      PICKET_LOG(self->env, kWarning, "cannot accept a connection: {}", frames.error().ToString());
      co_await self->env.Sleep(100ms);
      continue;
    }
    if (self->conns.size() >= kMaxConnections) {
      PICKET_LOG(self->env, kWarning, "refused a connection from {}: {} are open", (*frames)->Peer(), kMaxConnections);
      continue;
    }
    auto conn = std::make_shared<Responder::Conn>(self->env, std::move(*frames));
    const uint64_t number = ++self->last_number;
    self->conns.emplace(number, conn);
    self->env.Spawn(Serve(self, number, conn));
  }
}

Task<> RpcServer::State::Serve(std::shared_ptr<State> self, uint64_t number, std::shared_ptr<Responder::Conn> conn) {
  while (!conn->closed) {
    if (conn->Full()) {
      co_await conn->room.Wait();
      continue;
    }
    if (conn->frames->QueuedBytes() > kMaxQueuedBytes) co_await conn->frames->Drained(kMaxQueuedBytes / 2);
    auto frame = co_await conn->frames->Recv();
    if (conn->closed) break;
    if (!frame) {
      if (frame.error().code == Code::kCorrupt) {
        PICKET_LOG(self->env, kWarning, "closed the connection from {}: {}", conn->frames->Peer(),
                   frame.error().message);
      }
      break;
    }
    if (!Dispatch(self, conn, std::move(*frame))) {
      PICKET_LOG(self->env, kWarning, "closed the connection from {}: it sent a frame that is not a request",
                 conn->frames->Peer());
      break;
    }
  }
  conn->Close();
  self->conns.erase(number);
}

bool RpcServer::State::Dispatch(const std::shared_ptr<State>& self, const std::shared_ptr<Responder::Conn>& conn,
                                Frame frame) {
  proto::RpcHeader header;
  if (!header.ParseFromString(frame.header) || header.response()) return false;

  Responder responder;
  responder.conn_ = conn;
  responder.id_ = header.id();
  responder.bytes_ = frame.header.size() + frame.payload.size();
  ++conn->in_flight;
  conn->in_flight_bytes += responder.bytes_;

  RpcRequest request;
  request.method = header.method();
  request.body = std::move(*header.mutable_body());
  request.payload = std::move(frame.payload);
  request.deadline = self->env.Now() + std::chrono::milliseconds(header.timeout_ms());
  request.peer = conn->frames->Peer();

  if (header.timeout_ms() == 0) {
    responder.Drop();
  } else if (auto it = self->ordered.find(request.method); it != self->ordered.end()) {
    it->second(std::move(request), std::move(responder));
  } else if (auto parallel = self->handlers.find(request.method); parallel != self->handlers.end()) {
    self->env.Spawn(Run(self, &parallel->second, std::move(request), std::move(responder)));
  } else {
    responder.Reply(Result<RpcReply>(Fail(
        Code::kUnsupported, "this server does not serve method " + std::to_string(static_cast<int>(request.method)))));
  }
  return true;
}

Task<> RpcServer::State::Run(std::shared_ptr<State> self, const Handler* handler, RpcRequest request,
                             Responder responder) {
  // The loop may have been busy, or the process paused, since the request came.
  if (!PICKET_MUTANT(rpc_drop_expired) && self->env.Now() >= request.deadline) {
    responder.Drop();
    co_return;
  }
  auto reply = co_await (*handler)(std::move(request));
  responder.Reply(std::move(reply));
}

RpcServer::RpcServer(Env& env) : state_(std::make_shared<State>(env)) {}

RpcServer::~RpcServer() { Stop(); }

void RpcServer::Handle(proto::Method method, Handler handler) {
  PICKET_CHECK(!state_->listener);
  state_->handlers[method] = std::move(handler);
}

void RpcServer::HandleOrdered(proto::Method method, OrderedHandler handler) {
  PICKET_CHECK(!state_->listener);
  state_->ordered[method] = std::move(handler);
}

Status RpcServer::Start(Endpoint at) {
  PICKET_CHECK(!state_->listener && !state_->stopped);
  auto listener = state_->env.net().Listen(std::move(at));
  if (!listener) return Fail(listener.error());
  state_->listener = std::move(*listener);
  state_->env.Spawn(State::Accept(state_));
  return {};
}

uint16_t RpcServer::port() const { return state_->listener ? state_->listener->port() : 0; }

void RpcServer::Stop() {
  state_->stopped = true;
  if (state_->listener) state_->listener->Close();
  auto closing = std::exchange(state_->conns, {});
  for (auto& [number, conn] : closing) conn->Close();
}

}  // namespace picket
