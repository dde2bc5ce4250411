// Calls over frame connections: ids, deadlines, reconnects. Product code, and so simulated.
//
// A call's outcome is a response, the peer's Error, kUnavailable when there was nobody to connect to
// (the request was not sent), or kDeadlineExceeded / kConnectionLost: then the request may or may not have been executed, and may still be executed later (a request on an old
// connection can arrive after its retry on a new one). Callers retry with the same mutation id.
#pragma once

#include <google/protobuf/message.h>

#include <list>
#include <map>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/env/env.h"
#include "common/env/one_shot.h"
#include "common/env/sync.h"
#include "proto/rpc.pb.h"

namespace picket {

struct RpcReply {
  std::string body;
  Payload payload;
  RpcReply() = default;
  RpcReply(std::string b, Payload p) : body(std::move(b)), payload(std::move(p)) {}
};

// A call that has been sent and not yet awaited: lets a caller put frames of several calls on the wire
// in a definite order before it waits for any. Destroying it forgets the call.
class PendingCall;

// The handle of one peer: connects when first used, reconnects after a break, closes when destroyed.
// After kMaxTimeoutsInRow consecutive time-outs the connection is given up and made anew.
class Channel {
 public:
  Channel(Env& env, Endpoint to);
  ~Channel();
  Channel(const Channel&) = delete;

  const Endpoint& endpoint() const;

  // Sends and waits. `timeout` covers connecting too and travels with the request. Ends with
  // kConnectionLost when the channel is destroyed first.
  Task<Result<RpcReply>> Call(proto::Method method, std::string body, Payload payload, Nanos timeout);

  // Typed: serialises the request, parses the response (a response that does not parse is kCorrupt).
  // `payload_in`, when given, receives the response's payload.
  template <class Response>
  Task<Result<Response>> Call(proto::Method method, const google::protobuf::MessageLite& request, Nanos timeout) {
    return CallTyped<Response>(state_, method, request.SerializeAsString(), Payload(), timeout);
  }

  // Makes sure that a connection exists.
  Task<Status> Connect(Nanos timeout);
  bool connected() const;
  // Puts the request on the wire now, in call order; the result is awaited later.
  // Fails at once (the PendingCall is done with kConnectionLost) when not connected.
  std::unique_ptr<PendingCall> Start(proto::Method method, std::string body, Payload payload, Nanos timeout);
  // Closes the connection: every pending call ends with kConnectionLost.
  void Disconnect();

 private:
  friend class PendingCall;
  class Connection;
  struct State;
  static Task<Result<RpcReply>> CallOn(std::shared_ptr<State> state, proto::Method method, std::string body,
                                       Payload payload, Nanos timeout);
  static Error DoesNotParse(const State& state);
  template <class Response>
  static Task<Result<Response>> CallTyped(std::shared_ptr<State> state, proto::Method method, std::string body,
                                          Payload payload, Nanos timeout) {
    auto reply = co_await CallOn(state, method, std::move(body), std::move(payload), timeout);
    if (!reply) co_return Fail(reply.error());
    Response response;
    if (!response.ParseFromString(reply->body)) co_return Fail(DoesNotParse(*state));
    co_return response;
  }

  const std::shared_ptr<State> state_;  // shared with the calls, which may outlive the channel
};

inline constexpr int kMaxTimeoutsInRow = 3;
// Bytes queued for one peer, beyond which a call fails with kUnavailable instead of queueing more.
inline constexpr size_t kMaxSendQueueBytes = 64 << 20;
// What an RpcHeader may hold besides its body.
inline constexpr size_t kRpcHeaderRoom = 64 << 10;

class PendingCall {
 public:
  ~PendingCall();
  PendingCall(const PendingCall&) = delete;
  // At most once.
  Task<Result<RpcReply>> Wait();

 private:
  friend class Channel;
  explicit PendingCall(Env& env) : result_(env) {}
  OneShot<Result<RpcReply>> result_;
  std::shared_ptr<Channel::Connection> connection_;
  uint64_t id_ = 0;
};

// Channels by endpoint, made on demand; a bounded number (the least recently used idle one goes).
class ChannelPool {
 public:
  explicit ChannelPool(Env& env) : env_(env) {}
  // Shared: an evicted channel lives until its last call ends.
  std::shared_ptr<Channel> Get(const Endpoint& to);

  static constexpr size_t kMaxChannels = 4096;

 private:
  Env& env_;
  struct Entry {
    std::shared_ptr<Channel> channel;
    std::list<Endpoint>::iterator place;
  };
  std::map<Endpoint, Entry> channels_;
  std::list<Endpoint> by_use_;  // least recently used first
};

}  // namespace picket
