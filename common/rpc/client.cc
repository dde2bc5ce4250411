#include "common/rpc/client.h"

#include "common/rpc/error_proto.h"

namespace picket {

// One connection and the calls on it. Once closed it stays closed; the channel makes another.
class Channel::Connection {
 public:
  Connection(Env& env, Endpoint to, std::unique_ptr<FrameConn> frames)
      : env_(env), to_(std::move(to)), frames_(std::move(frames)) {}

  bool open() const { return open_; }

  // Registers `call`, then sends; the call is done at once when that is impossible.
  static void Send(const std::shared_ptr<Connection>& self, PendingCall* call, proto::Method method, std::string body,
                   Payload payload, Nanos timeout);
  // The call's owner has gone; a reply to it will be late, and dropped.
  void Forget(uint64_t id) {
    auto it = pending_.find(id);
    if (it == pending_.end()) return;
    env_.Cancel(it->second.timer);
    pending_.erase(it);
  }
  void Close(const std::string& why);
  static Task<> Read(std::shared_ptr<Connection> self);

 private:
  struct Pending {
    PendingCall* call = nullptr;
    TimerId timer = 0;
  };

  void Finish(uint64_t id, Result<RpcReply> result) {
    auto it = pending_.find(id);
    if (it == pending_.end()) return;
    env_.Cancel(it->second.timer);
    it->second.call->result_.Set(std::move(result));
    pending_.erase(it);
  }
  void TimeOut(uint64_t id, Nanos timeout);

  Env& env_;
  const Endpoint to_;
  const std::unique_ptr<FrameConn> frames_;
  std::map<uint64_t, Pending> pending_;
  uint64_t last_id_ = 0;
  int timeouts_in_row_ = 0;
  bool open_ = true;
};

// What a channel's calls share; they may outlive the channel.
struct Channel::State {
  State(Env& e, Endpoint t) : env(e), to(std::move(t)) {}

  // One attempt to connect, shared by every call that needs it.
  struct Attempt {
    explicit Attempt(Env& e) : ended(e) {}
    Signal ended;
    std::optional<Status> outcome;
    void End(Status s) {
      if (outcome) return;
      outcome = std::move(s);
      ended.NotifyAll();
    }
  };

  bool connected() const { return connection && connection->open(); }
  void Disconnect(const std::string& why) {
    if (auto dying = std::move(attempt)) dying->End(Fail(Code::kConnectionLost, to.ToString() + ": " + why));
    if (auto dying = std::move(connection)) dying->Close(why);
  }
  static Task<> Dial(std::shared_ptr<State> self, std::shared_ptr<Attempt> mine, Nanos timeout);
  static Task<Status> Connect(std::shared_ptr<State> self, Nanos timeout);
  std::unique_ptr<PendingCall> Start(proto::Method method, std::string body, Payload payload, Nanos timeout);

