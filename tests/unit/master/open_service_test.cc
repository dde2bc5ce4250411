// OPEN_FILE and RELEASE: who gets a file's write session, and who is told to go.
#include "master/open_service.h"

#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

class OpenServiceTest : public MetadataTest {
 protected:
  static constexpr uint64_t kOther = kClient + 1;
  std::optional<SessionTable::Session> SessionOn(uint64_t inode) { return half().sessions.Find(InodeId(inode)); }
  bool AwaitRecovery(size_t begun) {
    return world.RunUntil([&] { return half().recoverer.begun >= begun; }, 10s);
  }
};

TEST_F(OpenServiceTest, AClosedFileIsOpenedUnderANewGeneration) {
  auto created = Create("/f");
  const ChunkId chunk = AddChunk(InodeId(created->status().inode()), true, 100);
  ASSERT_TRUE(Close(*created));
  auto opened = Open(OpenRequestFor("/f"));
  ASSERT_TRUE(opened) << opened.error().ToString();
  EXPECT_GT(opened->generation(), created->generation());
  EXPECT_EQ(opened->status().generation(), opened->generation());
  EXPECT_EQ(opened->status().holder(), ToHex(kClient));
  EXPECT_EQ(opened->soft_limit_ms(), 60000u);
  EXPECT_EQ(opened->hard_limit_ms(), 1200000u);
  EXPECT_EQ(opened->last_chunk().chunk(), chunk.value);
  EXPECT_FALSE(opened->has_sequencer());
  EXPECT_EQ(Stat("/f")->SerializeAsString(), opened->status().SerializeAsString());
  EXPECT_EQ(CodeOf(Close(*created)), Code::kStaleGeneration);
  ASSERT_TRUE(Close(AsCreated(*opened)));
  EXPECT_FALSE(Stat("/f")->open());
  EXPECT_EQ(Stat("/f")->holder(), "");
}

TEST_F(OpenServiceTest, WhatCannotBeOpened) {
  Mkdir("/d");
  Put("/f");
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("/none"))), Code::kNotFound);
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("/f/g"))), Code::kNotDirectory);
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("/d"))), Code::kIsDirectory);
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("f"))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("/f", proto::SESSION_MODE_UNKNOWN))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("/f", proto::EXCLUSIVE, 0))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("/f", proto::EXCLUSIVE, kRecoveryHolder.value))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("/f", proto::EXCLUSIVE, kClient, std::string(257, 'w')))), Code::kInvalidArgument);
  auto lock = OpenRequestFor("/f", proto::RECORD_APPEND);
  lock.set_lock(true);
  EXPECT_EQ(CodeOf(Open(lock)), Code::kInvalidArgument);
  const auto trashed = Delete("/f");
  EXPECT_EQ(CodeOf(Open(OpenRequestFor(trashed->trash_path()))), Code::kInvalidArgument);
  EXPECT_EQ(half().sessions.open_count(), 0u);
}

TEST_F(OpenServiceTest, SessionLimitsAreHonouredAndBounded) {
  Put("/f");
  struct Case {
    uint32_t soft, hard, soft_is, hard_is;  // 0: refused
  };
  const Case cases[] = {{0, 0, 60000, 1200000},       {2000, 8000, 2000, 8000},     {1000, 1000, 1000, 1000},
                        {5000, 0, 5000, 1200000},     {0, 30000, 30000, 30000},     {2000000, 0, 2000000, 2000000},
                        {999, 0, 0, 0},               {5000, 4999, 0, 0},           {1000, 24 * 3600 * 1000 + 1, 0, 0}};
  for (const Case& c : cases) {
    SCOPED_TRACE(std::to_string(c.soft) + " " + std::to_string(c.hard));
    auto r = OpenRequestFor("/f");
    r.mutable_limits()->set_soft_ms(c.soft);
    r.mutable_limits()->set_hard_ms(c.hard);
    auto opened = Open(r);
    auto other = CreateRequestFor("/g", true);
    *other.mutable_limits() = r.limits();
    auto created = Call<proto::CreateResponse>(proto::CREATE, other);
    ASSERT_EQ(opened.has_value(), c.soft_is != 0);
    ASSERT_EQ(created.has_value(), c.soft_is != 0);
    if (!opened) {
      EXPECT_EQ(opened.error().code, Code::kInvalidArgument);
      EXPECT_EQ(created.error().code, Code::kInvalidArgument);
      continue;
    }
    EXPECT_EQ(opened->soft_limit_ms(), c.soft_is);
    EXPECT_EQ(opened->hard_limit_ms(), c.hard_is);
    EXPECT_EQ(created->soft_limit_ms(), c.soft_is);
    EXPECT_EQ(created->hard_limit_ms(), c.hard_is);
    ASSERT_TRUE(Close(AsCreated(*opened)));
    ASSERT_TRUE(Abandon(*created));
  }
}

