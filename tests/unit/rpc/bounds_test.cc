// Back-pressure: what one connection can make a server hold.
#include "tests/unit/rpc/fixture.h"

namespace picket {
namespace {

class BoundsTest : public RpcTest {
 protected:
  void StartHoldingServer() {
    StartServer([this](TestServer& s) {
      s.rpc.HandleOrdered(proto::STAT, [this](RpcRequest request, Responder responder) {
        most_ = std::max(most_, held_.size() + 1);
        held_.emplace_back(std::move(request), std::move(responder));
      });
    });
  }
  void AnswerAll() {
    for (auto& [request, responder] : std::exchange(held_, {})) responder.Reply(Result<RpcReply>(RpcReply()));
  }
  std::vector<std::pair<RpcRequest, Responder>> held_;
  size_t most_ = 0;
};

TEST_F(BoundsTest, RequestsInFlight) {
  StartHoldingServer();
  constexpr size_t kCalls = RpcServer::kMaxInFlight + 300;
  std::vector<std::shared_ptr<Outcome>> calls;
  for (size_t i = 0; i < kCalls; ++i) calls.push_back(Begin(proto::STAT, "", 10min));
  world.RunFor(5s);
  EXPECT_EQ(held_.size(), RpcServer::kMaxInFlight);
  ASSERT_TRUE(WaitFor([&] {
    AnswerAll();
    return std::ranges::all_of(calls, &Outcome::done);
  }));
  EXPECT_EQ(most_, RpcServer::kMaxInFlight);
  for (auto& call : calls) EXPECT_EQ(call->code(), Code::kOk);
}

TEST_F(BoundsTest, BytesOfRequestsInFlight) {
  StartHoldingServer();
  constexpr size_t kFit = RpcServer::kMaxInFlightBytes / kMaxFramePayload;
  const Buffer packet = Buffer::Allocate(kMaxFramePayload);
  std::vector<std::shared_ptr<Outcome>> calls;
  for (size_t i = 0; i < kFit + 8; ++i) calls.push_back(Begin(proto::STAT, "", 10min, packet));
  world.RunFor(5s);
  EXPECT_EQ(held_.size(), kFit);
  ASSERT_TRUE(WaitFor([&] {
    AnswerAll();
    return std::ranges::all_of(calls, &Outcome::done);
  }));
  EXPECT_LE(most_, kFit);
}

TEST_F(BoundsTest, ResponsesQueuedForAPeerThatDoesNotRead) {
  int answered = 0;
  const Buffer packet = Buffer::Allocate(kMaxFramePayload);
  StartServer([&](TestServer& s) {
    s.rpc.HandleOrdered(proto::STAT, [&](RpcRequest, Responder responder) {
      ++answered;
      responder.Reply(Result<RpcReply>(RpcReply("", packet)));
    });
  });
  auto conn = RawConnect();
  constexpr int kRequests = 200;
  for (uint64_t id = 1; id <= kRequests; ++id) conn->Send(RequestFrame(id, proto::STAT, "", 600'000));
  world.RunFor(5s);
  const int bound = static_cast<int>((RpcServer::kMaxQueuedBytes + world.config().socket_buffer_bytes) / kMaxFramePayload);
  EXPECT_LE(answered, bound + 3);
  EXPECT_GE(answered, 16);
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(Run(client_node, conn->Recv()));
  EXPECT_EQ(answered, kRequests);
}

TEST_F(BoundsTest, RequestsQueuedForAPeerThatDoesNotRead) {
  StartHoldingServer();
  ASSERT_TRUE(Echo("connect"));
  server_node.Pause();
  const Buffer packet = Buffer::Allocate(kMaxFramePayload);
  std::vector<std::shared_ptr<Outcome>> calls;
  for (size_t i = 0; i < 200; ++i) calls.push_back(Begin(proto::STAT, "", 5s, packet));
  world.RunFor(1s);
  const auto refused = std::ranges::count_if(calls, [](auto& c) { return c->code() == Code::kUnavailable; });
  const auto waiting = std::ranges::count_if(calls, [](auto& c) { return !c->done(); });
  EXPECT_GT(refused, 0);
  EXPECT_EQ(refused + waiting, 200);
  EXPECT_LE(waiting, static_cast<int>((kMaxSendQueueBytes + world.config().socket_buffer_bytes) / kMaxFramePayload) + 3);
}

}  // namespace
}  // namespace picket
