// What one call promises: its outcomes, its deadline, and that a late reply is nobody's.
#include "tests/unit/rpc/fixture.h"

namespace picket {
namespace {

class CallTest : public RpcTest {};

TEST_F(CallTest, CarriesBodyAndPayloadBothWays) {
  StartServer();
  auto reply = Call(proto::HELLO, "body", 10s, Buffer::Copy("payload"));
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_EQ(reply->body, "body");
  EXPECT_EQ(reply->payload.buffer().view(), "payload");
}

TEST_F(CallTest, CarriesEveryFieldOfAnError) {
  StartServer([](TestServer& s) {
    s.rpc.HandleOrdered(proto::STAT, [](RpcRequest, Responder responder) {
      Error e = Error(Code::kStaleVersion, "chunk 1f").WithTokens(5, 6).WithHolder("h").WithNextStep("ask");
      e.server = 7;
      e.retry_after_ms = 8;
      responder.Reply(Result<RpcReply>(Fail(e)));
    });
  });
  auto reply = Call(proto::STAT, "", 10s);
  ASSERT_FALSE(reply);
  const Error& e = reply.error();
  EXPECT_EQ(e.code, Code::kStaleVersion);
  EXPECT_EQ(e.message, "chunk 1f");
  EXPECT_EQ(e.token, 5u);
  EXPECT_EQ(e.mark, 6u);
  EXPECT_EQ(e.holder, "h");
  EXPECT_EQ(e.next_step, "ask");
  EXPECT_EQ(e.server, 7u);
  EXPECT_EQ(e.retry_after_ms, 8u);
}

TEST_F(CallTest, TypedCallsParseBothWays) {
  StartServer([](TestServer& s) {
    s.rpc.Handle<proto::EpochId, proto::HelloResponse>(
        proto::STAT, [](proto::EpochId request, Mono) -> Task<Result<proto::HelloResponse>> {
          proto::HelloResponse response;
          response.set_role("r" + std::to_string(request.number()));
          co_return response;
        });
  });
  proto::EpochId request;
  request.set_number(4);
  auto response = Run(client_node, channel().Call<proto::HelloResponse>(proto::STAT, request, 10s));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->role(), "r4");

  auto malformed = Call(proto::STAT, "\xff\xff", 10s);
  ASSERT_FALSE(malformed);
  EXPECT_EQ(malformed.error().code, Code::kInvalidArgument);
}

TEST_F(CallTest, ResponseThatDoesNotParseIsCorrupt) {
  StartServer([](TestServer& s) {
    s.rpc.HandleOrdered(proto::STAT, [](RpcRequest, Responder responder) {
      responder.Reply(Result<RpcReply>(RpcReply("\xff\xff", Payload())));
    });
  });
  auto response = Run(client_node, channel().Call<proto::HelloResponse>(proto::STAT, proto::HelloRequest(), 10s));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kCorrupt);
}

TEST_F(CallTest, UnknownMethodIsUnsupportedAndKeepsTheConnection) {
  StartServer();
  auto reply = Call(proto::STAT, "", 10s);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kUnsupported);
  EXPECT_TRUE(Echo("still there"));
  EXPECT_EQ(server().peers.size(), 1u);
}

