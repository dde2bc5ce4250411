#include "master/meta_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "master/keys.h"
#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace picket {
namespace {

using sim::Node;

struct StoreProcess {
  explicit StoreProcess(Env& env) : store(env, MetaStore::Options{"meta", 1 << 20}) {}
  MetaStore store;
};

// One node whose only process is a metadata store.
struct StoreWorld {
  explicit StoreWorld(sim::Config config = {}, uint64_t seed = 1) : world(config, seed), node(world.AddNode("master")) {}
  ~StoreWorld() {
    if (node.alive()) node.Crash(Node::Death::kProcess);
  }
  // Empty when the node died.
  std::optional<Status> Open() {
    node.Start([](Env& env) { return std::make_unique<sim::Running<StoreProcess>>(env); });
    return sim::RunTask(world, node, store().Open());
  }
  void MustOpen() {
    auto opened = Open();
    ASSERT_TRUE(opened.has_value());
    ASSERT_TRUE(*opened) << opened->error().ToString();
  }
  MetaStore& store() { return node.As<StoreProcess>()->store; }
  std::optional<Result<uint64_t>> Commit(Batch batch) {
    return sim::RunTask(world, node, store().Commit(std::move(batch)));
  }
  sim::World world;
  Node& node;
};

Batch One(std::string key, std::string value) {
  Batch b;
  b.Put(std::move(key), std::move(value));
  return b;
}

std::vector<std::string> Keys(const Result<std::vector<MetaRow>>& rows) {
  std::vector<std::string> keys;
  for (const MetaRow& row : *rows) keys.push_back(row.key);
  return keys;
}

TEST(MetaStoreTest, StagedRowsAreSeenAtOnceAndDurableLater) {
  StoreWorld w;
  w.MustOpen();
  auto revision = w.store().Stage(One("x1", "a"));
  ASSERT_TRUE(revision);
  EXPECT_EQ(**w.store().Get("x1"), "a");
  EXPECT_LT(w.store().durable_revision(), *revision);
  ASSERT_TRUE(*sim::RunTask(w.world, w.node, w.store().Durable(*revision)));
  EXPECT_EQ(w.store().durable_revision(), *revision);
  EXPECT_EQ(**w.store().Get("x1"), "a");
  EXPECT_FALSE(w.store().Get("x2")->has_value());
}

TEST(MetaStoreTest, EachStartRaisesTheEpochAndGoesOnWithTheRevisions) {
  StoreWorld w;
  w.MustOpen();
  const Epoch first = w.store().epoch();
  EXPECT_EQ(first.number, 1u);
  ASSERT_TRUE(*w.Commit(One("x", "1")));
  const uint64_t revision = w.store().revision();
  for (uint32_t start = 2; start < 5; ++start) {
    w.node.Crash(start % 2 == 0 ? Node::Death::kPower : Node::Death::kProcess);
    w.MustOpen();
    EXPECT_EQ(w.store().epoch().number, start);
    EXPECT_NE(w.store().epoch().nonce, first.nonce);
    EXPECT_EQ(w.store().revision(), revision + start - 1);
    ASSERT_EQ(w.store().activations().size(), start);
    EXPECT_EQ(w.store().activations().back().first_revision(), revision + start - 1);
    EXPECT_EQ(w.store().activations().front().nonce(), first.nonce);
    EXPECT_EQ(**w.store().Get("x"), "1");
  }
}

TEST(MetaStoreTest, ActivationIsTracedWhenDurable) {
  StoreWorld w;
  std::vector<uint64_t> epochs;
  w.world.AddObserver([&](Node&, const ProtocolEvent& e) {
    if (e.kind == ProtocolEvent::Kind::kEpochActivated) epochs.push_back(e.value);
  });
  w.MustOpen();
  w.node.Crash(Node::Death::kPower);
  w.MustOpen();
  EXPECT_EQ(epochs, (std::vector<uint64_t>{1, 2}));
}

TEST(MetaStoreTest, ScanMergesStagedAndDurableRows) {
  StoreWorld w;
  w.MustOpen();
  Batch base;
  for (std::string_view k : {"w9", "xa", "xc", "xe", "xg", "y1"}) base.Put(std::string(k), std::string("old"));
  ASSERT_TRUE(*w.Commit(std::move(base)));
  Batch staged;
  staged.Put("xb", std::string("new"));
  staged.Put("xc", std::string("new"));
  staged.Remove("xe");
  staged.Put("xz", std::string("new"));
  staged.Put("w0", std::string("new"));
  ASSERT_TRUE(w.store().Stage(std::move(staged)));

  auto all = w.store().Scan("x", "", 100);
  EXPECT_EQ(Keys(all), (std::vector<std::string>{"xa", "xb", "xc", "xg", "xz"}));
  EXPECT_EQ((*all)[2].value, "new");
  EXPECT_EQ(Keys(w.store().Scan("x", "xb", 2)), (std::vector<std::string>{"xc", "xg"}));
  EXPECT_EQ(Keys(w.store().Scan("x", "xbb", 1)), (std::vector<std::string>{"xc"}));
  EXPECT_EQ(Keys(w.store().Scan("x", "a", 1)), (std::vector<std::string>{"xa"}));
  EXPECT_EQ(Keys(w.store().Scan("x", "xz", 10)), (std::vector<std::string>{}));
  EXPECT_EQ(Keys(w.store().Scan("v", "", 10)), (std::vector<std::string>{}));
  ASSERT_TRUE(*sim::RunTask(w.world, w.node, w.store().ReadBarrier()));
  EXPECT_EQ(Keys(w.store().Scan("x", "", 100)), (std::vector<std::string>{"xa", "xb", "xc", "xg", "xz"}));
}

TEST(MetaStoreTest, ManyWaitingBatchesShareASync) {
  sim::Config config;
  config.sync_latency_min = config.sync_latency_max = 5ms;
  StoreWorld w(config);
  w.MustOpen();
  const Nanos began = w.world.now();
  uint64_t last = 0;
  for (int i = 0; i < 200; ++i) last = *w.store().Stage(One("k" + std::to_string(i), "v"));
  ASSERT_TRUE(*sim::RunTask(w.world, w.node, w.store().Durable(last)));
  EXPECT_LT(w.world.now() - began, 30ms);
}

TEST(MetaStoreTest, RevisionsBecomeDurableInOrder) {
  StoreWorld w;
  w.MustOpen();
  struct Waiter {
    static Task<> Run(MetaStore* store, uint64_t revision, std::vector<uint64_t>* order) {
      auto s = co_await store->Durable(revision);
      EXPECT_TRUE(s);
      EXPECT_GE(store->durable_revision(), revision);
      order->push_back(revision);
    }
  };
  std::vector<uint64_t> order;
  uint64_t last = 0;
  for (int i = 0; i < 50; ++i) {
    last = *w.store().Stage(One("k" + std::to_string(i), "v"));
    w.node.Spawn(Waiter::Run(&w.store(), last, &order));
  }
  ASSERT_TRUE(w.world.RunUntil([&] { return order.size() == 50; }));
}

// HDFS-17861: a failed write takes back everything that builds on it, and nothing goes on.
TEST(MetaStoreTest, AFailedWriteDropsWhatIsStagedAndStopsChanges) {
  StoreWorld w;
  w.MustOpen();
  ASSERT_TRUE(*w.Commit(One("x", "good")));
  const uint64_t good = w.store().revision();
  w.node.disk().faults.fail_syncs = true;
  auto first = w.store().Stage(One("x", "bad"));
  ASSERT_TRUE(first);
  auto failed = w.Commit(One("y", "bad"));
  ASSERT_TRUE(failed.has_value());
  ASSERT_FALSE(*failed);
  EXPECT_EQ(failed->error().code, Code::kUnavailable);
  EXPECT_TRUE(w.store().failed());
  EXPECT_EQ(**w.store().Get("x"), "good");
  EXPECT_FALSE(w.store().Get("y")->has_value());
  EXPECT_EQ(w.store().revision(), good);
  EXPECT_FALSE(*sim::RunTask(w.world, w.node, w.store().Durable(*first)));
  EXPECT_TRUE(*sim::RunTask(w.world, w.node, w.store().ReadBarrier()));
  w.node.disk().faults.fail_syncs = false;
  auto refused = w.store().Stage(One("z", "later"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kReadOnly);
  w.node.Crash(Node::Death::kPower);
  w.MustOpen();
  EXPECT_FALSE(w.store().failed());
  EXPECT_TRUE(*w.Commit(One("z", "later")));
}

// Batch i writes two rows. At a loss of power at each change of the disk: what was acknowledged is
// there, batches are whole, no batch is there without those before it, and the epoch rises.
TEST(MetaStoreTest, PowerLossAtEveryWriteLosesNothingAcknowledged) {
  constexpr int kBatches = 12;
  for (uint64_t at = 1;; ++at) {
    StoreWorld w({}, at);
    int acknowledged = -1;
    uint32_t epoch = 0;
    bool died = false;
    {
      w.node.Start([](Env& env) { return std::make_unique<sim::Running<StoreProcess>>(env); });
      w.node.disk().faults.lose_power_at = at;
      auto opened = sim::RunTask(w.world, w.node, w.store().Open());
      died = !opened || !w.node.alive();
      if (!died) {
        ASSERT_TRUE(*opened) << opened->error().ToString();
        epoch = w.store().epoch().number;
      }
      for (int i = 0; i < kBatches && !died; ++i) {
        Batch b;
        b.Put("a" + std::to_string(i), std::string(200, 'v'));
        b.Put("b" + std::to_string(i), std::string(200, 'v'));
        auto committed = w.Commit(std::move(b));
        died = !committed || !w.node.alive();
        if (committed && *committed) acknowledged = i;
      }
    }
    if (!died) break;
    w.MustOpen();
    ASSERT_GT(w.store().epoch().number, epoch);
    bool before = true;
    for (int i = 0; i < kBatches; ++i) {
      const bool a = w.store().Get("a" + std::to_string(i))->has_value();
      const bool b = w.store().Get("b" + std::to_string(i))->has_value();
      ASSERT_EQ(a, b) << "batch " << i << " is torn, power lost at " << at;
      if (i <= acknowledged) ASSERT_TRUE(a) << "batch " << i << " was acknowledged, power lost at " << at;
      if (a) ASSERT_TRUE(before) << "batch " << i << " is there without its predecessor";
      before = a;
    }
    ASSERT_TRUE(*w.Commit(One("after", "restart")));
  }
}

TEST(MetaStoreTest, KilledAtRandomTimesAndStartedAgain) {
  StoreWorld w;
  Rng rng(7);
  uint32_t epoch = 0;
  int next = 0;
  std::set<int> acknowledged;
  struct Writer {
    static Task<> Run(Env* env, MetaStore* store, int* next, std::set<int>* acknowledged) {
      for (;;) {
        co_await env->Sleep(10us);
        const int i = (*next)++;
        auto committed = co_await store->Commit(One("k" + std::to_string(i), std::string(300, 'x')));
        if (!committed) co_return;
        acknowledged->insert(i);
      }
    }
  };
  for (int life = 0; life < 30; ++life) {
    w.MustOpen();
    ASSERT_GT(w.store().epoch().number, epoch);
    epoch = w.store().epoch().number;
    for (int i : acknowledged) ASSERT_TRUE(w.store().Get("k" + std::to_string(i))->has_value()) << i;
    for (int t = 0; t < 4; ++t) w.node.Spawn(Writer::Run(&w.node, &w.store(), &next, &acknowledged));
    w.world.RunFor(Nanos(rng.Range(0, 40'000'000)));
    w.node.Crash(rng.Chance(0.5) ? Node::Death::kPower : Node::Death::kProcess);
  }
  EXPECT_GT(acknowledged.size(), 100u);
}

TEST(MetaStoreTest, OnlyTheNewestLogEntriesAreKept) {
  StoreWorld w;
  w.MustOpen();
  uint64_t last = 0;
  for (size_t i = 0; i < MetaStore::kLogEntriesKept + 50; ++i) last = *w.store().Stage(One("k", std::to_string(i)));
  ASSERT_TRUE(*sim::RunTask(w.world, w.node, w.store().Durable(last)));
  auto log = w.store().Scan(keys::kLog, "", 1'000'000);
  ASSERT_EQ(log->size(), MetaStore::kLogEntriesKept);
  EXPECT_EQ(keys::LastNumber(log->front().key), last - MetaStore::kLogEntriesKept + 1);
  w.node.Crash(Node::Death::kPower);
  w.MustOpen();
  EXPECT_EQ(w.store().revision(), last + 1);
}

// Rot inside what was synced: LevelDB skips a damaged piece of its log without a word; the chain of the
// entries after it shows the gap.
TEST(MetaStoreTest, RotInTheMiddleIsFoundAtOpen) {
  StoreWorld w;
  w.MustOpen();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(*w.Commit(One("k" + std::to_string(i), std::string(1000, 'x'))));
  w.node.Crash(Node::Death::kProcess);
  std::string log;
  for (const std::string& file : w.node.disk().Files()) {
    if (file.ends_with(".log")) log = file;
  }
  ASSERT_FALSE(log.empty());
  ASSERT_GT(w.node.disk().Contents(log)->size(), 100'000u);
  ASSERT_TRUE(w.node.disk().FlipBit(log, 40'000, 3));
  auto opened = w.Open();
  ASSERT_TRUE(opened.has_value());
  ASSERT_FALSE(*opened);
  EXPECT_EQ(opened->error().code, Code::kCorrupt);
  EXPECT_TRUE(opened->error().message.contains("broken at revision")) << opened->error().message;
}

// An entry that is whole but does not follow its predecessor (another copy's, say) is refused.
TEST(MetaStoreTest, AnEntryOfAnotherHistoryBreaksTheChain) {
  StoreWorld w;
  w.MustOpen();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(*w.Commit(One("k" + std::to_string(i), "x")));
  record::LogEntry entry;
  const uint64_t victim = w.store().revision() - 2;
  ASSERT_TRUE(entry.ParseFromString(**w.store().Get(keys::Log(victim))));
  entry.set_previous_crc(entry.previous_crc() ^ 1);
  ASSERT_TRUE(*w.Commit(One(keys::Log(victim), entry.SerializeAsString())));
  w.node.Crash(Node::Death::kProcess);
  auto opened = w.Open();
  ASSERT_TRUE(opened.has_value());
  ASSERT_FALSE(*opened);
  EXPECT_EQ(opened->error().code, Code::kCorrupt);
}

TEST(MetaStoreTest, ARowThatTheLogHasAndTheTableLacksIsFound) {
  StoreWorld w;
  w.MustOpen();
  uint64_t last = 0;
  while (last < MetaStore::kLogEntriesKept) last = *w.store().Stage(One("k", "v"));
  // A row that the same write's pruning takes out again: the log says that it is there.
  last = *w.store().Stage(One(keys::Log(last + 1 - MetaStore::kLogEntriesKept), "v"));
  ASSERT_TRUE(*sim::RunTask(w.world, w.node, w.store().Durable(last)));
  w.node.Crash(Node::Death::kProcess);
  auto opened = w.Open();
  ASSERT_TRUE(opened.has_value());
  ASSERT_FALSE(*opened);
  EXPECT_TRUE(opened->error().message.contains("not there")) << opened->error().message;
}

}  // namespace
}  // namespace picket