  Env& env;
  const Endpoint to;
  std::shared_ptr<Connection> connection;
  std::shared_ptr<Attempt> attempt;
  bool destroyed = false;
};

namespace {

std::string Milliseconds(Nanos d) { return std::to_string(d / 1ms) + " ms"; }

}  // namespace

// ---- Connection ------------------------------------------------------------------------------------

void Channel::Connection::Send(const std::shared_ptr<Connection>& self, PendingCall* call, proto::Method method,
                               std::string body, Payload payload, Nanos timeout) {
  const std::string peer = self->to_.ToString();
  if (!self->open_) {
    call->result_.Set(Fail(Code::kConnectionLost, "not connected to " + peer));
    return;
  }
  if (payload.size() > kMaxFramePayload || body.size() > kMaxFrameHeader - kRpcHeaderRoom) {
    call->result_.Set(Fail(Code::kInvalidArgument, proto::Method_Name(method) + " to " + peer + " is too large: " +
                                                       std::to_string(body.size()) + " + " +
                                                       std::to_string(payload.size()) + " bytes"));
    return;
  }
  if (self->frames_->QueuedBytes() > kMaxSendQueueBytes) {
    call->result_.Set(Fail(Code::kUnavailable, "the send queue to " + peer + " is full"));
    return;
  }
  const uint64_t id = ++self->last_id_;
  call->connection_ = self;
  call->id_ = id;

  proto::RpcHeader header;
  header.set_id(id);
  header.set_method(method);
  // Rounded up: 0 would mean that no time is left.
  header.set_timeout_ms(static_cast<uint32_t>(std::clamp<int64_t>((timeout + 999999ns) / 1ms, 1, UINT32_MAX)));
  header.set_body(std::move(body));

  const TimerId timer = self->env_.At(self->env_.Now() + timeout, [weak = std::weak_ptr(self), id, timeout] {
    if (auto connection = weak.lock()) connection->TimeOut(id, timeout);
  });
  self->pending_.emplace(id, Pending{call, timer});
  Frame frame(header.SerializeAsString(), std::move(payload));
  if (!self->frames_->Send(std::move(frame))) self->Close("the connection broke");
}

void Channel::Connection::TimeOut(uint64_t id, Nanos timeout) {
  Finish(id, Fail(Code::kDeadlineExceeded, "no answer from " + to_.ToString() + " within " + Milliseconds(timeout)));
  // The peer's machine may have gone without a word (power loss): only a new connection can tell.
  if (++timeouts_in_row_ >= kMaxTimeoutsInRow) Close("several calls in a row got no answer");
}

void Channel::Connection::Close(const std::string& why) {
  if (!open_) return;
  open_ = false;
  frames_->Close();
  auto lost = std::exchange(pending_, {});
  for (auto& [id, pending] : lost) {
    env_.Cancel(pending.timer);
    pending.call->result_.Set(Fail(Code::kConnectionLost, "connection to " + to_.ToString() + " lost: " + why));
  }
}

Task<> Channel::Connection::Read(std::shared_ptr<Connection> self) {
  while (true) {
    auto frame = co_await self->frames_->Recv();
    if (!self->open_) co_return;
    if (!frame) {
      self->Close(frame.error().message);
      co_return;
    }
    proto::RpcHeader header;
    if (!header.ParseFromString(frame->header) || !header.response()) {
      self->Close("the peer sent something that is not a response");
      co_return;
    }
    self->timeouts_in_row_ = 0;
    if (header.has_error()) {
      self->Finish(header.id(), Fail(FromProto(header.error())));
    } else {
      RpcReply reply(std::move(*header.mutable_body()), std::move(frame->payload));
      self->Finish(header.id(), std::move(reply));
    }
  }
}

// ---- connecting ------------------------------------------------------------------------------------

Task<> Channel::State::Dial(std::shared_ptr<State> self, std::shared_ptr<Attempt> mine, Nanos timeout) {
  auto frames = co_await self->env.net().Connect(self->to, timeout);
  // Disconnect, or the channel's end, has given this attempt up: `frames` closes.
  if (self->attempt != mine) co_return;
  self->attempt.reset();
  if (!frames) {
    mine->End(Fail(frames.error()));
    co_return;
  }
  self->connection = std::make_shared<Connection>(self->env, self->to, std::move(*frames));
  self->env.Spawn(Connection::Read(self->connection));
  mine->End({});
}

Task<Status> Channel::State::Connect(std::shared_ptr<State> self, Nanos timeout) {
  const Mono deadline = self->env.Now() + timeout;
  while (!self->connected()) {
    if (self->destroyed) co_return Fail(Code::kConnectionLost, "the channel to " + self->to.ToString() + " was closed");
    const Nanos left = deadline - self->env.Now();
    if (left <= 0ns) {
      co_return Fail(Code::kDeadlineExceeded,
                     "no connection to " + self->to.ToString() + " within " + Milliseconds(timeout));
    }
    if (!self->attempt) {
      self->attempt = std::make_shared<Attempt>(self->env);
      self->env.Spawn(Dial(self, self->attempt, left));
    }
    auto attempt = self->attempt;
    if (!co_await attempt->ended.WaitFor(left)) continue;
    // Another caller's shorter patience is not ours.
    if (!*attempt->outcome && attempt->outcome->error().code != Code::kDeadlineExceeded) co_return *attempt->outcome;
  }
  co_return Status();
}

std::unique_ptr<PendingCall> Channel::State::Start(proto::Method method, std::string body, Payload payload,
                                                   Nanos timeout) {
  auto call = std::unique_ptr<PendingCall>(new PendingCall(env));
  if (connection) {
    Connection::Send(connection, call.get(), method, std::move(body), std::move(payload), timeout);
  } else {
    call->result_.Set(Fail(Code::kConnectionLost, "not connected to " + to.ToString()));
  }
  return call;
}

// ---- Channel ---------------------------------------------------------------------------------------

Channel::Channel(Env& env, Endpoint to) : state_(std::make_shared<State>(env, std::move(to))) {}

Channel::~Channel() {
  state_->destroyed = true;
  state_->Disconnect("the channel was closed");
}

const Endpoint& Channel::endpoint() const { return state_->to; }
bool Channel::connected() const { return state_->connected(); }
void Channel::Disconnect() { state_->Disconnect("disconnected"); }
Task<Status> Channel::Connect(Nanos timeout) { return State::Connect(state_, timeout); }

std::unique_ptr<PendingCall> Channel::Start(proto::Method method, std::string body, Payload payload, Nanos timeout) {
  return state_->Start(method, std::move(body), std::move(payload), timeout);
}

Task<Result<RpcReply>> Channel::Call(proto::Method method, std::string body, Payload payload, Nanos timeout) {
  return CallOn(state_, method, std::move(body), std::move(payload), timeout);
}

Task<Result<RpcReply>> Channel::CallOn(std::shared_ptr<State> state, proto::Method method, std::string body,
                                       Payload payload, Nanos timeout) {
  const Mono deadline = state->env.Now() + timeout;
  PICKET_CO_TRY(co_await State::Connect(state, timeout));
  const Nanos left = deadline - state->env.Now();
  auto call = state->Start(method, std::move(body), std::move(payload), left);
  co_return co_await call->Wait();
}

Error Channel::DoesNotParse(const State& state) {
  return Error(Code::kCorrupt, "the response of " + state.to.ToString() + " does not parse");
}

// ---- PendingCall -----------------------------------------------------------------------------------

PendingCall::~PendingCall() {
  if (connection_) connection_->Forget(id_);
}

Task<Result<RpcReply>> PendingCall::Wait() { co_return co_await result_.Wait(); }

// ---- ChannelPool -----------------------------------------------------------------------------------

std::shared_ptr<Channel> ChannelPool::Get(const Endpoint& to) {
  if (auto it = channels_.find(to); it != channels_.end()) {
    by_use_.splice(by_use_.end(), by_use_, it->second.place);
    return it->second.channel;
  }
  if (channels_.size() >= kMaxChannels) {
    auto victim = std::find_if(by_use_.begin(), by_use_.end(),
                               [this](const Endpoint& e) { return channels_.at(e).channel.use_count() == 1; });
    if (victim == by_use_.end()) victim = by_use_.begin();
    channels_.erase(*victim);
    by_use_.erase(victim);
  }
  auto channel = std::make_shared<Channel>(env_, to);
  channels_.emplace(to, Entry{channel, by_use_.insert(by_use_.end(), to)});
  return channel;
}

}  // namespace picket