TEST_F(OpenServiceTest, AFileThatDoesNotExistIsMadeWithItsSession) {
  auto r = OpenRequestFor("/d/log", proto::RECORD_APPEND);
  r.set_create(true);
  EXPECT_EQ(CodeOf(Open(r)), Code::kNotFound);
  r = OpenRequestFor("/d/log", proto::RECORD_APPEND);
  r.set_create(true);
  r.set_parents(true);
  r.set_permissions(0600);
  r.set_replication(2);
  r.set_chunk_size(1 << 20);
  auto opened = Open(r);
  ASSERT_TRUE(opened) << opened.error().ToString();
  EXPECT_EQ(opened->status().mode(), 0600u);
  EXPECT_EQ(opened->status().replication(), 2u);
  EXPECT_EQ(opened->status().chunk_size(), 1u << 20);
  EXPECT_TRUE(Stat("/d/log")->open());
  // It is there before the session and stays after it, whatever the session does.
  EXPECT_EQ(CodeOf(Abandon(AsCreated(*opened))), Code::kInvalidArgument);
  ASSERT_TRUE(Release(*opened));
  EXPECT_TRUE(Exists("/d/log"));
  EXPECT_FALSE(Stat("/d/log")->open());
  auto bad = OpenRequestFor("/x");
  bad.set_create(true);
  bad.set_replication(17);
  EXPECT_EQ(CodeOf(Open(bad)), Code::kInvalidArgument);
  auto present = OpenRequestFor("/d/log");
  present.set_create(true);
  present.set_replication(17);
  EXPECT_TRUE(Open(present)) << "it exists: nothing is made";
}

TEST_F(OpenServiceTest, OnlyTheSessionThatMadeAFileAbandonsIt) {
  const uint64_t inode = Put("/f");
  auto opened = Open(OpenRequestFor("/f"));
  ASSERT_TRUE(opened);
  EXPECT_EQ(CodeOf(Abandon(AsCreated(*opened))), Code::kInvalidArgument);
  EXPECT_EQ(Stat("/f")->inode(), inode);
  EXPECT_TRUE(Close(AsCreated(*opened)));
}

TEST_F(OpenServiceTest, ThePendingContentOfAnOverwriteHasNoName) {
  const uint64_t old = Put("/f");
  auto over = Create("/f", true);
  auto opened = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther));
  ASSERT_TRUE(opened) << opened.error().ToString();
  EXPECT_EQ(opened->status().inode(), old);
  ASSERT_TRUE(Close(*over));
  EXPECT_EQ(Stat("/f")->inode(), over->status().inode());
  WaitForReclaim();
  EXPECT_EQ(CodeOf(Close(AsCreated(*opened), kOther)), Code::kNotFound);
}

