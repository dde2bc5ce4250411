// What a server promises: order, expiry, one answer, and to survive what is sent to it.
#include "tests/unit/rpc/fixture.h"

namespace picket {
namespace {

class ServerTest : public RpcTest {
 protected:
  // True once the other side has closed.
  bool Closed(FrameConn* conn) {
    auto frame = sim::RunTask(world, client_node, conn->Recv(), 10s);
    return frame && !*frame;
  }
};

TEST_F(ServerTest, ParallelHandlersDoNotWaitForOneAnother) {
  struct Slow {
    static Task<Result<RpcReply>> Run(Env* env, RpcRequest request) {
      if (request.body == "slow") co_await env->Sleep(5s);
      co_return RpcReply(request.body, Payload());
    }
  };
  StartServer([](TestServer& s) {
    s.rpc.Handle(proto::STAT, [env = &s.env](RpcRequest r) { return Slow::Run(env, std::move(r)); });
  });
  auto slow = Begin(proto::STAT, "slow", 60s);
  auto fast = Begin(proto::STAT, "fast", 60s);
  ASSERT_TRUE(WaitFor([&] { return fast->done(); }));
  EXPECT_FALSE(slow->done());
  ASSERT_TRUE(WaitFor([&] { return slow->done(); }));
}

TEST_F(ServerTest, RequestWithNoTimeLeftIsDropped) {
  StartServer();
  auto conn = RawConnect();
  conn->Send(RequestFrame(1, proto::HELLO, "expired", 0));
  conn->Send(RequestFrame(2, proto::HELLO, "alive", 1000));
  auto frame = Run(client_node, conn->Recv());
  ASSERT_TRUE(frame);
  proto::RpcHeader header;
  ASSERT_TRUE(header.ParseFromString(frame->header));
  EXPECT_EQ(header.id(), 2u);
  EXPECT_EQ(server().handled, 1);
}

// The process is stopped for longer than the deadline at every possible step between the arrival of
// a request and its work: no work may begin after the deadline.
TEST(ServerExpiryTest, NoWorkBeginsAfterTheDeadline) {
  int dropped = 0;
  for (int steps = 0; steps < 60; ++steps) {
    sim::World world;
    sim::Node& server_node = world.AddNode("server");
    sim::Node& client_node = world.AddNode("client");
    int begun = 0;
    struct Probe {
      static Task<Result<RpcReply>> Run(Env* env, int* begun, RpcRequest request) {
        ++*begun;
        EXPECT_LT(env->Now(), request.deadline);
        co_return RpcReply();
      }
    };
    server_node.Start([&](Env& env) {
      return std::make_unique<sim::Running<TestServer>>(env, [&](TestServer& s) {
        s.rpc.Handle(proto::STAT,
                     [e = &s.env, &begun](RpcRequest r) { return Probe::Run(e, &begun, std::move(r)); });
      });
    });
    client_node.Start();
    auto channel = std::make_unique<Channel>(client_node, Endpoint("node-0", kPort));
    ASSERT_TRUE(*sim::RunTask(world, client_node, channel->Connect(10s)));
    auto call = channel->Start(proto::STAT, "", Payload(), 1s);
    for (int i = 0; i < steps; ++i) world.Step();
    server_node.Pause();
    world.RunFor(20s);
    server_node.Resume();
    world.RunFor(1s);
    if (begun == 0) ++dropped;
  }
  EXPECT_GT(dropped, 0) << "the pause never fell between arrival and work: this test proves nothing";
}

TEST_F(ServerTest, MalformedFramesCloseOnlyTheirConnection) {
  StartServer();
  ASSERT_TRUE(Echo("good"));
  proto::RpcHeader response;
  response.set_id(1);
  response.set_response(true);
  for (const std::string& header : {std::string("\xff\xff garbage"), response.SerializeAsString()}) {
    auto conn = RawConnect();
    conn->Send(Frame(header, Payload()));
    EXPECT_TRUE(Closed(conn.get()));
  }
  ASSERT_TRUE(Echo("still good"));
  EXPECT_EQ(server().peers.size(), 1u);
}

TEST_F(ServerTest, DroppedResponderAnswersInternal) {
  StartServer([](TestServer& s) { s.rpc.HandleOrdered(proto::STAT, [](RpcRequest, Responder) {}); });
  EXPECT_EQ(Call(proto::STAT, "", 10s).error().code, Code::kInternal);
}

TEST_F(ServerTest, ResponderAnswersOnce) {
  StartServer([](TestServer& s) {
    s.rpc.HandleOrdered(proto::STAT, [](RpcRequest, Responder responder) {
      Responder moved = std::move(responder);
      moved.Reply(Result<RpcReply>(RpcReply("first", Payload())));
      moved.Reply(Result<RpcReply>(RpcReply("second", Payload())));
    });
  });
  auto conn = RawConnect();
  conn->Send(RequestFrame(1, proto::STAT, "", 1000));
  conn->Send(RequestFrame(2, proto::HELLO, "", 1000));
  for (uint64_t id : {1, 2}) {
    auto frame = Run(client_node, conn->Recv());
    ASSERT_TRUE(frame);
    proto::RpcHeader header;
    ASSERT_TRUE(header.ParseFromString(frame->header));
    EXPECT_EQ(header.id(), id);
    if (id == 1) EXPECT_EQ(header.body(), "first");
  }
}

TEST_F(ServerTest, AssignedOverResponderAnswersWhatItHeld) {
  Responder slot;
  StartServer([&](TestServer& s) {
    s.rpc.HandleOrdered(proto::STAT, [&](RpcRequest, Responder responder) { slot = std::move(responder); });
  });
  auto first = Begin(proto::STAT, "", 60s);
  world.RunFor(1s);
  EXPECT_FALSE(first->done());
  auto second = Begin(proto::STAT, "", 60s);
  ASSERT_TRUE(WaitFor([&] { return first->done(); }));
  EXPECT_EQ(first->code(), Code::kInternal);
  EXPECT_FALSE(second->done());
  slot.Reply(Result<RpcReply>(RpcReply("late", Payload())));
  ASSERT_TRUE(WaitFor([&] { return second->done(); }));
  EXPECT_EQ((*second->result)->body, "late");
}

TEST_F(ServerTest, AnswerAfterTheConnectionHasGoneIsHarmless) {
  std::vector<Responder> held;
  StartServer([&](TestServer& s) {
    s.rpc.HandleOrdered(proto::STAT, [&](RpcRequest, Responder r) { held.push_back(std::move(r)); });
  });
  auto call = Begin(proto::STAT, "", 60s);
  ASSERT_TRUE(WaitFor([&] { return !held.empty(); }));
  channel().Disconnect();
  world.RunFor(1s);
  held[0].Reply(Result<RpcReply>(RpcReply("void", Payload())));
  world.RunFor(1s);
  EXPECT_TRUE(Echo("x"));
  held.clear();
}

TEST_F(ServerTest, StopClosesAndRefuses) {
  std::vector<Responder> held;
  StartServer([&](TestServer& s) {
    s.rpc.HandleOrdered(proto::STAT, [&](RpcRequest, Responder r) { held.push_back(std::move(r)); });
  });
  EXPECT_EQ(server().rpc.port(), kPort);
  auto call = Begin(proto::STAT, "", 60s);
  ASSERT_TRUE(WaitFor([&] { return !held.empty(); }));
  server().rpc.Stop();
  ASSERT_TRUE(WaitFor([&] { return call->done(); }));
  EXPECT_EQ(call->code(), Code::kConnectionLost);
  EXPECT_EQ(Echo("").error().code, Code::kUnavailable);
  held[0].Reply(Result<RpcReply>(RpcReply("void", Payload())));
  held.clear();
}

TEST_F(ServerTest, SecondListenerOnThePortFails) {
  StartServer();
  RpcServer other(server_node);
  EXPECT_FALSE(other.Start(Endpoint("node-0", kPort)));
}

}  // namespace
}  // namespace picket
