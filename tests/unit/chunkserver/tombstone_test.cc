// Collection of tombstones (F21): not before nothing of the deletion's time can come late any more, and not
// without the master.
#include "chunkserver/tombstones.h"

#include <gtest/gtest.h>

#include "tests/sim/node.h"

namespace picket::cs {
namespace {

using sim::Node;
using sim::RunTask;

constexpr Incarnation kThen(4), kNow(5);
constexpr Epoch kEpochThen{3, 33}, kEpochNow{4, 44};

Slot Tombstone() {
  Slot s;
  s.state = ReplicaState::kTombstone;
  s.raised_in = kThen;
  s.epoch = kEpochThen;
  s.retired_key = 100;
  return s;
}

TEST(TombstoneGateTest, WaitsUntilTheSessionIsOver) {
  EXPECT_FALSE(MayBeForgotten(Tombstone(), {kThen, kEpochThen, 101, 101}));
  EXPECT_TRUE(MayBeForgotten(Tombstone(), {kNow, kEpochThen, 101, 101}));
  EXPECT_TRUE(MayBeForgotten(Tombstone(), {kThen, kEpochNow, 101, 101}));
}
TEST(TombstoneGateTest, WaitsUntilTheKeysOfItsTimeAreRetired) {
  EXPECT_FALSE(MayBeForgotten(Tombstone(), {kNow, kEpochNow, 100, 100}));
  EXPECT_FALSE(MayBeForgotten(Tombstone(), {kNow, kEpochNow, 0, 0}));
  EXPECT_TRUE(MayBeForgotten(Tombstone(), {kNow, kEpochNow, 101, 101}));
  // One that does not say: every key that was known when this boot first knew any.
  Slot old = Tombstone();
  old.retired_key = 0;
  EXPECT_FALSE(MayBeForgotten(old, {kNow, kEpochNow, 101, 101}));
  EXPECT_TRUE(MayBeForgotten(old, {kNow, kEpochNow, 102, 101}));
}
TEST(TombstoneGateTest, IsForTombstonesOnly) {
  Slot s = Tombstone();
  s.state = ReplicaState::kOpen;
  EXPECT_FALSE(MayBeForgotten(s, {kNow, kEpochNow, 101, 101}));
}

class TombstoneTest : public testing::Test {
 protected:
  TombstoneTest() : world_({}, 3), node_(world_.AddNode("a")) {
    secret_.cluster = self_.cluster = "c1";
    secret_.key = std::string(kSecretBytes, 'k');
    self_.server = ServerId(7);
    EXPECT_TRUE(RunTask(world_, node_, Prepare(&node_))->has_value());
    Boot(Node::Death::kProcess);
  }
  ~TombstoneTest() override {
    if (node_.alive()) node_.Crash(Node::Death::kProcess);
  }
  static Task<Status> Prepare(Env* env) {
    PICKET_CO_TRY(co_await env->fs().MakeDir("d"));
    PICKET_CO_TRY(co_await ReplicaStore::Init(env, "d"));
    PICKET_CO_TRY(co_await WriteFileAtomic(&env->fs(), "d/server_state", ServerState::Initial(ServerId(7))));
    co_return co_await env->fs().SyncDir(".");
  }
  static Task<Status> OpenAll(ServerState* state, ReplicaStore* store) {
    PICKET_CO_TRY(co_await state->Open("d/server_state", ServerId(7)));
    co_return co_await store->Open(state);
  }
  void Boot(Node::Death death) {
    if (node_.alive()) node_.Crash(death);
    tombstones_.reset();
    keys_.reset();
    store_.reset();
    state_.reset();
    node_.Start();
    state_ = std::make_unique<ServerState>(node_);
    ReplicaStore::Options options;
    options.dir = "d";
    options.cluster = "c1";
    options.max_loaded = 2;
    store_ = std::make_unique<ReplicaStore>(node_, options);
    ASSERT_TRUE(*Run(OpenAll(state_.get(), store_.get())));
    self_.incarnation = state_->incarnation();
    keys_ = std::make_unique<TokenVerifier>(self_, secret_);
    tombstones_ = std::make_unique<Tombstones>(node_, self_, *state_, *store_, *keys_);
  }
  void KeysAre(std::vector<uint64_t> ids) {
    proto::KeyRing ring;
    for (uint64_t id : ids) {
      auto* key = ring.add_keys();
      key->set_id(id);
      key->set_sealed(SealTokenKey(secret_, id, std::string(kTokenKeyBytes, 'x'), node_));
    }
    ring.set_number(ids.back());
    ASSERT_TRUE(keys_->Learn(ring));
  }
  ReplicaPtr NewReplica(uint64_t chunk) {
    Slot s;
    s.version = Version(3, 1);
    s.generation = Generation(3, 1);
    s.state = ReplicaState::kOpen;
    s.raised_in = self_.incarnation;
    s.instance = InstanceId(chunk);
    s.chunk_size = 1 << 20;
    ReplicaPtr replica = store_->FindOrAdd(ChunkId(chunk));
    EXPECT_TRUE(*Run(store_->Create(replica, s)));
    return replica;
  }
  void DeletedReplica(uint64_t chunk) {
    ReplicaPtr replica = NewReplica(chunk);
    Retirement r;
    r.boot = self_.incarnation;
    r.epoch = state_->mark().epoch;
    r.key = keys_->newest_key();
    ASSERT_TRUE(*Run(store_->Delete(replica, r)));
  }
  template <class T>
  std::optional<T> Run(Task<T> task) {
    return RunTask(world_, node_, std::move(task));
  }

