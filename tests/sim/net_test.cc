// What the simulated network may do to frames, and what it may not.
#include "tests/sim/net.h"

#include <gtest/gtest.h>

#include "tests/sim/node.h"

namespace picket::sim {
namespace {

constexpr uint16_t kPort = 7;

// Collects what arrives on every connection, and answers each frame when told to.
struct Sink : Process {
  Sink(Env& env, std::vector<std::string>* got, bool echo) { env.Spawn(Run(&env, got, echo)); }
  static Task<> Run(Env* env, std::vector<std::string>* got, bool echo) {
    auto listener = env->net().Listen(Endpoint("", kPort));
    if (!listener) co_return;
    for (;;) {
      auto conn = co_await (*listener)->Accept();
      if (!conn) co_return;
      env->Spawn(Serve(std::move(*conn), got, echo));
    }
  }
  static Task<> Serve(std::unique_ptr<FrameConn> conn, std::vector<std::string>* got, bool echo) {
    for (;;) {
      auto frame = co_await conn->Recv();
      if (!frame) co_return;
      got->push_back(frame->header);
      if (echo) conn->Send(std::move(*frame));
    }
  }
};

class SimNetTest : public testing::TestWithParam<uint64_t> {
 protected:
  SimNetTest() : world_(MakeConfig(), GetParam()), server_(world_.AddNode("server")), client_(world_.AddNode("client")) {
    StartServer(false);
    client_.Start();
  }
  static Config MakeConfig() {
    Config c;
    c.loss = 0.05;
    return c;
  }
  void StartServer(bool echo) {
    server_.Start([this, echo](Env& env) { return std::make_unique<Sink>(env, &got_, echo); });
    world_.RunFor(1ms);
  }
  std::unique_ptr<FrameConn> Connect() {
    auto conn = RunTask(world_, client_, client_.net().Connect(Endpoint("node-0", kPort), 5s));
    return conn && *conn ? std::move(**conn) : nullptr;
  }
  Result<Frame> Recv(FrameConn& conn, Nanos limit) {
    auto r = RunTask(world_, client_, conn.Recv(), limit);
    return r ? std::move(*r) : Result<Frame>(Fail(Code::kDeadlineExceeded, "no frame in time"));
  }
  World world_;
  std::vector<std::string> got_;
  Node& server_;
  Node& client_;
};

TEST_P(SimNetTest, IsFifoAndClosingRecallsNothing) {
  auto conn = Connect();
  ASSERT_TRUE(conn);
  std::vector<std::string> sent;
  for (int i = 0; i < 100; ++i) {
    sent.push_back(std::to_string(i));
    EXPECT_TRUE(conn->Send(Frame(sent.back(), Payload())));
  }
  conn.reset();
  world_.RunFor(60s);
  EXPECT_EQ(got_, sent);
}

TEST_P(SimNetTest, ABreakLosesASuffix) {
  auto conn = Connect();
  ASSERT_TRUE(conn);
  for (int i = 0; i < 50; ++i) {
    conn->Send(Frame(std::to_string(i), Payload()));
    world_.RunFor(20us);
  }
  client_.sim_net().ResetOne(0);
  world_.RunFor(60s);
  for (size_t i = 0; i < got_.size(); ++i) EXPECT_EQ(got_[i], std::to_string(i));
  EXPECT_FALSE(conn->Send(Frame("late", Payload())));
  EXPECT_EQ(Recv(*conn, 1s).error().code, Code::kConnectionLost);
}

TEST_P(SimNetTest, AOneWayCutDeliversButNeverAnswers) {
  auto conn = Connect();
  ASSERT_TRUE(conn);
  world_.Cut(server_, client_);
  conn->Send(Frame("executed", Payload()));
  world_.RunFor(10s);
  EXPECT_EQ(got_, std::vector<std::string>{"executed"});
}

TEST_P(SimNetTest, ACutThatHealsInTimeLosesNothing) {
  auto conn = Connect();
  ASSERT_TRUE(conn);
  world_.Cut(client_, server_);
  conn->Send(Frame("1", Payload()));
  world_.RunFor(5s);
  EXPECT_TRUE(got_.empty());
  world_.HealAll();
  world_.RunFor(10s);
  EXPECT_EQ(got_, std::vector<std::string>{"1"});
}

TEST_P(SimNetTest, ALongCutBreaksTheSender) {
  auto conn = Connect();
  ASSERT_TRUE(conn);
  world_.Cut(client_, server_);
  conn->Send(Frame("1", Payload()));
  EXPECT_EQ(Recv(*conn, 60s).error().code, Code::kConnectionLost);
  EXPECT_TRUE(got_.empty());
}

TEST_P(SimNetTest, AKilledServerBreaksAndRefuses) {
  auto conn = Connect();
  ASSERT_TRUE(conn);
  server_.Crash(Node::Death::kProcess);
  EXPECT_EQ(Recv(*conn, 10s).error().code, Code::kConnectionLost);
  auto again = RunTask(world_, client_, client_.net().Connect(Endpoint("node-0", kPort), 5s));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->error().code, Code::kUnavailable);
}

TEST_P(SimNetTest, APowerLossIsSilentUntilSomethingIsSent) {
  auto conn = Connect();
  ASSERT_TRUE(conn);
  world_.RunFor(1s);
  server_.Crash(Node::Death::kPower);
  EXPECT_EQ(Recv(*conn, 60s).error().code, Code::kDeadlineExceeded);  // half-open
  StartServer(false);
  conn->Send(Frame("to the dead", Payload()));
  world_.RunFor(30s);
  EXPECT_FALSE(conn->Send(Frame("x", Payload())));
  EXPECT_TRUE(got_.empty());
}

TEST_P(SimNetTest, AReceiverThatDoesNotReadStallsTheSender) {
  server_.Crash(Node::Death::kProcess);
  server_.Start([](Env& env) {
    struct Deaf : Process {
      explicit Deaf(Env& e) : listener(*e.net().Listen(Endpoint("", kPort))) {}
      std::unique_ptr<Listener> listener;
    };
    return std::make_unique<Deaf>(env);
  });
  auto conn = Connect();
  ASSERT_TRUE(conn);
  for (int i = 0; i < 10; ++i) conn->Send(Frame("", Payload(Buffer::Allocate(1 << 20))));
  world_.RunFor(10s);
  EXPECT_GE(conn->QueuedBytes(), 5u << 20);
  EXPECT_FALSE(RunTask(world_, client_, conn->Drained(1 << 20), 1s));
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimNetTest, testing::Range<uint64_t>(1, 9));

}  // namespace
}  // namespace picket::sim