TEST_F(OpenServiceTest, ASharedSessionHasManyHoldersUnderOneGeneration) {
  const uint64_t inode = Put("/log");
  auto first = Open(OpenRequestFor("/log", proto::RECORD_APPEND));
  auto second = Open(OpenRequestFor("/log", proto::RECORD_APPEND, kOther));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->generation(), second->generation());
  auto again = Open(OpenRequestFor("/log", proto::RECORD_APPEND, kOther));
  ASSERT_TRUE(again);
  EXPECT_EQ(SessionOn(inode)->holders.size(), 2u);
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("/log", proto::SHARED_LOCK, kOther + 1))), Code::kLeaseConflict);
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("/log", proto::EXCLUSIVE, kOther + 1))), Code::kLeaseConflict);
  EXPECT_TRUE(Renew(inode, first->generation()));
  EXPECT_TRUE(Renew(inode, first->generation(), kOther));
  EXPECT_EQ(CodeOf(Release(*first, kOther + 1)), Code::kNotLeaseHolder);
  ASSERT_TRUE(Release(*first));
  EXPECT_FALSE(Renew(inode, first->generation())) << "it left";
  EXPECT_EQ(CodeOf(Release(*first)), Code::kNotLeaseHolder);
  EXPECT_TRUE(Stat("/log")->open());
  Restart();
  EXPECT_TRUE(Renew(inode, first->generation(), kOther)) << "holders are durable";
  ASSERT_TRUE(Release(*second, kOther));
  EXPECT_FALSE(Stat("/log")->open());
  EXPECT_EQ(half().recoverer.begun, 0u) << "nothing was unsealed";
}

// One holder that closes does not end it for the others: of a lock, they would still believe that they hold it.
TEST_F(OpenServiceTest, ASharedSessionIsClosedByItsLastHolderOnly) {
  const uint64_t inode = Put("/log");
  for (const proto::SessionMode mode : {proto::RECORD_APPEND, proto::SHARED_LOCK}) {
    auto first = Open(OpenRequestFor("/log", mode));
    auto second = Open(OpenRequestFor("/log", mode, kOther));
    ASSERT_TRUE(first && second);
    proto::CreateResponse shared;
    *shared.mutable_status() = first->status();
    shared.set_generation(first->generation());
    EXPECT_EQ(CodeOf(Close(shared)), Code::kConflict);
    EXPECT_TRUE(Renew(inode, first->generation(), kOther));
    ASSERT_TRUE(Release(*first));
    ASSERT_TRUE(Release(*second, kOther));
  }
}

// D20: an exclusive session has a new generation, and the appenders of before are fenced.
TEST_F(OpenServiceTest, D20AnExclusiveSessionFencesTheAppendersOfBefore) {
  const uint64_t inode = Put("/log");
  auto appender = Open(OpenRequestFor("/log", proto::RECORD_APPEND));
  ASSERT_TRUE(appender);
  world.RunFor(61s);
  auto exclusive = Open(OpenRequestFor("/log", proto::EXCLUSIVE, kOther));
  ASSERT_TRUE(exclusive) << exclusive.error().ToString();
  EXPECT_GT(exclusive->generation(), appender->generation());
  EXPECT_FALSE(Renew(inode, appender->generation()));
  EXPECT_EQ(CodeOf(Release(*appender)), Code::kStaleGeneration);
}

TEST_F(OpenServiceTest, TheLastAppenderOfAnOpenChunkHasTheFileRecoveredAndClosed) {
  const uint64_t inode = Put("/log");
  auto opened = Open(OpenRequestFor("/log", proto::RECORD_APPEND));
  ASSERT_TRUE(opened);
  AddChunk(InodeId(inode), false);
  half().recoverer.hold = true;
  proto::ReleaseRequest r;
  Identify(r.mutable_mutation());
  r.set_inode(inode);
  r.set_generation(opened->generation());
  r.set_holder(kClient);
  EXPECT_EQ(CodeOf(Call<proto::ReleaseResponse>(proto::RELEASE, r)), Code::kWaitingFor);
  EXPECT_TRUE(SessionOn(inode)->recovering);
  EXPECT_FALSE(Renew(inode, opened->generation()));
  // The retry waits for the same end.
  auto again = Begin<proto::ReleaseResponse>(proto::RELEASE, r);
  world.RunFor(1s);
  EXPECT_FALSE(again->has_value());
  half().recoverer.hold = false;
  ASSERT_TRUE(world.RunUntil([&] { return again->has_value(); }, 10s));
  EXPECT_TRUE((*again)->has_value());
  EXPECT_FALSE(Stat("/log")->open());
  EXPECT_EQ(half().recoverer.begun, 1u);
  Restart();
  EXPECT_TRUE(Call<proto::ReleaseResponse>(proto::RELEASE, r)) << "remembered";
}

