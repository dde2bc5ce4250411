// CONCAT: chunks change their file, nothing else.
#include "master/concat.h"

#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

class ConcatTest : public MetadataTest {
 protected:
  static constexpr uint64_t kSize = 1 << 20;
  // A closed file with chunks of these lengths.
  std::vector<ChunkId> Make(std::string path, std::vector<uint64_t> lengths, uint64_t chunk_size = kSize,
                            uint32_t replication = 2) {
    auto r = CreateRequestFor(std::move(path));
    r.set_chunk_size(chunk_size);
    r.set_replication(replication);
    auto created = Call<proto::CreateResponse>(proto::CREATE, r);
    EXPECT_TRUE(created) << created.error().ToString();
    std::vector<ChunkId> chunks;
    for (uint64_t length : lengths) chunks.push_back(AddChunk(InodeId(created->status().inode()), true, length));
    EXPECT_TRUE(Close(*created));
    return chunks;
  }
  proto::ConcatRequest RequestFor(std::string target, std::vector<std::string> sources) {
    proto::ConcatRequest r;
    Identify(r.mutable_mutation());
    r.set_target(std::move(target));
    for (std::string& source : sources) r.add_sources(std::move(source));
    return r;
  }
  Result<proto::ConcatResponse> Join(std::string target, std::vector<std::string> sources) {
    return Call<proto::ConcatResponse>(proto::CONCAT, RequestFor(std::move(target), std::move(sources)));
  }
  std::vector<ChunkId> ChunksOf(std::string path) {
    std::vector<ChunkId> out;
    for (const ChunkRow& row : *half().chunks.OfFile(InodeId(Stat(std::move(path))->inode()), 0, 1000)) {
      out.push_back(row.id);
    }
    return out;
  }
};

TEST_F(ConcatTest, ChunksMoveInOrderAndTheSourcesCeaseToExist) {
  Mkdir("/parts");
  auto chunks = Make("/all", {kSize});
  const auto b = Make("/parts/b", {kSize, kSize});
  const auto a = Make("/parts/a", {kSize, 10});
  const auto before = *Stat("/all");
  const uint64_t directory = Stat("/parts")->mod_revision();
  auto joined = Join("/all", {"/parts/b", "/parts/a"});
  ASSERT_TRUE(joined) << joined.error().ToString();
  chunks.insert(chunks.end(), b.begin(), b.end());
  chunks.insert(chunks.end(), a.begin(), a.end());
  EXPECT_EQ(ChunksOf("/all"), chunks);
  EXPECT_EQ(joined->status().length(), 4 * kSize + 10);
  EXPECT_EQ(joined->status().stored_bytes(), 4 * kSize + 10);
  EXPECT_EQ(joined->status().chunk_count(), 5u);
  EXPECT_EQ(joined->status().inode(), before.inode());
  EXPECT_EQ(joined->status().create_revision(), before.create_revision());
  EXPECT_GT(joined->status().mod_revision(), before.mod_revision());
  EXPECT_EQ(Stat("/all")->SerializeAsString(), joined->status().SerializeAsString());
  EXPECT_TRUE(Names("/parts").empty());
  EXPECT_GT(Stat("/parts")->mod_revision(), directory);
  WaitForReclaim();
  EXPECT_EQ(half().chunks.Garbage(ChunkId(), 10)->size(), 0u) << "no chunk went with its source";
  EXPECT_EQ(half().names.inode_count(), 3u);
}

TEST_F(ConcatTest, EmptyFilesAndHolesKeepTheirPlaces) {
  Make("/all", {});
  Make("/empty", {});
  Make("/a", {kSize, 5});
  {  // a hole of one chunk before its last one
    MetadataHalf& m = half();
    auto entry = *m.names.Resolve(*Path::Parse("/a"));
    auto last = **m.chunks.At(entry.id, 1);
    Batch batch;
    m.chunks.Move(&batch, last.id, last.record, entry.id, 1);
    entry.inode.set_chunk_count(3);
    entry.inode.set_length(2 * kSize + 5);
    m.names.PutInode(&batch, &entry);
    ASSERT_TRUE(*sim::RunTask(world, node, m.store.Commit(std::move(batch))));
  }
  Make("/b", {7});
  ASSERT_TRUE(Join("/all", {"/empty", "/a"}));
  EXPECT_EQ(Stat("/all")->length(), 2 * kSize + 5);
  EXPECT_EQ(Stat("/all")->chunk_count(), 3u);
  EXPECT_EQ(Stat("/all")->stored_bytes(), kSize + 5);
  EXPECT_EQ(CodeOf(Join("/all", {"/b"})), Code::kInvalidArgument) << "it ends inside a chunk now";
}

