// Calls to the master: first contact, retries, bounds.
#include <gmock/gmock.h>

#include "client/core/master_client.h"
#include "client/core/session_keeper.h"
#include "tests/unit/client/fake_cluster.h"

namespace picket {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class MasterTest : public FakeCluster {
 protected:
  MasterTest() : FakeCluster(0) {}
};

TEST_F(MasterTest, NobodyThereIsSaidWithinTheConnectTimeout) {
  master_node.Crash(sim::Node::Death::kProcess);
  const Nanos before = world.now();
  auto made = Run(files().Mkdir("/d", false, 0755));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kUnavailable);
  EXPECT_THAT(made.error().message, HasSubstr("node-0:7400"));
  EXPECT_THAT(made.error().next_step, AllOf(HasSubstr("picket-master"), HasSubstr("PICKET_MASTER")));
  EXPECT_LE(world.now() - before, 4500ms);
}

TEST_F(MasterTest, AMachineThatSaysNothingToo) {
  master_node.Pause();
  const Nanos before = world.now();
  auto connected = Run(files().Connect());
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, Code::kUnavailable);
  EXPECT_LE(world.now() - before, 4500ms);
}

TEST_F(MasterTest, AMasterThatComesUpInTimeIsFound) {
  master_node.Crash(sim::Node::Death::kProcess);
  auto connected = Begin(files().Connect());
  world.RunFor(2s);
  StartMaster();
  ASSERT_TRUE(Await(connected));
  EXPECT_TRUE(**connected);
}

TEST_F(MasterTest, OnceReachedItIsWaitedForUntilTheDeadline) {
  ASSERT_TRUE(Run(files().Connect()));
  master_node.Crash(sim::Node::Death::kProcess);
  auto found = Begin(files().Mkdir("/d", false, 0755));
  world.RunFor(60s);
  EXPECT_FALSE(found->has_value());
  StartMaster();
  ASSERT_TRUE(Await(found));
  ASSERT_TRUE(**found);
  EXPECT_EQ((*found)->value().owner(), "ann");

  master_node.Crash(sim::Node::Death::kProcess);
  const Nanos before = world.now();
  auto never = Run(files().Stat("/d"));
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, Code::kUnavailable);
  EXPECT_LE(world.now() - before, 91s);
}

TEST_F(MasterTest, AChunkserverIsNotAMaster) {
  sim::Node& node = world.AddNode("chunkserver");
  FakeServer::Script script;
  node.Start([&](Env& env) {
    return std::make_unique<sim::Running<FakeServer>>(
        env, script, Endpoint(node.host(), kFakeServerPort), std::vector<proto::Method>{proto::HELLO},
        [](const RpcRequest&, const std::optional<Twist>&) -> Result<RpcReply> {
          proto::HelloResponse hello;
          hello.set_role("chunkserver");
          return RpcReply(hello.SerializeAsString(), Payload());
        });
  });
  MasterClient client(client_node, Endpoint(node.host(), kFakeServerPort), ClientId(7), 4s);
  auto contact = Run(client.FirstContact(client_node.Now() + 10s));
  ASSERT_FALSE(contact);
  EXPECT_EQ(contact.error().code, Code::kInvalidArgument);
  EXPECT_THAT(contact.error().message, HasSubstr("is a chunkserver"));
}

// A client that opens a file again takes it over from itself: what its old writer does at its end must not
// stop the renewals of the new one.
TEST_F(MasterTest, TheEndOfAnOldSessionLeavesTheNewOneRenewed) {
  const Endpoint at(master_node.host(), kFakeMasterPort);
  auto client = std::make_shared<MasterClient>(client_node, at, ClientId(7), 4s);
  auto keeper = std::make_shared<SessionKeeper>(client_node, client);
  keeper->Add(InodeId(5), Generation(1), 300ms, [] {});
  keeper->Add(InodeId(5), Generation(2), 300ms, [] {});
  keeper->Remove(InodeId(5), Generation(1));
  world.RunFor(1s);
  const auto renewals = Asked<proto::RenewRequest>(master, proto::RENEW);
  EXPECT_GE(renewals.size(), 5U);
  for (const auto& renewal : renewals) EXPECT_EQ(renewal.sessions(0).generation(), 2U);
  keeper->Remove(InodeId(5), Generation(2));
  world.RunFor(1s);
  EXPECT_LE(Asked<proto::RenewRequest>(master, proto::RENEW).size(), renewals.size() + 1);
}

TEST_F(MasterTest, RefusalsAreNotRepeated) {
  master.twists[proto::MKDIR] = {Twist::Refuse(Error(Code::kAlreadyExists, "/d exists"))};
  auto made = Run(files().Mkdir("/d", false, 0755));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kAlreadyExists);
  EXPECT_EQ(Asked<proto::MkdirRequest>(master, proto::MKDIR).size(), 1u);
}

TEST_F(MasterTest, AMasterThatAnswersIsNotCalledSilent) {
  Error cause(Code::kUnavailable, "whether the change is durable is unknown: the disk is full");
  master.always[proto::MKDIR] = Twist::Refuse(std::move(cause).WithNextStep("restart the master when its disk is well"));
  auto made = Run(files().Mkdir("/d", false, 0755));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kUnavailable);
  EXPECT_THAT(made.error().message, AllOf(HasSubstr("disk is full"), Not(HasSubstr("no master answers"))));
  EXPECT_EQ(made.error().next_step, "restart the master when its disk is well");
}

TEST_F(MasterTest, FirstUnackedFollowsTheAnswers) {
  master.twists[proto::MKDIR] = {Twist::Delay(5s), std::nullopt, std::nullopt};
  auto slow = Begin(files().Mkdir("/a", false, 0755));
  world.RunFor(1s);
  ASSERT_TRUE(Run(files().Mkdir("/b", false, 0755)));
  ASSERT_TRUE(Await(slow));
  ASSERT_TRUE(Run(files().Mkdir("/c", false, 0755)));
  const auto asked = Asked<proto::MkdirRequest>(master, proto::MKDIR);
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[1].mutation().first_unacked(), asked[0].mutation().sequence());
  EXPECT_EQ(asked[2].mutation().first_unacked(), asked[2].mutation().sequence());
}

TEST_F(MasterTest, ManyMutationsAtOnceStayWithinTheBound) {
  std::vector<std::shared_ptr<std::optional<Result<proto::FileStatus>>>> all;
  for (int i = 0; i < 1000; ++i) all.push_back(Begin(files().Mkdir("/d" + std::to_string(i), false, 0755)));
  for (auto& one : all) {
    ASSERT_TRUE(Await(one));
    EXPECT_TRUE(**one);
  }
  for (const auto& request : Asked<proto::MkdirRequest>(master, proto::MKDIR)) {
    EXPECT_LT(request.mutation().sequence() - request.mutation().first_unacked(), 1024u);
  }
}

}  // namespace
}  // namespace picket