TEST_F(OpenServiceTest, ASingleWriterClosesInsteadOfReleasing) {
  Put("/f");
  auto opened = Open(OpenRequestFor("/f"));
  auto released = Release(*opened);
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, Code::kInvalidArgument);
  EXPECT_TRUE(released.error().next_step.contains("close"));
}

// ---- taking over ---------------------------------------------------------------------------------

TEST_F(OpenServiceTest, ASilentWritersFileIsClaimedAfterTheSoftLimit) {
  auto created = Create("/f");
  const uint64_t inode = created->status().inode();
  world.RunFor(30s);
  ASSERT_TRUE(Renew(inode, created->generation()));
  world.RunFor(50s);
  auto early = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kLeaseConflict);
  EXPECT_EQ(early.error().mark, created->generation());
  EXPECT_EQ(early.error().holder, ToHex(kClient));
  EXPECT_NEAR(early.error().retry_after_ms, 10'000, 1'000);
  world.RunFor(10s);
  auto claimed = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther));
  ASSERT_TRUE(claimed) << claimed.error().ToString();
  EXPECT_EQ(claimed->status().inode(), inode);
  EXPECT_GT(claimed->generation(), created->generation());
  EXPECT_EQ(CodeOf(Abandon(*created)), Code::kStaleGeneration) << "the file it made is the claimant's";
  EXPECT_EQ(CodeOf(Abandon(AsCreated(*claimed), kOther)), Code::kInvalidArgument);
}

TEST_F(OpenServiceTest, AClaimOfAnOpenChunkRecoversTheFileFirst) {
  auto created = Create("/f");
  const uint64_t inode = created->status().inode();
  AddChunk(InodeId(inode), false);
  world.RunFor(61s);
  half().recoverer.hold = true;
  auto claimed = Begin<proto::OpenResponse>(proto::OPEN_FILE, OpenRequestFor("/f", proto::EXCLUSIVE, kOther));
  ASSERT_TRUE(AwaitRecovery(1));
  EXPECT_EQ(CodeOf(Close(*created)), Code::kStaleGeneration) << "fenced from the first batch on";
  EXPECT_TRUE(SessionOn(inode)->reason.contains("claimed")) << SessionOn(inode)->reason;
  EXPECT_EQ(SessionOn(inode)->stalled_holder, ClientId(kClient));
  half().recoverer.hold = false;
  ASSERT_TRUE(world.RunUntil([&] { return claimed->has_value(); }, 10s));
  ASSERT_TRUE(claimed->value()) << claimed->value().error().ToString();
  const proto::OpenResponse opened = *claimed->value();
  EXPECT_EQ(SessionOn(inode)->generation.value, opened.generation());
  EXPECT_EQ(SessionOn(inode)->holder(), ClientId(kOther));
  EXPECT_FALSE(SessionOn(inode)->created);
  EXPECT_TRUE(opened.has_last_chunk());
  EXPECT_TRUE(Close(AsCreated(opened), kOther));
}

