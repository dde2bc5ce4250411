// Files that are being written, through the master's calls.
#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

using OpenFilesTest = MetadataTest;

TEST_F(OpenFilesTest, ANewNameIsVisibleAtOnceAndMarkedOpen) {
  auto created = Create("/f");
  ASSERT_TRUE(created) << created.error().ToString();
  EXPECT_EQ(Generation(created->generation()).epoch(), 1u);
  EXPECT_EQ(created->soft_limit_ms(), 60000u);
  EXPECT_EQ(created->min_write_replicas(), 2u);
  auto status = Stat("/f");
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->open());
  EXPECT_EQ(status->generation(), created->generation());
  EXPECT_EQ(status->mode(), 0640u);
  EXPECT_EQ(status->replication(), 3u);
  EXPECT_EQ(status->chunk_size(), 64u << 20);
  auto closed = Close(*created);
  ASSERT_TRUE(closed) << closed.error().ToString();
  EXPECT_FALSE(closed->status().open());
  EXPECT_EQ(Stat("/f")->SerializeAsString(), closed->status().SerializeAsString());
}

TEST_F(OpenFilesTest, CreateChecksItsArguments) {
  Mkdir("/dir");
  Put("/file");
  const struct {
    std::string path;
    uint32_t replication;
    uint64_t chunk_size;
    Code code;
  } cases[] = {
      {"/", 0, 0, Code::kIsDirectory},
      {"/dir", 0, 0, Code::kIsDirectory},
      {"/none/f", 0, 0, Code::kNotFound},
      {"/file/f", 0, 0, Code::kNotDirectory},
      {"relative", 0, 0, Code::kInvalidArgument},
      {"/r", 17, 0, Code::kInvalidArgument},
      {"/r", 16, 0, Code::kOk},
      {"/c1", 1, 1 << 20, Code::kOk},
      {"/c2", 1, 1 << 30, Code::kOk},
      {"/c3", 1, 1 << 19, Code::kInvalidArgument},
      {"/c3", 1, uint64_t{1} << 31, Code::kInvalidArgument},
      {"/c3", 1, 3 << 20, Code::kInvalidArgument},
      {"/.Trash/f", 0, 0, Code::kInvalidArgument},
  };
  for (const auto& c : cases) {
    auto r = CreateRequestFor(c.path, true);
    r.set_replication(c.replication);
    r.set_chunk_size(c.chunk_size);
    EXPECT_EQ(CodeOf(Call<proto::CreateResponse>(proto::CREATE, r)), c.code) << c.path << " " << c.chunk_size;
  }
  auto r = CreateRequestFor("/p/q/f");
  r.set_parents(true);
  EXPECT_TRUE(Call<proto::CreateResponse>(proto::CREATE, r));
  EXPECT_TRUE(Exists("/p/q/f"));
  EXPECT_EQ(Stat("/c1")->chunk_size(), 1u << 20);
}

TEST_F(OpenFilesTest, ExclusiveCreateSaysWhoHasTheName) {
  auto first = Create("/f");
  ASSERT_TRUE(first);
  auto second = Create("/f");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kAlreadyExists);
  EXPECT_EQ(second.error().mark, first->generation());
  EXPECT_EQ(second.error().holder, ToHex(kClient));
  EXPECT_TRUE(second.error().message.contains("being written"));
  ASSERT_TRUE(Close(*first));
  auto third = Create("/f");
  EXPECT_EQ(CodeOf(third), Code::kAlreadyExists);
  EXPECT_TRUE(third.error().holder.empty());
  EXPECT_FALSE(third.error().message.contains("being written"));
}

// HDFS-3031: the reply is lost, the master restarts, the retry gets the same file and generation.
TEST_F(OpenFilesTest, ARetriedCreateGetsTheSameSession) {
  const auto r = CreateRequestFor("/f");
  auto first = Call<proto::CreateResponse>(proto::CREATE, r);
  auto again = Call<proto::CreateResponse>(proto::CREATE, r);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->SerializeAsString(), again->SerializeAsString());
  Restart();
  auto after = Call<proto::CreateResponse>(proto::CREATE, r);
  ASSERT_TRUE(after) << after.error().ToString();
  EXPECT_EQ(first->SerializeAsString(), after->SerializeAsString());
  ASSERT_TRUE(Close(*after)) << "the session survived the restart";
  EXPECT_EQ(half().names.inode_count(), 2u);
}

