// Lease recovery: a master that dies at every step, limits, locks, overwrites, truncation, and what is shown.
#include "tests/unit/master/recovery_half.h"

namespace picket::test {
namespace {

using Act = FakeDisk::Act;
using Kind = ProtocolEvent::Kind;

// ---- crashes --------------------------------------------------------------------------------------------

TEST_F(RecoveryTest, TheMasterLosesPowerAtEveryChangeOfItsDisk) {
  int deaths = 0;
  for (uint64_t at = 1;; ++at) {
    const std::string path = "/f" + std::to_string(at);
    Open("acknowledged", path);
    At(server(0)).bytes += "not";
    master_node.disk().faults.lose_power_at = at;
    auto recovery = Begin<proto::RecoverLeaseResponse>(proto::RECOVER_LEASE, RecoverRequest(true, path), 5s);
    world.RunUntil([&] { return recovery->has_value() || !master_node.alive(); }, 10s);
    const bool died = !master_node.alive();
    master_node.disk().faults.lose_power_at.reset();
    if (died) {
      ++deaths;
      RestartMaster(sim::Node::Death::kPower);
      ASSERT_TRUE(AwaitLive(3)) << at;
      // By itself, unless the fence was lost too: then the writer is none the wiser.
      if (!Show(path).lease().recovering() && Show(path).open()) {
        EXPECT_EQ(Show(path).lease().generation(), file.generation);
        ASSERT_TRUE(Recover(true, path)) << at;
      }
      ASSERT_TRUE(AwaitClosed(20s, path)) << at;
    }
    world.RunFor(5s);
    ExpectClosed("acknowledged", All(), path);
    if (HasFailure()) FAIL() << "at change " << at;
    if (!died) break;
  }
  EXPECT_GE(deaths, 2);
}

// The recovery itself is the holder, durably: a restarted master goes on with it and lets nobody in.
TEST_F(RecoveryTest, Hdfs1149TheMasterIsTheHolderAcrossItsRestart) {
  Open("one");
  std::vector<std::shared_ptr<bool>> releases;
  for (uint64_t id : All()) releases.push_back(Hold(id, proto::BEGIN_RECOVERY));
  ASSERT_TRUE(Recover(false));
  RestartMaster(sim::Node::Death::kPower);
  const proto::LeaseInfo lease = Show().lease();
  EXPECT_TRUE(lease.recovering());
  EXPECT_EQ(lease.stalled_holder(), kWriter);
  EXPECT_EQ(Grant(file, grant, {}, 3).error().code, Code::kStaleGeneration);
  for (auto& release : releases) *release = true;
  ASSERT_TRUE(AwaitLive(3));
  ASSERT_TRUE(AwaitClosed(20s));
  world.RunFor(5s);
  ExpectClosed("one", All());
}

// The closing batch fails: what is in memory is what was before.
TEST_F(RecoveryTest, Hdfs17861AFailedCommitLeavesTheFileInRecovery) {
  Open("one");
  std::vector<std::shared_ptr<bool>> releases;
  for (uint64_t id : All()) releases.push_back(Hold(id, proto::FINISH_RECOVERY));
  ASSERT_TRUE(Recover(false));
  ASSERT_TRUE(world.RunUntil([&] { return At(server(0)).state == proto::RECOVERING; }, 5s));
  master_node.disk().faults.fail_syncs = true;
  for (auto& release : releases) *release = true;
  world.RunFor(5s);
  EXPECT_EQ(At(server(0)).state, proto::SEALED);
  EXPECT_TRUE(EventsOf(Kind::kChunkSealed).empty());
  master_node.disk().faults.fail_syncs = false;
  RestartMaster(sim::Node::Death::kPower);
  ASSERT_TRUE(AwaitLive(3));
  ASSERT_TRUE(AwaitClosed(20s));
  world.RunFor(5s);
  ExpectClosed("one", All());
}

// ---- limits, locks, overwrites --------------------------------------------------------------------------

TEST_F(RecoveryTest, HardLimitRecoversByItself) {
  Open("one");
  world.RunFor(100s);
  EXPECT_TRUE(GetFile("/f")->status().open());
  ASSERT_TRUE(AwaitClosed(30s));
  ExpectClosed("one", All());
}

// The whole cluster restarted while the writer died: every member is unclean, and no reader has anywhere to go.
TEST_F(RecoveryTest, AnOpenChunkThatNobodyCanReadIsRecoveredAfterTheSoftLimit) {
  Open("one");
  for (uint64_t id : All()) {
    Kill(id);
    Boot(id);
  }
  world.RunFor(20s);
  EXPECT_TRUE(GetFile("/f")->status().open()) << "its writer may still ask for a grant";
  ASSERT_TRUE(AwaitClosed(25s)) << "long before the hard limit";
  ExpectClosed("one", All());
}

// Nothing that waits for servers keeps the master from files that it could recover.
TEST_F(RecoveryTest, FilesThatWaitForDeadServersLeaveRoomForOthers) {
  constexpr int kStuck = 70;  // more than it recovers at a time
  for (int i = 0; i < kStuck; ++i) Open("stuck", "/a" + std::to_string(i));
  for (uint64_t id : All()) Kill(id);
  Create("/z");
  ASSERT_TRUE(AwaitClosed(160s, "/z"));
  EXPECT_TRUE(GetFile("/a0")->status().open());
}

TEST_F(RecoveryTest, AnEmptyChunkInAHoleIsDroppedAndThoseBehindStay) {
  file = Create("/f");
  auto behind = AddChunk(file, 5);
  ASSERT_TRUE(behind) << behind.error().ToString();
  Write(*behind, "behind");
  ASSERT_TRUE(CommitSeal(Seal(file, *behind)));
  ASSERT_TRUE(AddChunk(file, 2));
  ASSERT_TRUE(Recover());
  EXPECT_EQ(GetFile("/f")->status().chunk_count(), 6u);
}

// Far behind the end the number of chunks is found at once, not index by index.
TEST_F(RecoveryTest, AnEmptyChunkFarBehindTheEndIsDropped) {
  file = Create("/f");
  ASSERT_TRUE(AddChunk(file, (uint64_t{1} << 40) - 1));
  auto recovered = Recover();
  ASSERT_TRUE(recovered) << recovered.error().ToString();
  EXPECT_EQ(GetFile("/f")->status().chunk_count(), 0u);
}

TEST_F(RecoveryTest, AStalledOverwriteIsAbandonedAndTheOldContentStays) {
  Open("old");
  ASSERT_TRUE(Recover());
  const uint64_t old_inode = file.inode;
  proto::CreateRequest r;
  Identify(r.mutable_mutation());
  r.set_path("/f");
  r.set_overwrite(true);
  r.set_replication(3);
  r.set_chunk_size(1 << 20);
  r.set_holder(kWriter);
  auto created = Call<proto::CreateResponse>(proto::CREATE, r);
  ASSERT_TRUE(created) << created.error().ToString();
  const OpenFile pending{created->status().inode(), created->generation()};
  auto added = AddChunk(pending);
  ASSERT_TRUE(added) << added.error().ToString();
  Write(*added, "new");
  EXPECT_EQ(Show().lease().replaces(), "/f");
  EXPECT_EQ(Show().lease().inode(), pending.inode);
  auto recovered = Recover();
  ASSERT_TRUE(recovered) << recovered.error().ToString();
  EXPECT_TRUE(recovered->closed());
  EXPECT_EQ(recovered->status().inode(), old_inode);
  EXPECT_FALSE(Show().open());
  ExpectClosed("old", All());
  auto late = CommitSeal(Seal(pending, *added));
  ASSERT_FALSE(late);
}

TEST_F(RecoveryTest, ALockEndsAtItsSoftLimitWithItsLockDelay) {
  Open("one");
  ASSERT_TRUE(Recover());
  auto locked = OpenFor(7, "/f", proto::EXCLUSIVE, true);
  ASSERT_TRUE(locked) << locked.error().ToString();
  const int64_t mtime = GetFile("/f")->status().mtime_ns();
  world.RunFor(40s);
  const proto::ShowLeaseResponse shown = Show();
  EXPECT_FALSE(shown.open());
  EXPECT_GT(shown.lock_delay_left_ms(), 0u);
  EXPECT_EQ(OpenFor(8, "/f", proto::EXCLUSIVE, true).error().code, Code::kLockDelayed);
  EXPECT_EQ(GetFile("/f")->status().mtime_ns(), mtime);
}

TEST_F(RecoveryTest, AnAppenderThatStoppedRenewingIsDroppedAlone) {
  Open("one");
  ASSERT_TRUE(Recover());
  auto first = OpenFor(7, "/f", proto::RECORD_APPEND);
  ASSERT_TRUE(first) << first.error().ToString();
  ASSERT_TRUE(OpenFor(8, "/f", proto::RECORD_APPEND));
  EXPECT_EQ(Show().lease().holders_size(), 2);
  for (int i = 0; i < 9; ++i) {
    proto::RenewRequest renew;
    renew.set_holder(8);
    auto* session = renew.add_sessions();
    session->set_inode(first->status().inode());
    session->set_generation(first->generation());
    ASSERT_TRUE(Call<proto::RenewResponse>(proto::RENEW, renew));
    world.RunFor(5s);
  }
  const proto::LeaseInfo lease = Show().lease();
  ASSERT_EQ(lease.holders_size(), 1);
  EXPECT_EQ(lease.holders(0).client(), 8u);
  EXPECT_EQ(lease.generation(), first->generation());
}

// ---- between two committed sets, and truncation ---------------------------------------------------------

// A grant that was to open a sealed chunk again has raised marks and died: recovery brings the chunk back.
TEST_F(RecoveryTest, AChunkBetweenTwoSetsIsSealedAgain) {
  Open("one");
  ASSERT_TRUE(Recover());
  world.RunFor(5s);
  auto opened = OpenFor(kWriter);
  ASSERT_TRUE(opened) << opened.error().ToString();
  file.generation = opened->generation();
  Rule(server(1), proto::ADVANCE_VERSION, Act::kRefuse);
  Rule(server(2), proto::ADVANCE_VERSION, Act::kRefuse);
  proto::GrantRequest request = GrantRequestFor(file, grant);
  request.set_reopen(true);
  ASSERT_FALSE(Call<proto::WriteGrant>(proto::GRANT, request, 5s));
  EXPECT_GT(Chunk(chunk).minted(), Chunk(chunk).version());
  EXPECT_EQ(Show().lease().open_chunk(), chunk);
  ASSERT_TRUE(Recover());
  ExpectClosed("one", All());
}

TEST_F(RecoveryTest, TruncationCutsTheBoundaryChunkAndDropsThoseBeyond) {
  Open(std::string(1 << 20, 'a'));
  ASSERT_TRUE(CommitSeal(Seal(file, grant)));
  auto second = AddChunk(file, 1);
  ASSERT_TRUE(second) << second.error().ToString();
  Write(*second, "beyond");
  proto::CommitSealRequest seal = Seal(file, *second);
  seal.set_close(true);
  ASSERT_TRUE(CommitSeal(seal));
  world.RunFor(5s);
  proto::TruncateRequest r;
  Identify(r.mutable_mutation());
  r.set_path("/f");
  r.set_length(100'000);
  r.set_holder(kWriter);
  auto release = Hold(server(0), proto::FINISH_RECOVERY);
  auto release_1 = Hold(server(1), proto::FINISH_RECOVERY);
  auto release_2 = Hold(server(2), proto::FINISH_RECOVERY);
  auto cutting = Begin<proto::TruncateResponse>(proto::TRUNCATE, r);
  ASSERT_TRUE(world.RunUntil([&] { return std::ranges::count(disk_of(server(0)).orders, proto::FINISH_RECOVERY) > 0 ||
                                          std::ranges::count(disk_of(server(1)).orders, proto::FINISH_RECOVERY) > 0 ||
                                          std::ranges::count(disk_of(server(2)).orders, proto::FINISH_RECOVERY) > 0; }, 5s));
  // The intent is told before any byte goes.
  ASSERT_EQ(EventsOf(Kind::kChunkTruncated).size(), 1u);
  EXPECT_EQ(EventsOf(Kind::kChunkTruncated)[0].length, 100'000u);
  EXPECT_EQ(At(server(0)).bytes.size(), size_t{1} << 20);
  *release = *release_1 = *release_2 = true;
  const proto::TruncateResponse cut = Await(cutting);
  EXPECT_EQ(cut.status().length(), 100'000u);
  world.RunFor(5s);
  ExpectClosed(std::string(100'000, 'a'), All());
  EXPECT_EQ(GetFile("/f")->status().chunk_count(), 1u);
  EXPECT_EQ(Chunk(second->token().chunk()).inode(), 0u);
}

TEST_F(RecoveryTest, TruncationSurvivesThePowerLossOfTheMasterAtEveryChange) {
  for (uint64_t at = 1;; ++at) {
    const std::string path = "/t" + std::to_string(at);
    Open("0123456789", path);
    proto::CommitSealRequest seal = Seal(file, grant);
    seal.set_close(true);
    ASSERT_TRUE(CommitSeal(seal));
    world.RunFor(4s);
    proto::TruncateRequest r;
    Identify(r.mutable_mutation());
    r.set_path(path);
    r.set_length(4);
    r.set_holder(kWriter);
    master_node.disk().faults.lose_power_at = at;
    auto cutting = Begin<proto::TruncateResponse>(proto::TRUNCATE, r, 5s);
    world.RunUntil([&] { return cutting->has_value() || !master_node.alive(); }, 10s);
    const bool died = !master_node.alive();
    master_node.disk().faults.lose_power_at.reset();
    if (died) {
      RestartMaster(sim::Node::Death::kPower);
      ASSERT_TRUE(AwaitLive(3));
      ASSERT_TRUE(AwaitClosed(20s, path)) << at;
      // The same request again: one effect, whether the first one had any.
      auto again = Call<proto::TruncateResponse>(proto::TRUNCATE, r);
      ASSERT_TRUE(again) << again.error().ToString();
      EXPECT_EQ(again->status().length(), 4u);
    }
    world.RunFor(5s);
    ExpectClosed("0123", All(), path);
    if (HasFailure()) FAIL() << "at change " << at;
    if (!died) break;
  }
}

// ---- showing --------------------------------------------------------------------------------------------

TEST_F(RecoveryTest, LeasesAreListedInPagesAndByPath) {
  proto::MkdirRequest mkdir;
  Identify(mkdir.mutable_mutation());
  mkdir.set_path("/d");
  mkdir.set_mode(0755);
  ASSERT_TRUE(Call<proto::MkdirResponse>(proto::MKDIR, mkdir));
  for (int i = 0; i < 3; ++i) {
    Create("/f" + std::to_string(i));
    Create("/d/f" + std::to_string(i));
  }
  proto::ListLeasesRequest r;
  r.set_limit(4);
  auto page = Call<proto::ListLeasesResponse>(proto::LIST_LEASES, r);
  ASSERT_TRUE(page) << page.error().ToString();
  ASSERT_EQ(page->leases_size(), 4);
  EXPECT_TRUE(page->more());
  const proto::LeaseInfo& lease = page->leases(0);
  EXPECT_EQ(lease.path(), "/f0");
  EXPECT_EQ(lease.holders(0).client(), kWriter);
  EXPECT_EQ(lease.soft_limit_ms(), 30'000u);
  EXPECT_LE(lease.soft_left_ms(), 30'000);
  EXPECT_FALSE(lease.recovering());
  r.set_start_after(page->leases(3).inode());
  page = Call<proto::ListLeasesResponse>(proto::LIST_LEASES, r);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->leases_size(), 2);
  EXPECT_FALSE(page->more());
  r.clear_start_after();
  r.set_under("/d");
  page = Call<proto::ListLeasesResponse>(proto::LIST_LEASES, r);
  ASSERT_TRUE(page);
  ASSERT_EQ(page->leases_size(), 3);
  for (const auto& each : page->leases()) EXPECT_THAT(each.path(), testing::StartsWith("/d/"));
}

}  // namespace
}  // namespace picket::test
