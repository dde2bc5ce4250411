// Quarantine at real chunkservers: what is listed, what comes back and what never does.
#include "tests/unit/chunkserver/cluster.h"

namespace picket::cs {
namespace {

constexpr Version kSecond(3, 2);

class QuarantineTest : public testing::Test {
 protected:
  explicit QuarantineTest(uint64_t seed = 1) : c_(1, seed) {}
  proto::ListQuarantineResponse List() {
    proto::ListQuarantineRequest r;
    *r.mutable_header() = c_.Header(0);
    auto listed = c_.Call<proto::ListQuarantineResponse>(0, proto::LIST_QUARANTINE, r);
    EXPECT_TRUE(listed);
    return *listed;
  }
  Result<proto::RestoreReplicaResponse> Restore(const std::string& name) {
    proto::RestoreReplicaRequest r;
    *r.mutable_header() = c_.Header(0);
    r.set_name(name);
    return c_.Call<proto::RestoreReplicaResponse>(0, proto::RESTORE_REPLICA, r);
  }
  Result<proto::PurgeQuarantineResponse> Purge(std::vector<std::string> names) {
    proto::PurgeQuarantineRequest r;
    *r.mutable_header() = c_.Header(0);
    for (std::string& name : names) r.add_names(std::move(name));
    return c_.Call<proto::PurgeQuarantineResponse>(0, proto::PURGE_QUARANTINE, r);
  }
  void SealedReplica(std::string_view bytes) {
    c_.Open({0});
    ASSERT_TRUE(c_.Write(0, 1, 0, bytes));
    ASSERT_TRUE(c_.Seal(0, bytes.size()));
  }
  std::string DeleteIt(Version v = kFirst) {
    const uint64_t instance = c_.Describe(0).replica().instance();
    EXPECT_TRUE(c_.Delete(0, v, instance));
    return ToHex(kChunk) + "." + ToHex(instance);
  }
  Cluster c_;
};

TEST_F(QuarantineTest, SaysWhatIsThereSinceWhenAndWhy) {
  c_.Open({0});
  ASSERT_TRUE(c_.Write(0, 1, 0, "stale bytes"));
  ASSERT_TRUE(c_.Create(0, kSecond, false, 2));
  ASSERT_TRUE(c_.Grant({0}, kSecond));
  ASSERT_TRUE(c_.Write(0, 1, 0, "ordered away", kSecond));
  c_.world.RunFor(5s);
  DeleteIt(kSecond);
  const auto listed = List();
  ASSERT_EQ(listed.replicas_size(), 2);
  EXPECT_EQ(listed.replicas(0).version(), kFirst.value);
  EXPECT_NE(listed.replicas(0).reason().find("stale"), std::string::npos) << listed.replicas(0).reason();
  EXPECT_EQ(listed.replicas(0).bytes(), 11u);
  EXPECT_EQ(listed.replicas(1).chunk(), kChunk);
  EXPECT_EQ(listed.replicas(1).version(), kSecond.value);
  EXPECT_NE(listed.replicas(1).reason().find("by order"), std::string::npos) << listed.replicas(1).reason();
  EXPECT_GT(listed.replicas(1).since_ns(), listed.replicas(0).since_ns());
}

TEST_F(QuarantineTest, ARestoredReplicaIsWhatItWasUnderANewInstance) {
  const std::string bytes = RandomBytes(1, 200000);
  SealedReplica(bytes);
  const auto before = c_.Describe(0).replica();
  const std::string name = DeleteIt();
  auto restored = Restore(name);
  ASSERT_TRUE(restored) << restored.error().ToString();
  EXPECT_EQ(restored->replica().state(), proto::SEALED);
  EXPECT_EQ(restored->replica().version(), kFirst.value);
  EXPECT_EQ(restored->replica().digest(), before.digest());
  EXPECT_NE(restored->replica().instance(), before.instance());
  EXPECT_TRUE(c_.Read(0, 0, 1 << 20)->bytes == bytes);
  EXPECT_EQ(List().replicas_size(), 0);
  // The order that deleted it spares it now (F13).
  EXPECT_EQ(CodeOf(c_.Delete(0, kFirst, before.instance())), Code::kConflict);
  EXPECT_EQ(CodeOf(Restore(name)), Code::kNotFound);
  c_.Restart(0, Node::Death::kPower);
  EXPECT_TRUE(c_.Read(0, 0, 1 << 20)->bytes == bytes);
}

TEST_F(QuarantineTest, ARestoredOpenReplicaIsUnclean) {
  c_.Open({0});
  ASSERT_TRUE(c_.Write(0, 1, 0, "acked"));
  auto restored = Restore(DeleteIt());
  ASSERT_TRUE(restored) << restored.error().ToString();
  EXPECT_EQ(restored->replica().length(), 5u);
  EXPECT_FALSE(restored->replica().clean());
  EXPECT_EQ(CodeOf(c_.Write(0, 2, 5, "more")), Code::kReplicaUnclean);
  EXPECT_EQ(CodeOf(c_.Read(0, 0, 10)), Code::kReplicaUnclean);
  auto answer = c_.Advance(0, kFirst, kSecond);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->partial());
}

TEST_F(QuarantineTest, NothingComesBackBelowAMarkOrOverAReplica) {
  c_.Open({0});
  ASSERT_TRUE(c_.Write(0, 1, 0, "old"));
  const uint64_t old = c_.Describe(0).replica().instance();
  const std::string old_name = ToHex(kChunk) + "." + ToHex(old);
  ASSERT_TRUE(c_.Create(0, kSecond, false, 2));
  EXPECT_EQ(CodeOf(Restore(old_name)), Code::kConflict);
  const std::string new_name = DeleteIt(kSecond);
  auto refused = Restore(old_name);
  ASSERT_EQ(CodeOf(refused), Code::kStaleVersion);
  EXPECT_EQ(refused.error().mark, kSecond.value);
  EXPECT_TRUE(Restore(new_name));
}

TEST_F(QuarantineTest, OnlyNamesOfEntriesAreTaken) {
  SealedReplica("bytes");
  const std::string name = DeleteIt();
  for (const std::string& bad : {std::string(), std::string("../replicas/") + ToHex(kChunk), name + ".data",
                                 name.substr(1), ToHex(kChunk) + "." + ToHex(99)}) {
    EXPECT_EQ(CodeOf(Restore(bad)), Code::kNotFound) << bad;
    auto purged = Purge({bad});
    ASSERT_TRUE(purged);
    EXPECT_EQ(purged->purged_size(), 0) << bad;
  }
  auto purged = Purge({"nothing", name});
  ASSERT_TRUE(purged);
  ASSERT_EQ(purged->purged_size(), 1);
  EXPECT_EQ(purged->purged(0), name);
  EXPECT_EQ(purged->bytes(), 5u);
  EXPECT_EQ(List().replicas_size(), 0);
  EXPECT_EQ(CodeOf(Restore(name)), Code::kNotFound);
  // The mark stays.
  EXPECT_EQ(CodeOf(c_.Create(0)), Code::kStaleVersion);
}

TEST_F(QuarantineTest, AnOldMasterRestoresAndPurgesNothing) {
  SealedReplica("bytes");
  const std::string name = DeleteIt();
  proto::AdvanceVersionRequest newer = c_.AdvanceRequest(0, kFirst, kSecond);
  *newer.mutable_header() = c_.Header(0, 4);
  (void)c_.Call<proto::AdvanceVersionResponse>(0, proto::ADVANCE_VERSION, newer);
  EXPECT_EQ(CodeOf(Restore(name)), Code::kStaleEpoch);
  EXPECT_EQ(CodeOf(Purge({name})), Code::kStaleEpoch);
}

TEST_F(QuarantineTest, ARestoreHappensWhollyOrNotWhereverPowerIsLost) {
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE("power lost at change " + std::to_string(at));
    Cluster c(1, at);
    const std::string bytes = RandomBytes(1, 100000);
    c.Open({0});
    ASSERT_TRUE(c.Write(0, 1, 0, bytes));
    ASSERT_TRUE(c.Seal(0, bytes.size()));
    const uint64_t instance = c.Describe(0).replica().instance();
    ASSERT_TRUE(c.Delete(0, kFirst, instance));
    proto::RestoreReplicaRequest r;
    *r.mutable_header() = c.Header(0);
    r.set_name(ToHex(kChunk) + "." + ToHex(instance));
    c.nodes[0]->disk().faults.lose_power_at = at;
    auto restored = c.Call<proto::RestoreReplicaResponse>(0, proto::RESTORE_REPLICA, r, {}, 2s);
    c.nodes[0]->disk().faults.lose_power_at.reset();
    c.Restart(0, Node::Death::kPower);
    if (restored) EXPECT_TRUE(c.Read(0, 0, 1 << 20)->bytes == bytes);
    if (c.Describe(0).replica().state() == proto::SEALED) {
      EXPECT_TRUE(c.Read(0, 0, 1 << 20)->bytes == bytes);
    } else {
      // Still away, its mark still here, and another try brings it back.
      EXPECT_EQ(CodeOf(c.Create(0)), Code::kStaleVersion);
      *r.mutable_header() = c.Header(0);
      auto again = c.Call<proto::RestoreReplicaResponse>(0, proto::RESTORE_REPLICA, r);
      ASSERT_TRUE(again) << again.error().ToString();
      EXPECT_TRUE(c.Read(0, 0, 1 << 20)->bytes == bytes);
    }
    if (restored || testing::Test::HasFailure()) break;
    ASSERT_LT(at, 200u);
  }
}

}  // namespace
}  // namespace picket::cs
