// One server of a scripted cluster: keeps what it was asked, and has a twist for any call.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/server.h"

namespace picket {

// What happens to one call instead of the ordinary.
struct Twist {
  enum class Kind { kFail, kSilence, kLoseAnswer, kDelay };
  Kind kind = Kind::kFail;
  Error error;
  Nanos delay{};
  size_t applied_on = 0;  // WRITE_PACKET: members that apply it all the same, in chain order

  static Twist Refuse(Error e, size_t applied = 0) { return {Kind::kFail, std::move(e), {}, applied}; }
  static Twist Silence(size_t applied = 0) { return {Kind::kSilence, {}, {}, applied}; }
  static Twist LoseAnswer() { return {Kind::kLoseAnswer, {}, {}, 0}; }  // done, and never said so
  static Twist Delay(Nanos d) { return {Kind::kDelay, {}, d, 0}; }
};

// Serves every method on one node, keeps what it was asked, applies twists.
class FakeServer {
 public:
  struct Script {
    std::vector<std::pair<proto::Method, std::string>> calls;
    std::map<proto::Method, std::deque<std::optional<Twist>>> twists;  // the n-th call; nullopt: ordinary
    std::map<proto::Method, Twist> always;                             // when no other is left
  };
  using Answer = std::function<Result<RpcReply>(const RpcRequest&, const std::optional<Twist>&)>;

  FakeServer(Env& env, Script& script, Endpoint at, std::vector<proto::Method> methods, Answer answer)
      : env_(env), script_(script), answer_(std::move(answer)), rpc_(env) {
    for (const auto method : methods) {
      rpc_.HandleOrdered(method, [this](RpcRequest request, Responder responder) {
        Take(std::move(request), std::move(responder));
      });
    }
    PICKET_CHECK(rpc_.Start(at).has_value());
  }

 private:
  void Take(RpcRequest request, Responder responder) {
    script_.calls.emplace_back(request.method, request.body);
    std::optional<Twist> twist;
    auto& queue = script_.twists[request.method];
    if (!queue.empty()) {
      twist = queue.front();
      queue.pop_front();
    } else if (auto it = script_.always.find(request.method); it != script_.always.end()) {
      twist = it->second;
    }
    auto reply = answer_(request, twist);
    if (!twist) return responder.Reply(std::move(reply));
    switch (twist->kind) {
      case Twist::Kind::kFail: return responder.Reply(Result<RpcReply>(Fail(twist->error)));
      case Twist::Kind::kSilence:
      case Twist::Kind::kLoseAnswer: mute_.push_back(std::move(responder)); return;
      case Twist::Kind::kDelay: env_.Spawn(Later(&env_, twist->delay, std::move(reply), std::move(responder))); return;
    }
  }
  static Task<> Later(Env* env, Nanos delay, Result<RpcReply> reply, Responder responder) {
    co_await env->Sleep(delay);
    responder.Reply(std::move(reply));
  }

  Env& env_;
  Script& script_;
  Answer answer_;
  std::vector<Responder> mute_;
  RpcServer rpc_;
};

}  // namespace picket