TEST_F(OpenFilesTest, GenerationsRiseAndAreTracedWithTheirInode) {
  std::vector<std::pair<uint64_t, uint64_t>> minted;
  world.AddObserver([&](sim::Node&, const ProtocolEvent& e) {
    if (e.kind == ProtocolEvent::Kind::kGenerationMinted) minted.emplace_back(e.generation.value, e.value);
  });
  auto a = Create("/a");
  Restart();
  auto b = Create("/b");
  ASSERT_TRUE(a && b);
  EXPECT_GT(b->generation(), a->generation());
  EXPECT_GT(b->status().inode(), a->status().inode());
  EXPECT_EQ(minted, (std::vector<std::pair<uint64_t, uint64_t>>{{a->generation(), a->status().inode()},
                                                                 {b->generation(), b->status().inode()}}));
}

TEST_F(OpenFilesTest, OverwriteKeepsTheOldContentUntilClose) {
  const uint64_t old = Put("/f");
  AddChunk(InodeId(old), true, 5);
  auto created = Create("/f", true);
  ASSERT_TRUE(created);
  EXPECT_NE(created->status().inode(), old);
  EXPECT_EQ(created->status().name(), "f");
  EXPECT_EQ(Stat("/f")->inode(), old);
  EXPECT_FALSE(Stat("/f")->open());
  EXPECT_EQ(Names("/"), std::vector<std::string>{"f"});
  Restart();
  EXPECT_EQ(Stat("/f")->inode(), old);
  auto closed = Close(*created);
  ASSERT_TRUE(closed) << closed.error().ToString();
  EXPECT_EQ(Stat("/f")->inode(), created->status().inode());
  WaitForReclaim();
  EXPECT_EQ(CodeOf(half().names.Get(InodeId(old))), Code::kNotFound);
  EXPECT_EQ(half().chunks.Garbage(ChunkId(), 10)->size(), 1u);
  EXPECT_EQ(half().names.inode_count(), 2u);
}

TEST_F(OpenFilesTest, OfTwoOverwritesTheLastCloseWins) {
  Put("/f");
  auto one = Create("/f", true);
  auto two = Create("/f", true);
  ASSERT_TRUE(one && two);
  ASSERT_TRUE(Close(*two));
  EXPECT_EQ(Stat("/f")->inode(), two->status().inode());
  ASSERT_TRUE(Close(*one));
  EXPECT_EQ(Stat("/f")->inode(), one->status().inode());
}

TEST_F(OpenFilesTest, AnOverwriteOfAnOpenFileFencesItsWriterAtClose) {
  auto open = Create("/f");
  auto over = Create("/f", true);
  ASSERT_TRUE(open && over);
  ASSERT_TRUE(Close(*over));
  EXPECT_FALSE(half().sessions.IsOpen(InodeId(open->status().inode())));
  WaitForReclaim();
  EXPECT_EQ(CodeOf(Close(*open)), Code::kNotFound);
}

TEST_F(OpenFilesTest, AnOverwriteFollowsItsDirectory) {
  Mkdir("/d");
  Mkdir("/e");
  const uint64_t old = Put("/d/f");
  auto over = Create("/d/f", true);
  ASSERT_TRUE(Rename("/d", "/e/d2"));
  ASSERT_TRUE(Rename("/e/d2/f", "/kept"));
  ASSERT_TRUE(Close(*over));
  EXPECT_EQ(Stat("/e/d2/f")->inode(), over->status().inode());
  EXPECT_EQ(Stat("/kept")->inode(), old);
}

TEST_F(OpenFilesTest, AnOverwriteWhoseNameIsGoneForGoodSaysSo) {
  Mkdir("/d");
  Put("/d/f");
  Put("/g");
  auto in_deleted = Create("/d/f", true);
  auto on_directory = Create("/g", true);
  ASSERT_TRUE(Delete("/d", true, true));
  EXPECT_EQ(CodeOf(Close(*in_deleted)), Code::kNotFound);
  ASSERT_TRUE(Delete("/g"));
  ASSERT_TRUE(Mkdir("/g"));
  EXPECT_EQ(CodeOf(Close(*on_directory)), Code::kIsDirectory);
  EXPECT_TRUE(Abandon(*in_deleted));
  EXPECT_TRUE(Abandon(*on_directory));
  WaitForReclaim();
}

TEST_F(OpenFilesTest, CloseNeedsTheHolderTheGenerationAndSealedChunks) {
  auto created = Create("/f");
  ASSERT_TRUE(created);
  EXPECT_EQ(CodeOf(Close(*created, kClient + 1)), Code::kNotLeaseHolder);
  auto stale = *created;
  stale.set_generation(created->generation() - 1);
  auto refused = Close(stale);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kStaleGeneration);
  EXPECT_EQ(refused.error().token, created->generation() - 1);
  EXPECT_EQ(refused.error().mark, created->generation());
  EXPECT_EQ(refused.error().holder, ToHex(kClient));
  auto future = *created;
  future.set_generation(created->generation() + 1);
  EXPECT_EQ(CodeOf(Close(future)), Code::kNotLeaseHolder);

  AddChunk(InodeId(created->status().inode()), true);
  AddChunk(InodeId(created->status().inode()), false);
  auto unsealed = Close(*created);
  ASSERT_FALSE(unsealed);
  EXPECT_EQ(unsealed.error().code, Code::kConflict);
  EXPECT_TRUE(unsealed.error().message.contains("not sealed"));
  EXPECT_TRUE(Stat("/f")->open());
}

