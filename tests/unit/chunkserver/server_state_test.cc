#include "chunkserver/server_state.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/sim/node.h"

namespace picket::cs {
namespace {

using sim::Node;
using sim::RunTask;

constexpr ServerId kServer(0xabc);

Task<Status> MakeFile(Env* env) {
  co_return co_await WriteFileAtomic(&env->fs(), "state", ServerState::Initial(kServer));
}

class ServerStateTest : public testing::TestWithParam<uint64_t> {
 protected:
  ServerStateTest() : world_({}, GetParam()), node_(world_.AddNode("a")) {
    EXPECT_TRUE(RunTask(world_, node_, MakeFile(&node_))->has_value());
  }
  // Opens a new state after whatever happened to the node.
  std::unique_ptr<ServerState> Open() {
    if (!node_.alive()) node_.Start();
    auto state = std::make_unique<ServerState>(node_);
    auto opened = RunTask(world_, node_, state->Open("state", kServer));
    EXPECT_TRUE(opened && *opened) << (opened && !*opened ? opened->error().ToString() : "");
    return state;
  }
  sim::World world_;
  Node& node_;
};

TEST_P(ServerStateTest, EachStartIsANewIncarnation) {
  uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    auto state = Open();
    EXPECT_GT(state->incarnation().value, last);
    last = state->incarnation().value;
    node_.Crash(Node::Death::kPower);
  }
}

Task<Status> Use(ServerState* state, std::set<uint64_t>* instances, uint32_t* epoch_answered) {
  for (uint32_t e = state->mark().epoch.number + 1;; ++e) {
    PICKET_CO_TRY(co_await state->RaiseEpoch(Epoch{e, e * 10ull}));
    *epoch_answered = e;
    for (int i = 0; i < 700; ++i) {
      auto instance = co_await state->NextInstance();
      if (!instance) co_return Fail(instance.error());
      if (!instances->insert(instance->value).second) co_return Fail(Code::kInternal, "an instance came twice");
    }
  }
}

// Power is lost at each single change of the disk: nothing that was promised goes back.
TEST_P(ServerStateTest, NothingGoesBackWhereverPowerIsLost) {
  std::set<uint64_t> instances;
  uint32_t epoch = 0;
  uint64_t last_boot = 0;
  for (uint64_t at = 1; at <= 12; ++at) {
    auto state = Open();
    EXPECT_GT(state->incarnation().value, last_boot);
    last_boot = state->incarnation().value;
    EXPECT_GE(state->mark().epoch.number, epoch);
    node_.disk().faults.lose_power_at = at;
    auto ended = RunTask(world_, node_, Use(state.get(), &instances, &epoch));
    EXPECT_FALSE(ended) << "power was not lost";
    if (ended) return;
  }
}

TEST_P(ServerStateTest, TheEpochMarkRefusesTheOldAndTheOther) {
  auto state = Open();
  ASSERT_TRUE(*RunTask(world_, node_, state->RaiseEpoch(Epoch{5, 50})));
  EXPECT_TRUE(*RunTask(world_, node_, state->RaiseEpoch(Epoch{5, 50})));
  EXPECT_EQ(RunTask(world_, node_, state->RaiseEpoch(Epoch{4, 40}))->error().code, Code::kStaleEpoch);
  EXPECT_EQ(RunTask(world_, node_, state->RaiseEpoch(Epoch{5, 51}))->error().code, Code::kHistoryLost);
  state->SeeRevision(Epoch{5, 50}, 17);
  state->SeeRevision(Epoch{5, 50}, 11);
  state->SeeRevision(Epoch{4, 40}, 99);
  EXPECT_EQ(state->mark().revision, 17u);
}

TEST_P(ServerStateTest, AFailedSyncIsNeverRetried) {
  auto state = Open();
  node_.disk().faults.fail_syncs = true;
  EXPECT_FALSE(*RunTask(world_, node_, state->RaiseEpoch(Epoch{1, 1})));
  EXPECT_EQ(state->mark().epoch.number, 0u);
  node_.disk().faults.fail_syncs = false;
  EXPECT_EQ(RunTask(world_, node_, state->RaiseEpoch(Epoch{1, 1}))->error().code, Code::kIoError);
}

TEST_P(ServerStateTest, RotIsRefusedOnlyWhenNeitherSlotIsLeft) {
  Open();
  ASSERT_TRUE(node_.disk().FlipBit("state", 100, 1));
  Open();
  ASSERT_TRUE(node_.disk().FlipBit("state", 100, 1));
  ASSERT_TRUE(node_.disk().FlipBit("state", kServerSlotSize + 100, 1));
  node_.Restart();
  ServerState state(node_);
  ASSERT_TRUE(node_.disk().FlipBit("state", 100, 2));
  EXPECT_EQ(RunTask(world_, node_, state.Open("state", kServer))->error().code, Code::kCorrupt);
}

TEST_P(ServerStateTest, AnotherServersFileIsRefused) {
  ServerState state(node_);
  EXPECT_EQ(RunTask(world_, node_, state.Open("state", ServerId(1)))->error().code, Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ServerStateTest, testing::Range<uint64_t>(1, 6));

}  // namespace
}  // namespace picket::cs