// The claimant's call gives up before the recovery ends; its session is opened all the same, and its retry
// gets that very session instead of meeting itself.
TEST_F(OpenServiceTest, ARetryOfAClaimGetsTheSessionThatTheFirstCallWon) {
  auto created = Create("/f");
  AddChunk(InodeId(created->status().inode()), false);
  world.RunFor(61s);
  half().recoverer.hold = true;
  const auto r = OpenRequestFor("/f", proto::EXCLUSIVE, kOther);
  auto first = Begin<proto::OpenResponse>(proto::OPEN_FILE, r, 2s);
  ASSERT_TRUE(AwaitRecovery(1));
  world.RunFor(3s);
  ASSERT_TRUE(first->has_value());
  EXPECT_EQ(CodeOf(**first), Code::kWaitingFor);
  auto retry = Begin<proto::OpenResponse>(proto::OPEN_FILE, r);
  world.RunFor(1s);
  half().recoverer.hold = false;
  ASSERT_TRUE(world.RunUntil([&] { return retry->has_value(); }, 20s));
  ASSERT_TRUE(retry->value()) << retry->value().error().ToString();
  EXPECT_EQ(SessionOn(created->status().inode())->generation.value, retry->value()->generation());
  EXPECT_EQ(half().recoverer.begun, 1u);
  Restart();
  auto later = Open(r);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->generation(), retry->value()->generation());
}

TEST_F(OpenServiceTest, WhoComesDuringARecoveryAwaitsItsEnd) {
  keep_answers = true;
  auto created = Create("/f");
  AddChunk(InodeId(created->status().inode()), false);
  world.RunFor(61s);
  half().recoverer.hold = true;
  auto winner = Begin<proto::OpenResponse>(proto::OPEN_FILE, OpenRequestFor("/f", proto::RECORD_APPEND, kOther));
  ASSERT_TRUE(AwaitRecovery(1));
  auto joiner = Begin<proto::OpenResponse>(proto::OPEN_FILE, OpenRequestFor("/f", proto::RECORD_APPEND, kOther + 1));
  auto loser = Begin<proto::OpenResponse>(proto::OPEN_FILE, OpenRequestFor("/f", proto::EXCLUSIVE, kOther + 2));
  world.RunFor(1s);
  half().recoverer.hold = false;
  ASSERT_TRUE(world.RunUntil([&] { return winner->has_value() && joiner->has_value() && loser->has_value(); }, 20s));
  ASSERT_TRUE(winner->value() && joiner->value());
  EXPECT_EQ(winner->value()->generation(), joiner->value()->generation());
  EXPECT_EQ(CodeOf(loser->value()), Code::kLeaseConflict);
}

TEST_F(OpenServiceTest, ALogicalWriterTakesItsOwnSessionOverAtOnce) {
  Put("/f");
  auto first = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kClient, "loader-7"));
  ASSERT_TRUE(first);
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther, "loader-8"))), Code::kLeaseConflict);
  auto second = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther, "loader-7"));
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_GT(second->generation(), first->generation());
  EXPECT_EQ(CodeOf(Close(AsCreated(*first))), Code::kStaleGeneration);
  Restart();
  auto third = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther + 1, "loader-7"));
  ASSERT_TRUE(third) << "the writer's id is durable";
  EXPECT_TRUE(Close(AsCreated(*third), kOther + 1));
}

TEST_F(OpenServiceTest, ASharedHolderThatComesBackReplacesItself) {
  const uint64_t inode = Put("/log");
  auto first = Open(OpenRequestFor("/log", proto::RECORD_APPEND, kClient, "a"));
  auto other = Open(OpenRequestFor("/log", proto::RECORD_APPEND, kOther, "b"));
  auto again = Open(OpenRequestFor("/log", proto::RECORD_APPEND, kOther + 1, "a"));
  ASSERT_TRUE(first && other && again);
  EXPECT_EQ(SessionOn(inode)->holders.size(), 2u);
  EXPECT_FALSE(Renew(inode, first->generation()));
  EXPECT_TRUE(Renew(inode, first->generation(), kOther));
  EXPECT_TRUE(Renew(inode, first->generation(), kOther + 1));
}

