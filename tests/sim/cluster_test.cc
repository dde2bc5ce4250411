// Whole clusters without drawn faults: the workloads run, repeat themselves, and a few scenes that once
// went wrong.
#include <gtest/gtest.h>

#include "tests/sim/run.h"
#include "tests/sim/scene.h"

namespace picket::sim {
namespace {

TEST(Run, AWorkloadWithoutFaultsFailsNothing) {
  for (const std::string& workload : WorkloadNames()) {
    RunOptions options{.seed = 4, .workload = workload, .seconds = 20, .faults = std::vector<Fault>()};
    const RunResult r = sim::Run(options);
    EXPECT_FALSE(r.violation) << workload << ": " << r.violation->invariant << ": " << r.violation->detail;
    if (workload == "write_read") EXPECT_NE(r.summary.find("failed=0"), std::string::npos) << r.summary;
    if (workload == "namespace_mix") EXPECT_NE(r.summary.find("unknown=0"), std::string::npos) << r.summary;
  }
}

TEST(Run, RepeatsItself) {
  const RunOptions options{.seed = 5, .seconds = 20};
  EXPECT_EQ(sim::Run(options).hash, sim::Run(options).hash);
}

TEST(Run, AFaultLeftOutDoesNotMoveTheOthers) {
  const RunOptions options{.seed = 6, .seconds = 20};
  RunOptions fewer = options;
  fewer.skip = {0};
  const auto all = sim::Run(options).faults;
  const auto same = sim::Run(fewer).faults;
  ASSERT_EQ(all.size(), same.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(ToText(all[i]), ToText(same[i]));
}

// A sync reaches back to a chunk that was sealed without one, whose server has restarted since.
TEST_F(Scene, ASyncOutlivesARestartAfterAnUnsyncedSeal) {
  Create({.sync = false});
  Write(0, 1 << 20);
  Write(1 << 20, 1 << 20);
  Write(2 << 20, 10);
  ASSERT_TRUE(Do(writer_->Flush()));
  cluster_.servers()[1]->Crash(Node::Death::kProcess);
  world_.RunFor(1s);
  auto synced = Do(writer_->Sync());
  EXPECT_TRUE(synced) << synced.error().ToString();
  auto closed = Do(writer_->Close());
  EXPECT_TRUE(closed) << closed.error().ToString();
  ExpectFile((2 << 20) + 10);
}

// A new chunk's servers restart before one of them takes the lease; the master raises their marks for a
// grant and dies before it commits. The answer it remembers for the writer bears a version that every
// replica refuses as stale.
TEST_F(Scene, AWriterOutlivesAnAttemptThatDiedWithItsMaster) {
  Create({});
  int committed = 0;
  size_t raised = 0;
  world_.AddObserver([&](Node&, const ProtocolEvent& e) {
    if (e.kind == ProtocolEvent::Kind::kVersionCommitted && ++committed == 1) {
      for (Node* server : cluster_.servers()) server->Crash(Node::Death::kProcess);
    }
    if (e.kind == ProtocolEvent::Kind::kMarkRaised && ++raised == cluster_.servers().size()) {
      cluster_.master().Crash(Node::Death::kProcess);
    }
  });
  Write(0, 1000);
  auto flushed = Do(writer_->Flush());
  EXPECT_TRUE(flushed) << flushed.error().ToString();
  EXPECT_GE(raised, cluster_.servers().size());
  auto closed = Do(writer_->Close());
  EXPECT_TRUE(closed) << closed.error().ToString();
  ExpectFile(1000);
}

TEST_F(Scene, AKilledMemberCostsAVersionAndNoByte) {
  Create({});
  Write(0, 500'000);
  ASSERT_TRUE(Do(writer_->Flush()));
  cluster_.Apply({.kind = FaultKind::kKill, .node = "s2", .lasts = 10min});
  Write(500'000, 500'000);
  auto closed = Do(writer_->Close());
  ASSERT_TRUE(closed) << closed.error().ToString();
  ExpectFile(1'000'000);
  auto chunks = Do(fs_->Chunks("/f"));
  ASSERT_TRUE(chunks);
  ASSERT_EQ(chunks->size(), 1u);
  EXPECT_GT(Version((*chunks)[0].version()).counter(), 1u);
}

TEST_F(Scene, APowerLossOfAllKeepsWhatWasSynced) {
  Create({});
  Write(0, 300'000);
  ASSERT_TRUE(Do(writer_->Sync()));
  for (Node* server : cluster_.servers()) server->Crash(Node::Death::kPower);
  cluster_.master().Crash(Node::Death::kPower);
  Write(300'000, 1000);
  auto closed = Do(writer_->Close());
  ASSERT_TRUE(closed) << closed.error().ToString();
  ExpectFile(301'000);
}

}  // namespace
}  // namespace picket::sim
