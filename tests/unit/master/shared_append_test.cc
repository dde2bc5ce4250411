// Many appenders of one file: each has its token, all have one chunk and one version.
#include <gmock/gmock.h>

#include "tests/unit/master/cluster_half.h"

namespace picket::test {
namespace {

using testing::Contains;
using testing::Not;
using testing::UnorderedElementsAre;
using Act = FakeDisk::Act;

constexpr uint64_t kOther = kWriter + 1;

class SharedAppendTest : public ClusterTest {
 protected:
  SharedAppendTest() : ClusterTest(3, ShortLeases()) {}
  static MasterOptions ShortLeases() {
    MasterOptions o;
    o.lease = 20s;
    return o;
  }
  OpenFile Open(uint64_t holder, proto::SessionMode mode = proto::RECORD_APPEND) {
    proto::OpenRequest r;
    Identify(r.mutable_mutation());
    r.mutable_mutation()->set_client(holder);
    r.set_path("/log");
    r.set_mode(mode);
    r.set_lock(mode == proto::SHARED_LOCK);
    r.set_holder(holder);
    r.set_create(true);
    r.set_permissions(0644);
    r.set_replication(3);
    r.set_chunk_size(1 << 20);
    auto opened = Call<proto::OpenResponse>(proto::OPEN_FILE, r);
    EXPECT_TRUE(opened) << opened.error().ToString();
    return opened ? OpenFile{opened->status().inode(), opened->generation()} : OpenFile();
  }
  template <class Request>
  Request By(uint64_t holder, Request request) {
    request.mutable_mutation()->set_client(holder);
    request.set_holder(holder);
    return request;
  }
  void OpenBoth() {
    file = Open(kWriter);
    ASSERT_EQ(Open(kOther).generation, file.generation);
    auto added = AddChunk(file);
    ASSERT_TRUE(added) << added.error().ToString();
    grant = *added;
    chunk = grant.token().chunk();
  }
  void Refuse(uint64_t server, proto::Method method) {
    FakeDisk::Rule rule;
    rule.method = method;
    rule.act = Act::kRefuse;
    rule.error = Error(Code::kIoError, "as the test wants");
    disk_of(server).rules.push_back(rule);
  }
  uint64_t member(int i) const { return grant.chain(i).server(); }