// A put that is started again with its writer's id: what its old self left half-written makes way.
TEST_F(OpenServiceTest, ALogicalWriterReplacesTheFileItWasMaking) {
  proto::CreateRequest r = CreateRequestFor("/f");
  r.set_writer_id("loader");
  auto first = Call<proto::CreateResponse>(proto::CREATE, r);
  ASSERT_TRUE(first);
  EXPECT_EQ(CodeOf(Create("/f")), Code::kAlreadyExists);
  r = CreateRequestFor("/f");
  r.set_writer_id("loader");
  r.set_holder(kOther);
  r.mutable_conditions()->set_if_absent(true);
  auto second = Call<proto::CreateResponse>(proto::CREATE, r);
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_NE(second->status().inode(), first->status().inode());
  EXPECT_EQ(Stat("/f")->inode(), second->status().inode());
  WaitForReclaim();
  EXPECT_EQ(CodeOf(Close(*first)), Code::kNotFound);
  ASSERT_TRUE(Close(*second, kOther));
  r = CreateRequestFor("/f");
  r.set_writer_id("loader");
  EXPECT_EQ(CodeOf(Call<proto::CreateResponse>(proto::CREATE, r)), Code::kAlreadyExists) << "a closed file is nobody's";
}

TEST_F(OpenServiceTest, ALogicalWriterGivesItsOldOverwriteUp) {
  const uint64_t old = Put("/f");
  const auto overwrite = [&](uint64_t holder, std::string path) {
    proto::CreateRequest r = CreateRequestFor(path, true);
    r.set_writer_id("loader");
    r.set_holder(holder);
    return Call<proto::CreateResponse>(proto::CREATE, r);
  };
  Put("/g");
  auto elsewhere = overwrite(kClient, "/g");
  auto first = overwrite(kClient, "/f");
  auto second = overwrite(kOther, "/f");
  ASSERT_TRUE(elsewhere && first && second);
  WaitForReclaim();
  EXPECT_EQ(CodeOf(Close(*first)), Code::kNotFound) << "it would swap old content in after the new";
  EXPECT_EQ(Stat("/f")->inode(), old);
  EXPECT_TRUE(Close(*second, kOther));
  EXPECT_TRUE(Close(*elsewhere)) << "another name";
  EXPECT_EQ(Stat("/f")->inode(), second->status().inode());
}

// ---- faults of others, excluded by kind ----------------------------------------------------------

// The token is judged at every step, not when the file is opened.
TEST_F(OpenServiceTest, TokenCheckedAtAcquireOnly) {
  Put("/f");
  auto old_writer = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kClient, "w"));
  ASSERT_TRUE(Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther, "w")));
  // It opened the file in good order; each of its later steps is refused.
  auto closed = Close(AsCreated(*old_writer));
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::kStaleGeneration);
  EXPECT_EQ(closed.error().token, old_writer->generation());
  EXPECT_GT(closed.error().mark, old_writer->generation());
  EXPECT_EQ(closed.error().holder, ToHex(kOther));
  EXPECT_EQ(CodeOf(Abandon(AsCreated(*old_writer))), Code::kStaleGeneration);
  EXPECT_EQ(CodeOf(Release(*old_writer)), Code::kStaleGeneration);
}

// A writer that renewed a moment ago may be fenced by now: a renewal is no permit, and does not bring a
// session back.
TEST_F(OpenServiceTest, RenewedLeaseTakenForAValidWrite) {
  const uint64_t inode = Put("/f");
  auto old_writer = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kClient, "w"));
  ASSERT_TRUE(Renew(inode, old_writer->generation()));
  auto new_writer = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther, "w"));
  ASSERT_TRUE(new_writer);
  EXPECT_EQ(CodeOf(Close(AsCreated(*old_writer))), Code::kStaleGeneration);
  EXPECT_FALSE(Renew(inode, old_writer->generation()));
  EXPECT_EQ(CodeOf(Close(AsCreated(*old_writer))), Code::kStaleGeneration);
  EXPECT_TRUE(Close(AsCreated(*new_writer), kOther));
}

