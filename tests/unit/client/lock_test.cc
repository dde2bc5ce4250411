// A lock as its holder sees it: how long it may count on it, and what ends it.
#include "client/core/lock_session.h"
#include "tests/unit/client/fake_cluster.h"

namespace picket {
namespace {

class LockTest : public FakeCluster {
 protected:
  LockTest() {
    soft_limit_ms = 9000;
    Store("/lock", "");
  }
  std::shared_ptr<LockSession> Lock(LockOptions options = {}) {
    auto lock = Run(files().Lock("/lock", options));
    EXPECT_TRUE(lock) << lock.error().ToString();
    return lock ? *lock : nullptr;
  }
  size_t Count(proto::Method method) const {
    return static_cast<size_t>(std::ranges::count_if(master.calls, [=](const auto& c) { return c.first == method; }));
  }
  static constexpr Nanos kSoft = 9s;
};

TEST_F(LockTest, IsRenewedAtAThirdOfItsLimitAndReleased) {
  auto lock = Lock();
  ASSERT_TRUE(lock);
  world.RunFor(10 * kSoft);
  EXPECT_FALSE(lock->lost());
  EXPECT_GE(Count(proto::RENEW), 29u);
  EXPECT_LE(Count(proto::RENEW), 31u);
  EXPECT_GT(lock->left(), kSoft / 2);
  auto asked = Asked<proto::OpenRequest>(master, proto::OPEN_FILE);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_TRUE(asked[0].lock());
  EXPECT_EQ(asked[0].mode(), proto::EXCLUSIVE);
  EXPECT_TRUE(Run(LockSession::Release(lock, 10s)));
  EXPECT_EQ(lock->left(), 0ns);
  EXPECT_TRUE(Run(LockSession::Release(lock, 10s))) << "a second release says the same";
  EXPECT_EQ(Count(proto::RELEASE), 1u);
  const size_t renewed = Count(proto::RENEW);
  world.RunFor(2 * kSoft);
  EXPECT_EQ(Count(proto::RENEW), renewed);
}

// The master counts from the receipt of a renewal, the holder from before it left, less a margin.
TEST_F(LockTest, WithoutAnAnswerItIsLostBeforeTheMasterWouldGiveItAway) {
  auto lock = Lock();
  ASSERT_TRUE(lock);
  world.RunFor(kSoft / 3 + 100ms);  // the first renewal is answered
  ASSERT_EQ(Count(proto::RENEW), 1u);
  const Mono until = lock->valid_until();
  master.always[proto::RENEW] = Twist::Silence();
  world.RunFor(kSoft / 3);
  const Nanos received = world.now();
  world.RunFor(kSoft);
  EXPECT_EQ(lock->valid_until(), until) << "what was not answered counts for nothing";
  ASSERT_TRUE(lock->lost());
  EXPECT_EQ(lock->lost()->code, Code::kStaleGeneration);
  EXPECT_FALSE(lock->lost()->next_step.empty());
  EXPECT_EQ(lock->left(), 0ns);
  EXPECT_LT(received, world.now());
  auto released = Run(LockSession::Release(lock, 10s));
  ASSERT_FALSE(released);
  EXPECT_EQ(Count(proto::RELEASE), 0u) << "what is lost is somebody else's";
}

TEST_F(LockTest, ARenewalThatTookLongCountsFromWhenItWasSent) {
  auto lock = Lock();
  ASSERT_TRUE(lock);
  master.twists[proto::RENEW] = {Twist::Delay(2s)};
  const Mono before = lock->valid_until();
  world.RunFor(kSoft / 3 + 2500ms);
  EXPECT_FALSE(lock->lost());
  EXPECT_EQ(lock->valid_until() - before, kSoft / 3);
}

TEST_F(LockTest, TheMastersWordEndsIt) {
  auto lock = Lock();
  ASSERT_TRUE(lock);
  lost_inodes = {file("/lock").status.inode()};
  world.RunFor(kSoft / 3 + 100ms);
  ASSERT_TRUE(lock->lost());
  EXPECT_EQ(lock->lost()->code, Code::kStaleGeneration);
  EXPECT_EQ(lock->lost()->token, lock->opened().generation());
}

TEST_F(LockTest, WaitsForOthersAsLongAsItIsTold) {
  Error held(Code::kLeaseConflict, "/lock is held");
  held.holder = "somebody";
  master.twists[proto::OPEN_FILE] = {Twist::Refuse(held), Twist::Refuse(held)};
  EXPECT_EQ(Run(files().Lock("/lock", {})).error().holder, "somebody");
  LockOptions patient;
  patient.wait = 5s;
  EXPECT_TRUE(Lock(patient));
  master.always[proto::OPEN_FILE] = Twist::Refuse(held);
  const Nanos begun = world.now();
  EXPECT_EQ(Run(files().Lock("/lock", patient)).error().code, Code::kLeaseConflict);
  EXPECT_GE(world.now() - begun, 5s);
  EXPECT_LE(world.now() - begun, 6s);
}

}  // namespace
}  // namespace picket