TEST_F(CallTest, TooLargeARequestIsRefusedBeforeItIsSent) {
  StartServer();
  EXPECT_EQ(Call(proto::HELLO, std::string(kMaxFrameHeader, 'x'), 10s).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Call(proto::HELLO, "", 10s, Buffer::Allocate(kMaxFramePayload + 1)).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(Echo("x"));
  EXPECT_EQ(server().handled, 1);
}

TEST_F(CallTest, TooLargeAResponseIsAnError) {
  StartServer([](TestServer& s) {
    s.rpc.HandleOrdered(proto::STAT, [](RpcRequest, Responder responder) {
      responder.Reply(Result<RpcReply>(RpcReply(std::string(kMaxFrameHeader, 'x'), Payload())));
    });
  });
  EXPECT_EQ(Call(proto::STAT, "", 10s).error().code, Code::kInternal);
  EXPECT_TRUE(Echo("still there"));
}

// The server keeps the answer until it is told.
struct Holding {
  std::vector<Responder> held;
  void operator()(TestServer& s) {
    s.rpc.HandleOrdered(proto::STAT, [this](RpcRequest, Responder r) { held.push_back(std::move(r)); });
  }
};

TEST_F(CallTest, TimesOutOnTimeAndDropsTheLateReply) {
  Holding holding;
  StartServer([&](TestServer& s) { holding(s); });
  ASSERT_TRUE(Echo("connect"));
  const Mono begin = client_node.Now();
  auto late = Begin(proto::STAT, "", 500ms);
  ASSERT_TRUE(WaitFor([&] { return late->done(); }));
  EXPECT_EQ(late->code(), Code::kDeadlineExceeded);
  EXPECT_GE(late->end - begin, 500ms);
  EXPECT_LE(late->end - begin, 501ms);

  ASSERT_EQ(holding.held.size(), 1u);
  holding.held[0].Reply(Result<RpcReply>(RpcReply("late", Payload())));
  auto next = Echo("next");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->body, "next");
  EXPECT_EQ(server().peers.size(), 1u);
  holding.held.clear();
}

TEST_F(CallTest, TimeoutCoversConnecting) {
  StartServer();
  world.Cut(client_node, server_node);
  const Mono begin = client_node.Now();
  auto call = Begin(proto::HELLO, "", 700ms);
  ASSERT_TRUE(WaitFor([&] { return call->done(); }));
  EXPECT_EQ(call->code(), Code::kDeadlineExceeded);
  EXPECT_LE(call->end - begin, 701ms);
}

TEST_F(CallTest, DeadlineTravels) {
  std::optional<Nanos> left;
  StartServer([&](TestServer& s) {
    s.rpc.HandleOrdered(proto::STAT, [&, env = &s.env](RpcRequest request, Responder responder) {
      left = request.Left(*env);
      responder.Reply(Result<RpcReply>(RpcReply()));
    });
  });
  ASSERT_TRUE(Call(proto::STAT, "", 5s));
  ASSERT_TRUE(left);
  EXPECT_LE(*left, 5s);
  EXPECT_GT(*left, 4s);
}

TEST_F(CallTest, FinishedCallsLeaveNoTimerBehind) {
  StartServer();
  ASSERT_TRUE(Echo("connect"));
  const size_t before = client_node.timer_count();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Call(proto::HELLO, "x", 10min));
  EXPECT_EQ(client_node.timer_count(), before);
  {
    auto forgotten = channel().Start(proto::HELLO, "x", Payload(), 10min);
    EXPECT_EQ(client_node.timer_count(), before + 1);
  }
  EXPECT_EQ(client_node.timer_count(), before);
}

TEST_F(CallTest, StartedCallsGoOutInOrderAndAreAwaitedInAny) {
  std::vector<std::string> arrived;
  StartServer([&](TestServer& s) {
    s.rpc.HandleOrdered(proto::STAT, [&](RpcRequest request, Responder responder) {
      arrived.push_back(request.body);
      responder.Reply(Result<RpcReply>(RpcReply(request.body, Payload())));
    });
  });
  ASSERT_TRUE(Run(client_node, channel().Connect(10s)));
  std::vector<std::unique_ptr<PendingCall>> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(channel().Start(proto::STAT, std::to_string(i), Payload(), 10s));
  for (int i = 19; i >= 0; --i) {
    auto reply = Run(client_node, calls[static_cast<size_t>(i)]->Wait());
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->body, std::to_string(i));
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(arrived[static_cast<size_t>(i)], std::to_string(i));
}

TEST_F(CallTest, StartWithoutAConnectionFailsAtOnce) {
  StartServer();
  auto call = channel().Start(proto::HELLO, "", Payload(), 10s);
  EXPECT_EQ(Run(client_node, call->Wait()).error().code, Code::kConnectionLost);
}

}  // namespace
}  // namespace picket