  OpenFile file;
  proto::WriteGrant grant;
  uint64_t chunk = 0;
};

TEST_F(SharedAppendTest, OneChunkIsMadeForAllWhoAskAtOnce) {
  file = Open(kWriter);
  Open(kOther);
  auto first = Begin<proto::WriteGrant>(proto::ADD_CHUNK, AddRequest(file, 0));
  auto second = Begin<proto::WriteGrant>(proto::ADD_CHUNK, By(kOther, AddRequest(file, 0)));
  const proto::WriteGrant mine = Await(first);
  const proto::WriteGrant theirs = Await(second);
  EXPECT_EQ(mine.token().chunk(), theirs.token().chunk());
  EXPECT_EQ(mine.token().version(), theirs.token().version());
  EXPECT_EQ(mine.token().holder(), kWriter);
  EXPECT_EQ(theirs.token().holder(), kOther);
  EXPECT_EQ(theirs.token().mode(), proto::RECORD_APPEND);
  EXPECT_NE(mine.token().signature(), theirs.token().signature());
  EXPECT_EQ(ServersOf(mine), ServersOf(theirs));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(disk(i).replicas.size(), 1u);
  EXPECT_EQ(Committed(mine.token().chunk()).size(), 1u);
}

// Its answer was lost, and others have moved on since.
TEST_F(SharedAppendTest, ARetryThatWasOvertakenGetsWhatStands) {
  file = Open(kWriter);
  Open(kOther);
  const proto::AddChunkRequest request = AddRequest(file, 0);
  auto added = Call<proto::WriteGrant>(proto::ADD_CHUNK, request);
  ASSERT_TRUE(added) << added.error().ToString();
  auto theirs = Call<proto::WriteGrant>(proto::GRANT, By(kOther, GrantRequestFor(file, *added)));
  ASSERT_TRUE(theirs) << theirs.error().ToString();
  auto again = Call<proto::WriteGrant>(proto::ADD_CHUNK, request);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->token().version(), theirs->token().version());
  EXPECT_EQ(again->token().holder(), kWriter);
}

TEST_F(SharedAppendTest, AppendersThatLoseTheSamePrimaryShareOneAttempt) {
  OpenBoth();
  Write(grant, "one");
  auto first = Begin<proto::WriteGrant>(proto::GRANT, GrantRequestFor(file, grant, {member(2)}, 3));
  auto second = Begin<proto::WriteGrant>(proto::GRANT, By(kOther, GrantRequestFor(file, grant, {member(2)}, 3)));
  const proto::WriteGrant mine = Await(first);
  const proto::WriteGrant theirs = Await(second);
  EXPECT_GT(mine.token().version(), grant.token().version());
  EXPECT_EQ(mine.token().version(), theirs.token().version());
  EXPECT_EQ(theirs.token().holder(), kOther);
  EXPECT_EQ(theirs.length(), 3u);
  EXPECT_THAT(ServersOf(theirs), UnorderedElementsAre(member(0), member(1)));
  EXPECT_EQ(Committed(chunk).size(), 2u);
  // One that comes late, and names nobody, gets it too.
  auto late = Grant(file, grant, {}, 3);
  ASSERT_TRUE(late) << late.error().ToString();
  EXPECT_EQ(late->token().version(), mine.token().version());
  EXPECT_EQ(Committed(chunk).size(), 2u);
}

TEST_F(SharedAppendTest, AMemberThatFailedSinceIsLeftOutOfANewVersion) {
  OpenBoth();
  auto first = Grant(file, grant, {member(2)});
  ASSERT_TRUE(first) << first.error().ToString();
  // Seen from the old version, but it is a member of the present set.
  auto second = Call<proto::WriteGrant>(proto::GRANT, By(kOther, GrantRequestFor(file, grant, {member(1)})));
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_GT(second->token().version(), first->token().version());
  EXPECT_THAT(ServersOf(*second), Not(Contains(member(1))));
}

TEST_F(SharedAppendTest, TheVersionThatFailedIsNotGivenAgain) {
  OpenBoth();
  auto again = Grant(file, grant);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_GT(again->token().version(), grant.token().version());
}

TEST_F(SharedAppendTest, WithoutALeaseThatRunsANewVersionIsGranted) {
  OpenBoth();
  auto first = Grant(file, grant);
  ASSERT_TRUE(first) << first.error().ToString();
  world.RunFor(21s);  // nobody extends it
  auto second = Call<proto::WriteGrant>(proto::GRANT, By(kOther, GrantRequestFor(file, grant)));
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_GT(second->token().version(), first->token().version());
}

TEST_F(SharedAppendTest, WhoWaitedForAFailedAttemptMakesItsOwn) {
  OpenBoth();
  Refuse(member(1), proto::ADVANCE_VERSION);
  Refuse(member(2), proto::ADVANCE_VERSION);
  auto first = Begin<proto::WriteGrant>(proto::GRANT, GrantRequestFor(file, grant));
  auto second = Begin<proto::WriteGrant>(proto::GRANT, By(kOther, GrantRequestFor(file, grant)));
  ASSERT_TRUE(world.RunUntil([&] { return first->has_value() && second->has_value(); }, 1min));
  ASSERT_NE((*first)->has_value(), (*second)->has_value());  // whoever came first
  const auto& failed = (*first)->has_value() ? **second : **first;
  const auto& granted = (*first)->has_value() ? **first : **second;
  EXPECT_EQ(failed.error().code, Code::kNotEnoughReplicas);
  EXPECT_EQ(granted->chain_size(), 3);
}

TEST_F(SharedAppendTest, AnyHolderSealsAndTheSameSealAgainIsSuccess) {
  OpenBoth();
  Write(grant, "records");
  const proto::CommitSealRequest seal = Seal(file, grant);
  ASSERT_TRUE(CommitSeal(By(kOther, seal)));
  const uint64_t revision = GetFile("/log")->status().mod_revision();
  proto::CommitSealRequest again = seal;
  Identify(again.mutable_mutation());
  auto second = CommitSeal(again);
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_EQ(second->status().length(), 7u);
  EXPECT_TRUE(second->status().open());
  EXPECT_EQ(GetFile("/log")->status().mod_revision(), revision);
  proto::CommitSealRequest different = seal;
  Identify(different.mutable_mutation());
  different.set_digest(seal.digest() + 1);
  EXPECT_EQ(CommitSeal(different).error().code, Code::kConflict);
  // A stranger is refused, whatever the content.
  EXPECT_EQ(CommitSeal(By(kOther + 1, again)).error().code, Code::kNotLeaseHolder);
  // The next chunk is asked for by both.
  auto next = AddChunk(file, 1);
  ASSERT_TRUE(next) << next.error().ToString();
  auto theirs = Call<proto::WriteGrant>(proto::ADD_CHUNK, By(kOther, AddRequest(file, 1)));
  ASSERT_TRUE(theirs) << theirs.error().ToString();
  EXPECT_EQ(theirs->token().version(), next->token().version());
  EXPECT_EQ(theirs->token().chunk(), next->token().chunk());
  EXPECT_EQ(AddChunk(file, 0).error().code, Code::kConflict);
}

TEST_F(SharedAppendTest, NobodyClosesWhatOthersHold) {
  OpenBoth();
  Write(grant, "records");
  proto::CommitSealRequest seal = Seal(file, grant);
  seal.set_close(true);
  EXPECT_EQ(CommitSeal(seal).error().code, Code::kConflict);
  EXPECT_TRUE(GetFile("/log")->status().open());
}

TEST_F(SharedAppendTest, RecordsLeaveNoHoles) {
  OpenBoth();
  Write(grant, "records");
  ASSERT_TRUE(CommitSeal(Seal(file, grant)));
  EXPECT_EQ(AddChunk(file, 2).error().code, Code::kConflict);
  EXPECT_TRUE(AddChunk(file, 1));
}

TEST_F(SharedAppendTest, AppendersOpenASealedChunkOnce) {
  OpenBoth();
  Write(grant, "records");
  ASSERT_TRUE(CommitSeal(Seal(file, grant)));
  world.RunFor(5s);
  proto::GrantRequest reopen = GrantRequestFor(file, grant);
  reopen.set_reopen(true);
  proto::GrantRequest other = By(kOther, GrantRequestFor(file, grant));
  other.set_reopen(true);
  auto first = Begin<proto::WriteGrant>(proto::GRANT, reopen);
  auto second = Begin<proto::WriteGrant>(proto::GRANT, other);
  const proto::WriteGrant mine = Await(first);
  const proto::WriteGrant theirs = Await(second);
  EXPECT_EQ(mine.token().version(), theirs.token().version());
  EXPECT_EQ(mine.length(), 7u);
  EXPECT_EQ(theirs.length(), 7u);
}

TEST_F(SharedAppendTest, UnderASharedLockNobodyWrites) {
  file = Open(kWriter, proto::SHARED_LOCK);
  EXPECT_EQ(AddChunk(file).error().code, Code::kConflict);
  grant.mutable_token()->set_chunk(5);
  EXPECT_EQ(Grant(file, grant).error().code, Code::kConflict);
}

}  // namespace
}  // namespace picket::test
