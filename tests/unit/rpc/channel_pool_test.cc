#include "tests/unit/rpc/fixture.h"

namespace picket {
namespace {

class ChannelPoolTest : public RpcTest {};

TEST_F(ChannelPoolTest, OneChannelPerEndpoint) {
  client_node.Start();
  ChannelPool pool(client_node);
  auto a = pool.Get(Endpoint("node-0", 1));
  EXPECT_EQ(a, pool.Get(Endpoint("node-0", 1)));
  EXPECT_NE(a, pool.Get(Endpoint("node-0", 2)));
  EXPECT_EQ(a->endpoint(), Endpoint("node-0", 1));
}

TEST_F(ChannelPoolTest, LeastRecentlyUsedIdleChannelGoes) {
  client_node.Start();
  ChannelPool pool(client_node);
  std::weak_ptr<Channel> busiest = pool.Get(Endpoint("h", 1));
  std::weak_ptr<Channel> oldest = pool.Get(Endpoint("h", 2));
  auto in_use = pool.Get(Endpoint("h", 3));
  std::weak_ptr<Channel> next = pool.Get(Endpoint("h", 4));
  for (uint16_t port = 5; port <= ChannelPool::kMaxChannels; ++port) pool.Get(Endpoint("h", port));
  EXPECT_EQ(busiest.lock(), pool.Get(Endpoint("h", 1)));
  EXPECT_FALSE(oldest.expired());

  pool.Get(Endpoint("new", 1));
  EXPECT_TRUE(oldest.expired());
  pool.Get(Endpoint("new", 2));
  EXPECT_TRUE(next.expired());
  EXPECT_EQ(in_use, pool.Get(Endpoint("h", 3))) << "a channel in use is passed over";
  EXPECT_FALSE(busiest.expired());
}

TEST_F(ChannelPoolTest, TemporaryHandleLastsAsLongAsItsCall) {
  StartServer();
  ChannelPool pool(client_node);
  struct Caller {
    static Task<Result<RpcReply>> Call(ChannelPool* pool) {
      co_return co_await pool->Get(Endpoint("node-0", kPort))->Call(proto::HELLO, "x", Payload(), 10s);
    }
  };
  EXPECT_EQ(Run(client_node, Caller::Call(&pool))->body, "x");
}

}  // namespace
}  // namespace picket
