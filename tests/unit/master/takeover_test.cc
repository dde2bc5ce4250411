// A file changes hands in a whole master: opening, releasing and putting together with real recoveries, grants
// and seals underneath.
#include "tests/unit/master/cluster_half.h"

namespace picket::test {
namespace {

class TakeoverTest : public ClusterTest {
 protected:
  static constexpr uint64_t kOther = kWriter + 1;
  // "/f" with an open chunk that holds `bytes` on every member.
  void Begin(const std::string& bytes) {
    file = Create("/f");
    auto added = AddChunk(file);
    ASSERT_TRUE(added) << added.error().ToString();
    grant = *added;
    Write(grant, bytes);
  }
  Result<proto::OpenResponse> Open(uint64_t holder, proto::SessionMode mode = proto::EXCLUSIVE, std::string writer_id = "") {
    proto::OpenRequest r;
    Identify(r.mutable_mutation());
    r.set_path("/f");
    r.set_mode(mode);
    r.set_holder(holder);
    r.set_writer_id(std::move(writer_id));
    return Call<proto::OpenResponse>(proto::OPEN_FILE, r, 60s);
  }
  Result<proto::ReleaseResponse> Release(const proto::OpenResponse& opened, uint64_t holder) {
    proto::ReleaseRequest r;
    Identify(r.mutable_mutation());
    r.set_inode(opened.status().inode());
    r.set_generation(opened.generation());
    r.set_holder(holder);
    return Call<proto::ReleaseResponse>(proto::RELEASE, r, 60s);
  }
  // A closed file of one full chunk, or of `bytes`.
  void Put(const std::string& path, const std::string& bytes) {
    const OpenFile made = Create(path);
    auto added = AddChunk(made);
    ASSERT_TRUE(added);
    Write(*added, bytes);
    auto seal = Seal(made, *added);
    seal.set_close(true);
    ASSERT_TRUE(CommitSeal(seal));
  }
  OpenFile file;
  proto::WriteGrant grant;
};

TEST_F(TakeoverTest, AClaimantFindsWhatTheSilentWriterHadWritten) {
  Begin("hello");
  world.RunFor(59s);
  EXPECT_EQ(Open(kOther).error().code, Code::kLeaseConflict);
  world.RunFor(2s);
  const auto begun = world.now();
  auto claimed = Open(kOther);
  ASSERT_TRUE(claimed) << claimed.error().ToString();
  EXPECT_LT(world.now() - begun, 2s);
  EXPECT_EQ(claimed->status().length(), 5u);
  EXPECT_TRUE(claimed->last_chunk().sealed());
  EXPECT_EQ(claimed->last_chunk().length(), 5u);
  EXPECT_GT(claimed->generation(), file.generation);
  // The old writer comes back: none of its steps has an effect.
  EXPECT_EQ(Grant(file, grant).error().code, Code::kStaleGeneration);
  EXPECT_EQ(AddChunk(file, 1).error().code, Code::kStaleGeneration);
  EXPECT_EQ(CommitSeal(Seal(file, grant)).error().code, Code::kStaleGeneration);
}

TEST_F(TakeoverTest, ItsOwnWriterTakesOverAtOnce) {
  Put("/f", "seven b");
  auto first = Open(kWriter, proto::EXCLUSIVE, "loader");
  ASSERT_TRUE(first);
  const OpenFile old{first->status().inode(), first->generation()};
  auto added = AddChunk(old, 1);
  ASSERT_TRUE(added) << added.error().ToString();
  Write(*added, "more");
  EXPECT_EQ(Open(kOther, proto::EXCLUSIVE, "another").error().code, Code::kLeaseConflict);
  auto second = Open(kOther, proto::EXCLUSIVE, "loader");
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_EQ(second->status().length(), (1u << 20) + 4);
  EXPECT_EQ(second->status().stored_bytes(), 11u);
  EXPECT_EQ(Grant(old, *added).error().code, Code::kStaleGeneration);
}

TEST_F(TakeoverTest, TheLastAppenderLeavesAClosedFile) {
  Put("/f", "one");
  auto a = Open(kWriter, proto::RECORD_APPEND);
  auto b = Open(kOther, proto::RECORD_APPEND);
  ASSERT_TRUE(a && b);
  auto added = AddChunk(OpenFile{a->status().inode(), a->generation()}, 1);
  ASSERT_TRUE(added) << added.error().ToString();
  Write(*added, "two");
  ASSERT_TRUE(Release(*a, kWriter));
  EXPECT_TRUE(GetFile("/f")->status().open());
  auto released = Release(*b, kOther);
  ASSERT_TRUE(released) << released.error().ToString();
  const auto closed = *GetFile("/f");
  EXPECT_FALSE(closed.status().open());
  EXPECT_EQ(closed.status().length(), (1u << 20) + 3);
  EXPECT_TRUE(closed.chunks(1).sealed());
  EXPECT_EQ(closed.chunks(1).replicas_size(), 3);
}

TEST_F(TakeoverTest, ConcatenatedChunksKeepTheirReplicas) {
  const std::string full(1 << 20, 'a');
  Put("/f", full);
  Put("/g", full);
  Put("/h", "tail");
  const uint64_t moved = GetFile("/h")->chunks(0).chunk();
  proto::ConcatRequest r;
  Identify(r.mutable_mutation());
  r.set_target("/f");
  r.add_sources("/g");
  r.add_sources("/h");
  auto joined = Call<proto::ConcatResponse>(proto::CONCAT, r);
  ASSERT_TRUE(joined) << joined.error().ToString();
  world.RunFor(30s);
  RestartMaster();
  ASSERT_TRUE(AwaitLive(3));
  world.RunFor(10s);
  const auto all = *GetFile("/f");
  EXPECT_EQ(all.status().length(), 2 * full.size() + 4);
  ASSERT_EQ(all.chunks_size(), 3);
  EXPECT_EQ(all.chunks(2).chunk(), moved);
  for (const auto& chunk : all.chunks()) EXPECT_EQ(chunk.replicas_size(), 3);
  EXPECT_EQ(Report().garbage_chunks(), 0u);
  // The new file's writer has a moved chunk opened again.
  auto opened = Open(kWriter);
  ASSERT_TRUE(opened);
  auto ask = GrantRequestFor(OpenFile{opened->status().inode(), opened->generation()}, proto::WriteGrant());
  ask.set_chunk(moved);
  ask.set_version(all.chunks(2).version());
  ask.set_reopen(true);
  auto granted = Call<proto::WriteGrant>(proto::GRANT, ask);
  ASSERT_TRUE(granted) << granted.error().ToString();
  EXPECT_EQ(granted->length(), 4u);
}

}  // namespace
}  // namespace picket::test
