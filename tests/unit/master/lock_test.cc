// Locks: sessions under which nobody need write, and the lock-delay after one that was not released.
#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

class LockTest : public MetadataTest {
 protected:
  static constexpr uint64_t kOther = kClient + 1;
  LockTest() { Put("/f"); }
  proto::OpenRequest Lock(uint64_t holder, proto::SessionMode mode = proto::EXCLUSIVE, std::string writer_id = "") {
    auto r = OpenRequestFor("/f", mode, holder, std::move(writer_id));
    r.set_lock(true);
    r.mutable_limits()->set_soft_ms(10'000);
    r.set_lock_delay_ms(20'000);
    return r;
  }
};

TEST_F(LockTest, AReleasedLockIsFreeAtOnce) {
  auto first = Open(Lock(kClient));
  ASSERT_TRUE(first) << first.error().ToString();
  EXPECT_EQ(first->sequencer().path(), "/f");
  EXPECT_EQ(first->sequencer().generation(), first->generation());
  EXPECT_EQ(first->sequencer().holder(), kClient);
  EXPECT_EQ(CodeOf(Open(Lock(kOther))), Code::kLeaseConflict);
  ASSERT_TRUE(Release(*first));
  auto second = Open(Lock(kOther));
  ASSERT_TRUE(second);
  EXPECT_GT(second->generation(), first->generation());
}

TEST_F(LockTest, ALockThatWasNotReleasedIsDelayed) {
  auto lost = Open(Lock(kClient));
  world.RunFor(11s);
  auto delayed = Open(Lock(kOther));
  ASSERT_FALSE(delayed);
  EXPECT_EQ(delayed.error().code, Code::kLockDelayed);
  EXPECT_NEAR(delayed.error().retry_after_ms, 20'000, 1'000);
  EXPECT_EQ(CodeOf(Release(*lost)), Code::kNotLeaseHolder) << "it is over";
  world.RunFor(5s);
  auto still = Open(Lock(kOther, proto::SHARED_LOCK));
  EXPECT_EQ(CodeOf(still), Code::kLockDelayed);
  EXPECT_NEAR(still.error().retry_after_ms, 15'000, 1'000);
  // Counted anew after a master's start: it does not know how much of it is over.
  Restart();
  auto again = Open(Lock(kOther));
  ASSERT_EQ(CodeOf(again), Code::kLockDelayed);
  world.RunFor(std::chrono::milliseconds(again.error().retry_after_ms));
  auto locked = Open(Lock(kOther));
  ASSERT_TRUE(locked) << locked.error().ToString();
  ASSERT_TRUE(Release(*locked, kOther));
  EXPECT_TRUE(Open(Lock(kClient))) << "the delay is over for good";
}

TEST_F(LockTest, AWriterWaitsForNoLockDelayAndDoesNotEndIt) {
  ASSERT_TRUE(Open(Lock(kClient)));
  world.RunFor(11s);
  auto writer = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther));
  ASSERT_TRUE(writer) << writer.error().ToString();
  ASSERT_TRUE(Close(AsCreated(*writer), kOther));
  EXPECT_EQ(CodeOf(Open(Lock(kOther))), Code::kLockDelayed);
}

TEST_F(LockTest, ItsOwnWriterComesBackWithoutDelay) {
  auto first = Open(Lock(kClient, proto::EXCLUSIVE, "w"));
  auto second = Open(Lock(kOther, proto::EXCLUSIVE, "w"));
  ASSERT_TRUE(first && second);
  EXPECT_GT(second->generation(), first->generation());
  ASSERT_TRUE(Release(*second, kOther));
  EXPECT_TRUE(Open(Lock(kClient)));
}

TEST_F(LockTest, ASharedHolderThatVanishedDelaysTheNextExclusiveOne) {
  auto first = Open(Lock(kClient, proto::SHARED_LOCK));
  auto second = Open(Lock(kOther, proto::SHARED_LOCK));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->generation(), second->generation());
  EXPECT_EQ(second->sequencer().mode(), proto::SHARED_LOCK);
  Batch batch;
  ASSERT_TRUE(half().sessions.Leave(&batch, InodeId(first->status().inode()), ClientId(kClient), true));
  ASSERT_TRUE(*sim::RunTask(world, node, half().store.Commit(std::move(batch))));
  EXPECT_TRUE(Open(Lock(kOther + 1, proto::SHARED_LOCK))) << "joining is no conflict with it";
  ASSERT_TRUE(Release(*second, kOther));
  ASSERT_TRUE(Release(*second, kOther + 1));
  EXPECT_EQ(CodeOf(Open(Lock(kOther))), Code::kLockDelayed);
}

TEST_F(LockTest, ADelayGoesWithItsFile) {
  ASSERT_TRUE(Open(Lock(kClient)));
  world.RunFor(11s);
  EXPECT_EQ(CodeOf(Open(Lock(kOther))), Code::kLockDelayed);
  ASSERT_TRUE(Delete("/f", false, true));
  WaitForReclaim();
  EXPECT_TRUE(half().store.Scan(keys::kLockDelays, "", 1)->empty());
}

TEST_F(LockTest, TheDelayIsBounded) {
  auto r = Lock(kClient);
  r.set_lock_delay_ms(SessionTable::kMaxLockDelayMs + 1);
  EXPECT_EQ(CodeOf(Open(r)), Code::kInvalidArgument);
}

}  // namespace
}  // namespace picket::test