// As TestFileAppend4: the file of a writer that vanished is recovered for another one; then the first comes
// back and completes.
TEST_F(OpenServiceTest, TheOldHolderClosesAfterItsFileWasTakenOver) {
  auto first = Create("/f");
  AddChunk(InodeId(first->status().inode()), false);
  world.RunFor(61s);
  auto second = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther));
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_EQ(CodeOf(Close(*first)), Code::kStaleGeneration);
  EXPECT_TRUE(Stat("/f")->open()) << "its late close takes nothing from the new writer";
  EXPECT_EQ(Stat("/f")->generation(), second->generation());
  ASSERT_TRUE(Close(AsCreated(*second), kOther));
  EXPECT_EQ(CodeOf(Close(*first)), Code::kStaleGeneration);
  EXPECT_FALSE(Stat("/f")->open());
}

TEST_F(OpenServiceTest, HDFS3755AnOpenFileIsOverwrittenByItsOwnClientAndByOthers) {
  auto first = Create("/f");
  auto own = Create("/f", true);
  ASSERT_TRUE(own) << own.error().ToString();
  auto r = CreateRequestFor("/f", true);
  r.set_holder(kOther);
  auto other = Call<proto::CreateResponse>(proto::CREATE, r);
  ASSERT_TRUE(other);
  ASSERT_TRUE(Close(*first)) << "it is its file until the swap";
  ASSERT_TRUE(Close(*own));
  EXPECT_EQ(Stat("/f")->inode(), own->status().inode());
  ASSERT_TRUE(Close(*other, kOther));
  EXPECT_EQ(Stat("/f")->inode(), other->status().inode());
}

// ---- retries -------------------------------------------------------------------------------------

TEST_F(OpenServiceTest, ARetriedOpenGetsTheSameSessionAlsoAfterARestart) {
  keep_answers = true;
  Put("/f");
  auto r = OpenRequestFor("/f");
  auto first = Open(r);
  auto again = Open(r);
  Restart();
  auto after = Open(r);
  ASSERT_TRUE(first && again && after);
  EXPECT_EQ(first->SerializeAsString(), again->SerializeAsString());
  EXPECT_EQ(first->SerializeAsString(), after->SerializeAsString());
  ASSERT_TRUE(Close(AsCreated(*after)));
  auto late = Open(r);
  ASSERT_TRUE(late) << "a duplicate opens nothing";
  EXPECT_FALSE(Stat("/f")->open());
}

TEST_F(OpenServiceTest, ALateDuplicateOfARefusedOpenIsRefused) {
  keep_answers = true;
  auto created = Create("/f");
  const auto r = OpenRequestFor("/f", proto::EXCLUSIVE, kOther);
  EXPECT_EQ(CodeOf(Open(r)), Code::kLeaseConflict);
  ASSERT_TRUE(Close(*created));
  EXPECT_EQ(CodeOf(Open(r)), Code::kLeaseConflict);
  EXPECT_FALSE(Stat("/f")->open());
}

// HDFS-17861: what was staged when the disk failed is in no table.
TEST_F(OpenServiceTest, AFailedDiskTakesTakeoversBack) {
  const uint64_t inode = Put("/f");
  auto opened = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kClient, "w"));
  ASSERT_TRUE(opened);
  node.disk().faults.fail_syncs = true;
  EXPECT_EQ(CodeOf(Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther, "w"))), Code::kUnavailable);
  EXPECT_EQ(SessionOn(inode)->generation.value, opened->generation());
  EXPECT_EQ(SessionOn(inode)->holder(), ClientId(kClient));
  node.disk().faults.fail_syncs = false;
  Restart();
  EXPECT_TRUE(Close(AsCreated(*opened)));
}

}  // namespace
}  // namespace picket::test
