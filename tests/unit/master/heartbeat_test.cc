// Heartbeats at the master: their order, and what it lets chunkservers let go.
#include <gmock/gmock.h>

#include "master/consent.h"
#include "tests/unit/master/cluster_half.h"

namespace picket::test {
namespace {

using testing::ElementsAre;

TEST(Consent, ATombstoneGoesWhenNobodyCanOrderForItsChunk) {  // F21
  record::Chunk record;
  const ChunkId old(uint64_t{2} << 32 | 7);
  EXPECT_TRUE(MayForgetTombstone(nullptr, old, 3));
  EXPECT_FALSE(MayForgetTombstone(nullptr, old, 2));  // perhaps being created now
  record.set_inode(9);
  EXPECT_FALSE(MayForgetTombstone(&record, old, 3));
  record.set_inode(0);  // garbage: a replica of it may turn up
  EXPECT_FALSE(MayForgetTombstone(&record, old, 3));
}

TEST(Consent, TheLastHopeStaysInQuarantine) {  // D16
  record::Chunk record;
  record.set_inode(9);
  record.set_replication(3);
  EXPECT_FALSE(MayLeaveQuarantine(&record, 2));
  EXPECT_TRUE(MayLeaveQuarantine(&record, 3));
  record.set_inode(0);
  EXPECT_TRUE(MayLeaveQuarantine(&record, 0));
  EXPECT_TRUE(MayLeaveQuarantine(nullptr, 0));
}

class MasterHeartbeatTest : public ClusterTest {
 protected:
  void SetUp() override {
    const OpenFile file = Create("/f");
    auto added = AddChunk(file);
    ASSERT_TRUE(added) << added.error().ToString();
    Write(*added, "content");
    proto::CommitSealRequest seal = Seal(file, *added);
    seal.set_close(true);
    ASSERT_TRUE(CommitSeal(seal));
    chunk_ = added->token().chunk();
  }
  proto::HeartbeatRequest BeatOf(size_t i, uint64_t number) {
    proto::HeartbeatRequest r;
    r.set_server(disk(i).id.value);
    r.set_session(fake(i).session());
    r.mutable_space()->set_total_bytes(uint64_t{1} << 40);
    r.mutable_space()->set_free_bytes(uint64_t{1} << 39);
    r.set_beat(number);
    return r;
  }
  proto::HeartbeatResponse Send(const proto::HeartbeatRequest& r) {
    auto answer = Call<proto::HeartbeatResponse>(proto::HEARTBEAT, r);
    EXPECT_TRUE(answer) << answer.error().ToString();
    return answer ? *answer : proto::HeartbeatResponse();
  }
  int Readable() { return Chunk(chunk_).replicas_size(); }
  uint64_t chunk_ = 0;
};

TEST_F(MasterHeartbeatTest, ALateBeatUndoesNothingNewer) {
  ASSERT_EQ(Readable(), 3);
  proto::HeartbeatRequest gone = BeatOf(0, 1000);
  gone.add_removed(chunk_);
  Send(gone);
  EXPECT_EQ(Readable(), 2);
  proto::HeartbeatRequest late = BeatOf(0, 999);
  const FakeReplica& have = replica(0, chunk_);
  proto::ReplicaReport* report = late.add_changed();
  report->set_chunk(chunk_);
  report->set_version(have.version);
  report->set_generation(have.generation);
  report->set_state(proto::SEALED);
  report->set_length(have.bytes.size());
  report->set_digest(DigestOf(have.bytes));
  report->set_instance(have.instance);
  report->set_clean(true);
  Send(late);
  EXPECT_EQ(Readable(), 2);
  late.set_beat(1000);  // a duplicate of the last number is late too
  Send(late);
  EXPECT_EQ(Readable(), 2);
  late.set_beat(1001);
  Send(late);
  EXPECT_EQ(Readable(), 3);
}

TEST_F(MasterHeartbeatTest, TombstonesAreForgottenWithoutARecordOnly) {
  RestartMaster();
  ASSERT_TRUE(AwaitLive(3));
  const uint64_t epoch = chunk_ >> 32;
  proto::HeartbeatRequest r = BeatOf(0, 1000);
  const uint64_t unknown = epoch << 32 | 0xffff;
  const uint64_t in_creation = (epoch + 1) << 32 | 0xffff;
  for (uint64_t chunk : {chunk_, unknown, in_creation}) r.add_tombstones()->set_chunk(chunk);
  const auto answer = Send(r);
  EXPECT_THAT(answer.forget(), ElementsAre(unknown));
}

TEST_F(MasterHeartbeatTest, QuarantineIsLeftWhenEnoughReplicasCount) {
  proto::HeartbeatRequest r = BeatOf(0, 1000);
  const auto offer = [&r](const std::string& name, uint64_t chunk) {
    r.add_expired_quarantine()->set_name(name);
    r.mutable_expired_quarantine()->rbegin()->set_chunk(chunk);
  };
  offer("of a chunk with all its replicas", chunk_);
  offer("of no chunk", 0xffff);
  EXPECT_EQ(Send(r).purge_quarantine_size(), 2);
  r.set_beat(1001);
  r.add_removed(chunk_);
  EXPECT_THAT(Send(r).purge_quarantine(), ElementsAre("of no chunk"));
}

}  // namespace
}  // namespace picket::test
