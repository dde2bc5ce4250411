// Many calls on a bad network, with a server that dies: every call ends, every answer is the asker's.
#include "tests/unit/rpc/fixture.h"

namespace picket {
namespace {

sim::Config BadNetwork() {
  sim::Config config;
  config.loss = 0.05;
  config.tail_chance = 0.1;
  config.log_level = LogLevel::kError;
  return config;
}

class SoakTest : public testing::TestWithParam<uint64_t> {};

struct Caller {
  static Task<> Run(Env* env, Channel* channel, uint64_t name, Rng rng, int* ended, int* answered) {
    for (int i = 0; i < 20; ++i) {
      const std::string body = std::to_string(name) + "." + std::to_string(i);
      const Nanos timeout = std::chrono::milliseconds(rng.Range(1, 800));
      const Mono begin = env->Now();
      auto reply = co_await channel->Call(proto::HELLO, body, Buffer::Copy(body), timeout);
      EXPECT_LE(env->Now() - begin, timeout + 5ms);
      if (reply) {
        EXPECT_EQ(reply->body, body);
        EXPECT_EQ(reply->payload.buffer().view(), body);
        ++*answered;
      } else {
        const Code c = reply.error().code;
        EXPECT_TRUE(c == Code::kDeadlineExceeded || c == Code::kConnectionLost || c == Code::kUnavailable)
            << reply.error().ToString();
      }
      co_await env->Sleep(std::chrono::milliseconds(rng.Range(0, 300)));
    }
    ++*ended;
  }
};

TEST_P(SoakTest, EveryCallEndsWithItsOwnAnswer) {
  sim::World world(BadNetwork(), GetParam());
  sim::Node& server = world.AddNode("server");
  sim::Node& client = world.AddNode("client");
  server.Start([](Env& env) { return std::make_unique<sim::Running<TestServer>>(env); });
  client.Start();
  Rng rng = world.Stream("soak");
  auto channel = std::make_unique<Channel>(client, Endpoint("node-0", kPort));
  int ended = 0;
  int answered = 0;
  constexpr int kCallers = 20;
  for (uint64_t i = 0; i < kCallers; ++i) {
    client.Spawn(Caller::Run(&client, channel.get(), i, Rng(rng.Next()), &ended, &answered));
  }
  for (int i = 0; i < 8 && ended < kCallers; ++i) {
    world.RunFor(std::chrono::milliseconds(rng.Range(100, 800)));
    switch (rng.Below(4)) {
      case 0: server.Restart(rng.Chance(0.5) ? sim::Node::Death::kPower : sim::Node::Death::kProcess); break;
      case 1:
        world.Cut(server, client);
        world.RunFor(300ms);
        world.HealAll();
        break;
      case 2:
        server.Pause();
        world.RunFor(500ms);
        server.Resume();
        break;
      default: channel->Disconnect();
    }
  }
  EXPECT_TRUE(world.RunUntil([&] { return ended == kCallers; }));
  EXPECT_GT(answered, 0);
  EXPECT_FALSE(world.failed());
  client.Crash(sim::Node::Death::kProcess);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SoakTest, testing::Range<uint64_t>(1, 41));

}  // namespace
}  // namespace picket