TEST_F(ConcatTest, EachRuleIsToldWithTheFileThatBreaksIt) {
  Mkdir("/d");
  Make("/all", {kSize});
  Make("/short", {10});
  Make("/full", {kSize});
  Make("/last", {10});
  Make("/size", {2 * kSize}, 2 * kSize);
  Make("/copies", {kSize}, kSize, 3);
  Make("/gone", {kSize});
  const auto trashed = Delete("/gone")->trash_path();
  ASSERT_TRUE(Create("/open"));
  struct Case {
    std::string target;
    std::vector<std::string> sources;
    Code code;
    std::string names, says;
  };
  const Case cases[] = {
      {"/all", {}, Code::kInvalidArgument, "", "no source"},
      {"/all", {"/none"}, Code::kNotFound, "/none", ""},
      {"/none", {"/full"}, Code::kNotFound, "/none", ""},
      {"/all", {"/d"}, Code::kIsDirectory, "/d", ""},
      {"/d", {"/full"}, Code::kIsDirectory, "/d", ""},
      {"/all", {"/open"}, Code::kLeaseConflict, "/open", "not closed"},
      {"/open", {"/full"}, Code::kLeaseConflict, "/open", "not closed"},
      {"/all", {"/all"}, Code::kInvalidArgument, "/all", "is the target"},
      {"/all", {"/full", "//full"}, Code::kInvalidArgument, "/full", "named twice"},
      {"/all", {"/size"}, Code::kInvalidArgument, "/size", "chunks of"},
      {"/all", {"/copies"}, Code::kInvalidArgument, "/copies", "replication"},
      {"/short", {"/full"}, Code::kInvalidArgument, "/short", "into a chunk"},
      {"/all", {"/short", "/full"}, Code::kInvalidArgument, "/short", "into a chunk"},
      {"/all", {trashed}, Code::kInvalidArgument, trashed, "trash"},
      {trashed, {"/full"}, Code::kInvalidArgument, trashed, "trash"},
      {"/all", {"relative"}, Code::kInvalidArgument, "relative", ""},
  };
  for (const Case& c : cases) {
    auto joined = Join(c.target, c.sources);
    SCOPED_TRACE(c.says + " " + c.names);
    ASSERT_EQ(CodeOf(joined), c.code);
    EXPECT_TRUE(joined.error().message.contains(c.names)) << joined.error().message;
    EXPECT_TRUE(joined.error().message.contains(c.says)) << joined.error().message;
  }
  EXPECT_EQ(Stat("/all")->length(), kSize) << "all or nothing";
  EXPECT_TRUE(Join("/all", {"/full", "/last"}));
}

TEST_F(ConcatTest, ConditionsAreOfTheTarget) {
  Make("/all", {kSize});
  Make("/a", {kSize});
  auto r = RequestFor("/all", {"/a"});
  r.mutable_conditions()->set_if_version(Stat("/all")->mod_revision() - 1);
  EXPECT_EQ(CodeOf(Call<proto::ConcatResponse>(proto::CONCAT, r)), Code::kConflict);
  r = RequestFor("/all", {"/a"});
  r.mutable_conditions()->set_if_version(Stat("/all")->mod_revision());
  EXPECT_TRUE(Call<proto::ConcatResponse>(proto::CONCAT, r));
}

TEST_F(ConcatTest, ARetryMovesNothingTwiceAlsoAfterARestart) {
  keep_answers = true;
  Make("/all", {kSize});
  Make("/a", {kSize});
  const auto r = RequestFor("/all", {"/a"});
  auto first = Call<proto::ConcatResponse>(proto::CONCAT, r);
  ASSERT_TRUE(first);
  Make("/a", {kSize});
  Restart();
  auto again = Call<proto::ConcatResponse>(proto::CONCAT, r);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(first->SerializeAsString(), again->SerializeAsString());
  EXPECT_TRUE(Exists("/a"));
  EXPECT_EQ(Stat("/all")->length(), 2 * kSize);
}

TEST_F(ConcatTest, OneBatchIsBounded) {
  Make("/all", {});
  Make("/a", {});
  {
    MetadataHalf& m = half();
    auto entry = *m.names.Resolve(*Path::Parse("/a"));
    Batch batch;
    for (uint64_t i = 0; i <= Concat::kMaxChunks; ++i) {
      record::Chunk chunk;
      chunk.set_inode(entry.id.value);
      chunk.set_index(i);
      chunk.set_minted(1);
      chunk.set_current(1);
      chunk.set_sealed(true);
      m.chunks.Put(&batch, m.chunks.NewId(), chunk);
    }
    entry.inode.set_chunk_count(Concat::kMaxChunks + 1);
    entry.inode.set_length((Concat::kMaxChunks + 1) * kSize);
    m.names.PutInode(&batch, &entry);
    ASSERT_TRUE(*sim::RunTask(world, node, m.store.Commit(std::move(batch))));
  }
  auto joined = Join("/all", {"/a"});
  ASSERT_EQ(CodeOf(joined), Code::kInvalidArgument);
  EXPECT_TRUE(joined.error().message.contains("10000 chunks")) << joined.error().message;
}

}  // namespace
}  // namespace picket::test
