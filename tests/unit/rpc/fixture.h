// A client and a server on two simulated nodes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "tests/sim/node.h"

namespace picket {

inline constexpr uint16_t kPort = 7000;

// Answers HELLO with what it was asked and says what it saw. Other methods are the tests' own.
struct TestServer {
  explicit TestServer(Env& e, const std::function<void(TestServer&)>& set_up = {}) : env(e), rpc(e) {
    rpc.Handle(proto::HELLO, [this](RpcRequest r) { return Echo(this, std::move(r)); });
    if (set_up) set_up(*this);
    PICKET_CHECK(rpc.Start(Endpoint("node-0", kPort)).has_value());
  }
  static Task<Result<RpcReply>> Echo(TestServer* self, RpcRequest request) {
    self->peers.insert(request.peer);
    ++self->handled;
    co_return RpcReply(std::move(request.body), std::move(request.payload));
  }

  Env& env;
  RpcServer rpc;
  std::set<std::string> peers;
  int handled = 0;
};

class RpcTest : public testing::Test {
 protected:
  explicit RpcTest(sim::Config config = {}, uint64_t seed = 1) : world(config, seed) {}

  // What the server does besides HELLO, at each of its starts.
  void StartServer(std::function<void(TestServer&)> set_up = {}) {
    server_node.Start([set_up](Env& env) { return std::make_unique<sim::Running<TestServer>>(env, set_up); });
    if (!client_node.alive()) client_node.Start();
  }
  TestServer& server() { return *server_node.As<TestServer>(); }
  Channel& channel() {
    if (!client_node.alive()) client_node.Start();
    if (!channel_) channel_ = std::make_unique<Channel>(client_node, Endpoint("node-0", kPort));
    return *channel_;
  }
  void DestroyChannel() { channel_.reset(); }

  // A call in the background.
  struct Outcome {
    std::optional<Result<RpcReply>> result;
    Mono end;
    bool done() const { return result.has_value(); }
    Code code() const { return !result ? Code::kOk : *result ? Code::kOk : result->error().code; }
  };
  std::shared_ptr<Outcome> Begin(proto::Method method, std::string body, Nanos timeout, Payload payload = {}) {
    auto outcome = std::make_shared<Outcome>();
    client_node.Spawn(
        Keep(&client_node, outcome, channel().Call(method, std::move(body), std::move(payload), timeout)));
    return outcome;
  }
  static Task<> Keep(Env* env, std::shared_ptr<Outcome> outcome, Task<Result<RpcReply>> call) {
    auto result = co_await std::move(call);
    outcome->end = env->Now();
    outcome->result = std::move(result);
  }
  // A call, awaited.
  Result<RpcReply> Call(proto::Method method, std::string body, Nanos timeout, Payload payload = {}) {
    auto outcome = Begin(method, std::move(body), timeout, std::move(payload));
    EXPECT_TRUE(world.RunUntil([&] { return outcome->done(); })) << "the call did not end";
    return outcome->done() ? *outcome->result : Fail(Code::kInternal, "the call did not end");
  }
  Result<RpcReply> Echo(std::string body) { return Call(proto::HELLO, std::move(body), 10s); }

  bool WaitFor(const std::function<bool()>& condition) { return world.RunUntil(condition); }
  template <class T>
  T Run(sim::Node& node, Task<T> task) {
    auto value = sim::RunTask(world, node, std::move(task));
    PICKET_CHECK(value.has_value());
    return std::move(*value);
  }
  // A connection below the RPC layer.
  std::unique_ptr<FrameConn> RawConnect() {
    if (!client_node.alive()) client_node.Start();
    auto conn = Run(client_node, client_node.net().Connect(Endpoint("node-0", kPort), 10s));
    PICKET_CHECK(conn.has_value());
    return std::move(*conn);
  }
  static Frame RequestFrame(uint64_t id, proto::Method method, std::string body, uint32_t timeout_ms,
                            Payload payload = {}) {
    proto::RpcHeader header;
    header.set_id(id);
    header.set_method(method);
    header.set_timeout_ms(timeout_ms);
    header.set_body(std::move(body));
    return Frame(header.SerializeAsString(), std::move(payload));
  }

  sim::World world;
  sim::Node& server_node = world.AddNode("server");
  sim::Node& client_node = world.AddNode("client");

 private:
  std::unique_ptr<Channel> channel_;
};

}  // namespace picket
