// The real LevelDB lives through crashes on the simulated disk: nothing it acknowledged as synced is
// lost, it always opens again, and on a disk whose sync does nothing it does lose (so the test can fail).
#include <gtest/gtest.h>
#include <leveldb/db.h>

#include <map>
#include <set>

#include "tests/sim/node.h"

namespace picket::sim {
namespace {

// What the database must hold: the last synced value, or one written after it.
struct Expected {
  std::string synced;
  std::set<std::string> later;
};

struct Tally {
  uint64_t puts = 0;
  uint64_t crashes = 0;
  uint64_t lost = 0;
  uint64_t failed_opens = 0;
};

class Database : public Process {
 public:
  Database(Env& env, std::map<std::string, Expected>* expected, Tally* tally, Rng* rng)
      : env_(env), expected_(expected), tally_(tally), rng_(rng) {
    env.Spawn(Live());
  }

 private:
  static constexpr int kPuts = 3000;

  Task<> Live() {
    co_await env_.Offload([this] { Open(); });
    if (!db_) co_return;
    co_await env_.Offload([this] { Check(); });
    for (int i = 0; i < kPuts; i += 10) co_await env_.Offload([this] { Put(10); });
  }

  void Open() {
    leveldb::Options options;
    options.env = env_.fs().leveldb_env();
    options.create_if_missing = true;
    options.write_buffer_size = 64 << 10;
    options.compression = leveldb::kNoCompression;
    leveldb::DB* db = nullptr;
    auto status = leveldb::DB::Open(options, "db", &db);
    db_.reset(db);
    if (!status.ok() && !Dying()) ++tally_->failed_opens;
  }
  void Check() {
    for (auto& [key, expected] : *expected_) {
      std::string value;
      auto status = db_->Get({}, key, &value);
      if (Dying()) return;
      if (!expected.synced.empty() && (!status.ok() || (value != expected.synced && !expected.later.contains(value)))) {
        ++tally_->lost;
      }
      expected.synced = status.ok() ? value : "";
      expected.later.clear();
    }
  }
  void Put(int n) {
    for (int i = 0; i < n; ++i) {
      const std::string key = "key" + std::to_string(rng_->Below(2000));
      const std::string value = std::to_string(rng_->Next()) + std::string(rng_->Below(120), 'x');
      leveldb::WriteOptions options;
      options.sync = rng_->Chance(0.3);
      ++tally_->puts;
      Expected& expected = (*expected_)[key];
      if (db_->Put(options, key, value).ok() && options.sync) {
        expected.synced = value;
        expected.later.clear();
      } else {
        expected.later.insert(value);
      }
    }
  }
  bool Dying() { return static_cast<Node&>(env_).dying(); }

  Env& env_;
  std::map<std::string, Expected>* expected_;
  Tally* tally_;
  Rng* rng_;
  std::unique_ptr<leveldb::DB> db_;
};

uint64_t LiveSixTimes(uint64_t seed, bool sync_is_noop, Tally* tally) {
  Config config;
  config.sync_is_noop = sync_is_noop;
  World world(config, seed);
  Node& node = world.AddNode("db");
  Rng rng = world.Stream("workload");
  std::map<std::string, Expected> expected;
  for (int life = 0; life < 6; ++life) {
    node.Start([&](Env& env) { return std::make_unique<Database>(env, &expected, tally, &rng); });
    if (life < 5) node.disk().faults.lose_power_at = 100 + rng.Below(4000);
    world.RunUntil([&] { return !node.alive(); });
    if (node.alive()) {
      node.Crash(Node::Death::kPower);
    } else {
      ++tally->crashes;
    }
  }
  EXPECT_FALSE(world.failed());
  return world.hash();
}

TEST(LevelDbInSimulator, KeepsWhatItSyncedThroughPowerLosses) {
  Tally tally;
  for (uint64_t seed = 1; seed <= 8; ++seed) LiveSixTimes(seed, false, &tally);
  EXPECT_GT(tally.crashes, 15u);
  EXPECT_GT(tally.puts, 20'000u);
  EXPECT_EQ(tally.lost, 0u);
  EXPECT_EQ(tally.failed_opens, 0u);
}

TEST(LevelDbInSimulator, LosesOnADiskThatOnlyPretendsToSync) {
  Tally tally;
  for (uint64_t seed = 1; seed <= 4; ++seed) LiveSixTimes(seed, true, &tally);
  EXPECT_GT(tally.lost + tally.failed_opens, 0u);
}

TEST(LevelDbInSimulator, IsDeterministic) {
  Tally a;
  Tally b;
  EXPECT_EQ(LiveSixTimes(3, false, &a), LiveSixTimes(3, false, &b));
  EXPECT_EQ(a.puts, b.puts);
}

}  // namespace
}  // namespace picket::sim