  sim::World world_;
  Node& node_;
  Self self_;
  ClusterSecret secret_;
  std::unique_ptr<ServerState> state_;
  std::unique_ptr<ReplicaStore> store_;
  std::unique_ptr<TokenVerifier> keys_;
  std::unique_ptr<Tombstones> tombstones_;
};

TEST_F(TombstoneTest, IsOfferedWhenItsTimeIsOverAndGoesDurably) {
  KeysAre({100});
  DeletedReplica(1);
  DeletedReplica(2);
  EXPECT_TRUE(tombstones_->Offer().empty());
  Boot(Node::Death::kPower);
  KeysAre({100, 101});
  EXPECT_TRUE(tombstones_->Offer().empty());
  KeysAre({101});
  EXPECT_EQ(tombstones_->Offer(), (std::set<ChunkId>{ChunkId(1), ChunkId(2)}));
  ASSERT_TRUE(*Run(tombstones_->Forget(ChunkId(1))));
  EXPECT_FALSE(store_->Find(ChunkId(1)));
  EXPECT_TRUE(store_->Find(ChunkId(2)));
  EXPECT_EQ(tombstones_->Offer(), std::set<ChunkId>{ChunkId(2)});
  Boot(Node::Death::kPower);
  EXPECT_FALSE(store_->Find(ChunkId(1)));
  ASSERT_TRUE(store_->Find(ChunkId(2)));
  EXPECT_EQ(store_->Find(ChunkId(2))->marks().version, Version(3, 1));
}

TEST_F(TombstoneTest, OfAnEpochThatIsOverIsOfferedInTheSameBoot) {
  ASSERT_TRUE(*Run(state_->RaiseEpoch(kEpochThen)));
  KeysAre({100});
  DeletedReplica(1);
  KeysAre({101});
  EXPECT_TRUE(tombstones_->Offer().empty());
  ASSERT_TRUE(*Run(state_->RaiseEpoch(kEpochNow)));
  EXPECT_EQ(tombstones_->Offer(), std::set<ChunkId>{ChunkId(1)});
}

// The replica was in use in this boot: its place among those with open files goes with it.
TEST_F(TombstoneTest, LeavesNothingBehindAmongTheLoaded) {
  ASSERT_TRUE(*Run(state_->RaiseEpoch(kEpochThen)));
  KeysAre({100});
  DeletedReplica(1);
  ASSERT_TRUE(*Run(state_->RaiseEpoch(kEpochNow)));
  KeysAre({101});
  ASSERT_TRUE(*Run(tombstones_->Forget(ChunkId(1))));
  ASSERT_FALSE(store_->Find(ChunkId(1)));
  for (uint64_t chunk = 2; chunk <= 6; ++chunk) NewReplica(chunk);
  size_t loaded = 0;
  for (const ReplicaPtr& replica : store_->List(ChunkId(), 10)) loaded += replica->file->loaded();
  EXPECT_EQ(loaded, 2u);
}

TEST_F(TombstoneTest, IsJudgedAgainWhenTheMasterAgrees) {
  KeysAre({100});
  DeletedReplica(1);
  ASSERT_TRUE(*Run(tombstones_->Forget(ChunkId(1))));  // of this session still
  EXPECT_TRUE(store_->Find(ChunkId(1)));
  ASSERT_TRUE(*Run(tombstones_->Forget(ChunkId(99))));
}

TEST_F(TombstoneTest, ALotOfThemIsOfferedInTurn) {
  KeysAre({100});
  const uint64_t count = Tombstones::kMaxOffered + 20;
  for (uint64_t c = 1; c <= count; ++c) DeletedReplica(c);
  Boot(Node::Death::kProcess);
  KeysAre({101});
  const auto first = tombstones_->Offer();
  const auto second = tombstones_->Offer();
  EXPECT_EQ(first.size(), Tombstones::kMaxOffered);
  EXPECT_EQ(second.size(), 20u);
  EXPECT_EQ(*second.begin(), ChunkId(Tombstones::kMaxOffered + 1));
}

TEST_F(TombstoneTest, ForgettingHappensWhollyOrNotWhereverPowerIsLost) {
  KeysAre({100});
  for (uint64_t at = 1; at <= 6; ++at) {
    DeletedReplica(at);
    Boot(Node::Death::kPower);
    KeysAre({200 + at});
    node_.disk().faults.lose_power_at = at;
    auto forgotten = Run(tombstones_->Forget(ChunkId(at)));
    node_.disk().faults.lose_power_at.reset();
    Boot(Node::Death::kPower);
    KeysAre({200 + at});
    if (forgotten && *forgotten) {
      EXPECT_FALSE(store_->Find(ChunkId(at))) << at;
    } else if (ReplicaPtr left = store_->Find(ChunkId(at))) {
      EXPECT_EQ(left->marks().version, Version(3, 1)) << at;
    }
  }
}

}  // namespace
}  // namespace picket::cs
