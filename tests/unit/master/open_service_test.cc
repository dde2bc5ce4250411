// OPEN_FILE and RELEASE: who gets a file's write session, and who is told to go.
#include "master/open_service.h"

#include "master/session_claim.h"
#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

// ---- the judge -----------------------------------------------------------------------------------

SessionTable::Session SessionOf(proto::SessionMode mode, std::vector<std::pair<uint64_t, std::string>> holders) {
  SessionTable::Session s;
  s.inode = InodeId(5);
  s.generation = Generation(1, 9);
  s.mode = mode;
  for (auto& [client, writer_id] : holders) s.holders.push_back({ClientId(client), writer_id, Mono(Nanos(100s))});
  s.soft_limit = 60s;
  s.hard_limit = 1200s;
  return s;
}

TEST(SessionClaim, WhoMayHaveTheFile) {
  using Way = Claim::Way;
  const auto E = proto::EXCLUSIVE, R = proto::RECORD_APPEND, S = proto::SHARED_LOCK;
  const auto one = [&](proto::SessionMode mode) { return SessionOf(mode, {{7, "w"}}); };
  auto recovering = one(E);
  recovering.recovering = true;
  auto nameless = SessionOf(E, {{7, ""}});
  auto two = SessionOf(R, {{7, "w"}, {8, "v"}});
  auto one_fresh = two;
  one_fresh.holders[1].renewed = Mono(Nanos(150s));
  auto both = SessionOf(R, {{7, "w"}, {8, "w"}});
  struct Case {
    std::string what;
    std::optional<SessionTable::Session> session;
    proto::SessionMode mode;
    uint64_t holder;
    std::string writer_id;
    Nanos silent;
    std::optional<Way> way;  // nothing: LEASE_CONFLICT
  };
  const Case cases[] = {
      {"nobody", {}, E, 9, "", 0s, Way::kFree},
      {"exclusive, exclusive", one(E), E, 9, "", 0s, {}},
      {"exclusive, records", one(E), R, 9, "", 0s, {}},
      {"exclusive, shared lock", one(E), S, 9, "", 0s, {}},
      {"records, exclusive", one(R), E, 9, "", 0s, {}},
      {"records, shared lock", one(R), S, 9, "", 0s, {}},
      {"shared lock, exclusive", one(S), E, 9, "", 0s, {}},
      {"shared lock, records", one(S), R, 9, "", 0s, {}},
      {"records, records", one(R), R, 9, "", 0s, Way::kJoin},
      {"records, records of the same writer", one(R), R, 9, "w", 0s, Way::kJoin},
      {"shared lock, shared lock", one(S), S, 9, "", 0s, Way::kJoin},
      {"a silent shared session is joined", one(R), R, 9, "", 600s, Way::kJoin},
      {"the holder itself", one(E), E, 7, "", 0s, {}},
      {"its own writer", one(E), E, 9, "w", 0s, Way::kTakeOver},
      {"its own writer, for records", one(E), R, 9, "w", 0s, Way::kTakeOver},
      {"another writer", one(E), E, 9, "v", 0s, {}},
      {"nameless writers are nobody's own", nameless, E, 9, "", 0s, {}},
      {"its own among others", two, E, 9, "w", 0s, {}},
      {"its own alone, twice", both, E, 9, "w", 0s, Way::kTakeOver},
      {"just before the soft limit", one(E), E, 9, "", 60s - 1ns, {}},
      {"at the soft limit", one(E), E, 9, "", 60s, Way::kTakeOver},
      {"all silent", two, E, 9, "", 60s, Way::kTakeOver},
      {"one of two renewed", one_fresh, E, 9, "", 60s, {}},
      {"in recovery", recovering, E, 9, "", 0s, Way::kAwait},
      {"in recovery, its own writer", recovering, R, 9, "w", 600s, Way::kAwait},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    SessionTable::Spec spec;
    spec.mode = c.mode;
    spec.holder = ClientId(c.holder);
    spec.writer_id = c.writer_id;
    auto claim = JudgeClaim(*Path::Parse("/f"), c.session ? &*c.session : nullptr, spec, Mono(Nanos(100s) + c.silent));
    ASSERT_EQ(claim.has_value(), c.way.has_value());
    if (claim) {
      EXPECT_EQ(claim->way, *c.way);
      EXPECT_EQ(claim->reason.empty(), *c.way != Way::kTakeOver);
      EXPECT_EQ(claim->own_writer, *c.way == Way::kTakeOver && c.silent == 0s);
      continue;
    }
    EXPECT_EQ(claim.error().code, Code::kLeaseConflict);
    EXPECT_EQ(claim.error().mark, Generation(1, 9).value);
    EXPECT_EQ(claim.error().holder, ToString(ClientId(7)));
    EXPECT_GT(claim.error().retry_after_ms + 1, 0u);
    EXPECT_TRUE(claim.error().message.contains("/f")) << claim.error().message;
    EXPECT_TRUE(claim.error().next_step.contains("picket lease recover /f")) << claim.error().next_step;
  }
}

TEST(SessionClaim, ASharedSessionHasABoundedNumberOfHolders) {
  auto session = SessionOf(proto::SHARED_LOCK, {});
  for (size_t i = 0; i < SessionTable::kMaxHolders; ++i) session.holders.push_back({ClientId(100 + i), "", Mono()});
  SessionTable::Spec spec;
  spec.mode = proto::SHARED_LOCK;
  spec.holder = ClientId(7);
  EXPECT_EQ(CodeOf(JudgeClaim(*Path::Parse("/f"), &session, spec, Mono())), Code::kLeaseConflict);
  spec.holder = ClientId(100);
  EXPECT_EQ(JudgeClaim(*Path::Parse("/f"), &session, spec, Mono())->way, Claim::Way::kJoin) << "it is counted already";
}

// ---- the calls -----------------------------------------------------------------------------------

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

// ---- locks ---------------------------------------------------------------------------------------

class LockTest : public OpenServiceTest {
 protected:
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