TEST_F(OpenFilesTest, AClosedSessionIsOver) {
  auto created = Create("/f");
  ASSERT_TRUE(Close(*created));
  EXPECT_EQ(CodeOf(Close(*created)), Code::kNotLeaseHolder);
  EXPECT_EQ(CodeOf(Abandon(*created)), Code::kNotLeaseHolder);
  EXPECT_TRUE(Exists("/f"));
}

TEST_F(OpenFilesTest, AbandonTakesANewFileAwayAndLeavesAnOldOne) {
  auto created = Create("/f");
  AddChunk(InodeId(created->status().inode()), false);
  EXPECT_EQ(CodeOf(Abandon(*created, kClient + 1)), Code::kNotLeaseHolder);
  EXPECT_TRUE(Exists("/f"));
  ASSERT_TRUE(Abandon(*created));
  EXPECT_FALSE(Exists("/f"));
  WaitForReclaim();
  EXPECT_TRUE(Abandon(*created)) << "abandoning what is gone is success";
  EXPECT_EQ(half().chunks.Garbage(ChunkId(), 10)->size(), 1u);

  const uint64_t old = Put("/g");
  auto over = Create("/g", true);
  ASSERT_TRUE(Abandon(*over));
  EXPECT_EQ(Stat("/g")->inode(), old);
  WaitForReclaim();
  EXPECT_EQ(half().names.inode_count(), 2u);
  EXPECT_EQ(half().sessions.open_count(), 0u);
}

// HDFS-17861: what was staged when the disk failed is in no table, and reading goes on.
TEST_F(OpenFilesTest, AFailedDiskTakesSessionsBackAndLeavesReading) {
  auto kept = Create("/kept");
  ASSERT_TRUE(kept);
  node.disk().faults.fail_syncs = true;
  EXPECT_EQ(CodeOf(Create("/lost")), Code::kUnavailable);
  EXPECT_EQ(CodeOf(Close(*kept)), Code::kReadOnly);
  EXPECT_FALSE(Exists("/lost"));
  EXPECT_TRUE(Stat("/kept")->open());
  EXPECT_EQ(half().sessions.open_count(), 1u);
  EXPECT_EQ(half().names.inode_count(), 2u);
  node.disk().faults.fail_syncs = false;
  Restart();
  EXPECT_TRUE(Close(*kept));
}

TEST_F(OpenFilesTest, RenewAndExpiry) {
  auto a = Create("/a");
  auto b = Create("/b");
  const auto renew = [&](uint64_t holder) {
    proto::RenewRequest r;
    r.set_holder(holder);
    for (const auto* file : {&*a, &*b}) {
      auto* s = r.add_sessions();
      s->set_inode(file->status().inode());
      s->set_generation(file->generation());
    }
    return Call<proto::RenewResponse>(proto::RENEW, r);
  };
  EXPECT_EQ(renew(kClient)->lost_inodes_size(), 0);
  EXPECT_EQ(renew(kClient + 1)->lost_inodes_size(), 2);
  world.RunFor(59s);
  using Limit = SessionTable::Limit;
  EXPECT_TRUE(half().sessions.Expired(Limit::kSoft, 10).empty());
  EXPECT_EQ(renew(kClient)->lost_inodes_size(), 0);
  world.RunFor(59s);
  EXPECT_TRUE(half().sessions.Expired(Limit::kSoft, 10).empty());
  world.RunFor(2s);
  EXPECT_EQ(half().sessions.Expired(Limit::kSoft, 10).size(), 2u);
  EXPECT_EQ(half().sessions.Expired(Limit::kSoft, 1).size(), 1u);
  EXPECT_TRUE(half().sessions.Expired(Limit::kHard, 10).empty());
  world.RunFor(1200s);
  EXPECT_EQ(half().sessions.Expired(Limit::kHard, 10).size(), 2u);
  // HDFS-2812: a master that comes back counts every lease as just renewed.
  Restart();
  EXPECT_TRUE(half().sessions.Expired(Limit::kSoft, 10).empty());
  EXPECT_EQ(half().sessions.open_count(), 2u);
  EXPECT_EQ(half().sessions.Find(InodeId(a->status().inode()))->holder(), ClientId(kClient));
  ASSERT_TRUE(Close(*a));
  EXPECT_EQ(renew(kClient)->lost_inodes_size(), 1);
}

}  // namespace
}  // namespace picket::test
