// Connecting, breaking, and beginning anew.
#include "tests/unit/rpc/fixture.h"

namespace picket {
namespace {

class ConnectionTest : public RpcTest {
 protected:
  // A server that never answers STAT.
  void StartSilentServer() {
    StartServer([this](TestServer& s) {
      s.rpc.HandleOrdered(proto::STAT, [this](RpcRequest, Responder r) { held_.push_back(std::move(r)); });
    });
  }
  std::vector<Responder> held_;
};

TEST_F(ConnectionTest, NobodyThereIsUnavailable) {
  server_node.Start();  // the machine is up, nobody listens
  EXPECT_EQ(Echo("").error().code, Code::kUnavailable);
}

TEST_F(ConnectionTest, ConcurrentFirstCallsShareOneConnect) {
  StartServer();
  std::vector<std::shared_ptr<Outcome>> calls;
  for (int i = 0; i < 50; ++i) calls.push_back(Begin(proto::HELLO, std::to_string(i), 10s));
  ASSERT_TRUE(WaitFor([&] { return std::ranges::all_of(calls, &Outcome::done); }));
  for (int i = 0; i < 50; ++i) EXPECT_EQ((*calls[static_cast<size_t>(i)]->result)->body, std::to_string(i));
  EXPECT_EQ(server().peers.size(), 1u);
}

TEST_F(ConnectionTest, AnImpatientCallerDoesNotSpoilAnothersConnect) {
  StartServer();
  world.Cut(client_node, server_node);
  auto impatient = Begin(proto::HELLO, "a", 100ms);
  auto patient = Begin(proto::HELLO, "b", 30s);
  ASSERT_TRUE(WaitFor([&] { return impatient->done(); }));
  EXPECT_EQ(impatient->code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(patient->done());
  world.HealAll();
  ASSERT_TRUE(WaitFor([&] { return patient->done(); }));
  EXPECT_EQ(patient->code(), Code::kOk) << (*patient->result).error().ToString();
}

TEST_F(ConnectionTest, ServersDeathLosesTheCallAndTheNextReconnects) {
  StartSilentServer();
  auto call = Begin(proto::STAT, "", 60s);
  ASSERT_TRUE(WaitFor([&] { return !held_.empty(); }));
  server_node.Crash(sim::Node::Death::kProcess);
  held_.clear();
  ASSERT_TRUE(WaitFor([&] { return call->done(); }));
  EXPECT_EQ(call->code(), Code::kConnectionLost);
  EXPECT_FALSE(channel().connected());
  server_node.Restart();
  EXPECT_TRUE(Echo("again"));
  EXPECT_TRUE(channel().connected());
}

TEST_F(ConnectionTest, EveryPendingCallIsLostWithTheConnection) {
  StartSilentServer();
  std::vector<std::shared_ptr<Outcome>> calls;
  for (int i = 0; i < 5; ++i) calls.push_back(Begin(proto::STAT, "", 60s));
  ASSERT_TRUE(WaitFor([&] { return held_.size() == 5; }));
  channel().Disconnect();
  ASSERT_TRUE(WaitFor([&] { return std::ranges::all_of(calls, &Outcome::done); }));
  for (auto& call : calls) EXPECT_EQ(call->code(), Code::kConnectionLost);
  EXPECT_TRUE(Echo("again"));
  held_.clear();
}

// A machine that lost power says nothing: only time-outs tell.
TEST_F(ConnectionTest, TimeoutsInARowGiveTheConnectionUp) {
  StartSilentServer();
  ASSERT_TRUE(Echo("connect"));
  for (int i = 1; i <= kMaxTimeoutsInRow; ++i) {
    EXPECT_TRUE(channel().connected());
    EXPECT_EQ(Call(proto::STAT, "", 100ms).error().code, Code::kDeadlineExceeded);
  }
  EXPECT_FALSE(channel().connected());
  EXPECT_TRUE(Echo("on a new one"));
  EXPECT_EQ(server().peers.size(), 2u);
  held_.clear();
}

TEST_F(ConnectionTest, AnAnswerInBetweenResetsTheCount) {
  StartSilentServer();
  for (int i = 0; i < 3 * kMaxTimeoutsInRow; ++i) {
    ASSERT_TRUE(Echo("alive"));
    EXPECT_EQ(Call(proto::STAT, "", 100ms).error().code, Code::kDeadlineExceeded);
  }
  EXPECT_EQ(server().peers.size(), 1u);
  held_.clear();
}

TEST_F(ConnectionTest, ReconnectsAfterPowerLossWithoutAWord) {
  StartServer();
  ASSERT_TRUE(Echo("connect"));
  server_node.Restart(sim::Node::Death::kPower);
  int attempts = 0;
  while (!Call(proto::HELLO, "x", 1s)) ASSERT_LE(++attempts, kMaxTimeoutsInRow + 1);
}

TEST_F(ConnectionTest, DestroyedChannelEndsItsCalls) {
  StartSilentServer();
  auto call = Begin(proto::STAT, "", 60s);
  ASSERT_TRUE(WaitFor([&] { return !held_.empty(); }));
  DestroyChannel();
  ASSERT_TRUE(WaitFor([&] { return call->done(); }));
  EXPECT_EQ(call->code(), Code::kConnectionLost);
  held_.clear();
}

TEST_F(ConnectionTest, DestroyedChannelEndsCallsThatStillConnect) {
  StartServer();
  world.Cut(client_node, server_node);
  auto call = Begin(proto::HELLO, "", 60s);
  world.RunFor(10ms);
  DestroyChannel();
  world.RunFor(10ms);
  ASSERT_TRUE(call->done());
  EXPECT_EQ(call->code(), Code::kConnectionLost);
}

TEST_F(ConnectionTest, DestroyedPendingCallIsForgotten) {
  StartServer();
  ASSERT_TRUE(Echo("connect"));
  for (int i = 0; i < 10; ++i) channel().Start(proto::HELLO, "forgotten", Payload(), 10s);
  EXPECT_EQ(Echo("kept")->body, "kept");
}

TEST_F(ConnectionTest, GarbageFromTheServerClosesTheConnection) {
  client_node.Start();
  server_node.Start();
  auto listener = server_node.net().Listen(Endpoint("node-0", kPort));
  ASSERT_TRUE(listener);
  for (const std::string& header : {std::string("\xff\xff garbage"), RequestFrame(1, proto::HELLO, "", 1000).header}) {
    auto call = Begin(proto::HELLO, "", 60s);
    auto conn = Run(server_node, (*listener)->Accept());
    ASSERT_TRUE(conn);
    (*conn)->Send(Frame(header, Payload()));
    ASSERT_TRUE(WaitFor([&] { return call->done(); }));
    EXPECT_EQ(call->code(), Code::kConnectionLost);
    EXPECT_FALSE(channel().connected());
  }
  listener->reset();
}

TEST_F(ConnectionTest, TeardownInMidCall) {
  StartSilentServer();
  auto waiting = Begin(proto::STAT, "", 60s);
  ASSERT_TRUE(WaitFor([&] { return !held_.empty(); }));
  server_node.Crash(sim::Node::Death::kPower);
  held_.clear();
  client_node.Crash(sim::Node::Death::kProcess);
  world.RunFor(60s);
  EXPECT_FALSE(waiting->done()) << "a dead process resumes nothing";
  DestroyChannel();
}

}  // namespace
}  // namespace picket
