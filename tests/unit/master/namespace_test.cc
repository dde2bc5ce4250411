// Names, through the master's calls.
#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

using NamespaceTest = MetadataTest;
using ::testing::Test;

TEST_F(NamespaceTest, TheRootIsThereAndStays) {
  auto root = Stat("/");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->type(), proto::DIRECTORY);
  EXPECT_EQ(root->name(), "");
  EXPECT_EQ(root->inode(), kRootInode.value);
  EXPECT_EQ(CodeOf(Delete("/", true)), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Rename("/", "/x")), Code::kInvalidArgument);
  EXPECT_TRUE(Mkdir("/", true));
  EXPECT_EQ(CodeOf(Mkdir("/", false)), Code::kAlreadyExists);
  Restart();
  EXPECT_EQ(half().names.inode_count(), 1u);
}

TEST_F(NamespaceTest, MakeDirectories) {
  EXPECT_EQ(CodeOf(Mkdir("/a/b", false)), Code::kNotFound);
  EXPECT_FALSE(Exists("/a"));
  auto made = Mkdir("/a/b/c");
  ASSERT_TRUE(made) << made.error().ToString();
  EXPECT_EQ(made->status().name(), "c");
  EXPECT_EQ(made->status().owner(), "ann");
  EXPECT_EQ(made->status().group(), "staff");
  EXPECT_EQ(made->status().mode(), 0755u);
  EXPECT_EQ(made->status().create_revision(), made->revision());
  EXPECT_TRUE(Exists("/a/b"));
  EXPECT_EQ(Mkdir("/a/b/c")->status().inode(), made->status().inode()) << "-p on an existing directory";
  EXPECT_EQ(CodeOf(Mkdir("/a/b/c", false)), Code::kAlreadyExists);
  EXPECT_TRUE(Mkdir("/a/d", false));
  Put("/a/f");
  EXPECT_EQ(CodeOf(Mkdir("/a/f", true)), Code::kAlreadyExists);
  EXPECT_EQ(CodeOf(Mkdir("/a/f/x", true)), Code::kNotDirectory);
  EXPECT_EQ(Names("/a"), (std::vector<std::string>{"b", "d", "f"}));
  Restart();
  EXPECT_EQ(Names("/a"), (std::vector<std::string>{"b", "d", "f"}));
  EXPECT_EQ(half().names.inode_count(), 6u);
}

TEST_F(NamespaceTest, NamesAreUtf8AndAtMost255Bytes) {
  const std::string longest(255, 'n');
  EXPECT_TRUE(Mkdir("/" + longest));
  EXPECT_EQ(Names("/"), std::vector<std::string>{longest});
  auto too_long = Mkdir("/" + longest + "n");
  EXPECT_EQ(CodeOf(too_long), Code::kInvalidArgument);
  EXPECT_TRUE(too_long.error().message.contains("255"));
  EXPECT_EQ(CodeOf(Mkdir("/bad\xff")), Code::kInvalidArgument);
  EXPECT_TRUE(Mkdir("/tab\tnew\nline/日本"));
  EXPECT_TRUE(Exists("/tab\tnew\nline/日本"));
}

TEST_F(NamespaceTest, ListsInByteOrderAndInPages) {
  Mkdir("/d");
  for (int i = 0; i < 25; ++i) Put("/d/f" + std::to_string(i));
  std::vector<std::string> all;
  std::string after;
  for (;;) {
    auto page = List("/d", after, 7);
    ASSERT_TRUE(page);
    for (const auto& e : page->entries()) all.push_back(e.name());
    if (!page->more()) break;
    ASSERT_EQ(page->entries_size(), 7);
    after = all.back();
  }
  EXPECT_EQ(all.size(), 25u);
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_EQ(all, Names("/d"));
  auto file = List("/d/f3");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->is_file());
  EXPECT_EQ(file->entries(0).name(), "f3");
  EXPECT_EQ(CodeOf(List("/nope")), Code::kNotFound);
  EXPECT_EQ(CodeOf(List("/d/f3/x")), Code::kNotDirectory);
}

// A directory far larger than a page; made in big batches behind the calls' back.
TEST_F(NamespaceTest, ALargeDirectoryIsListedInBoundedPages) {
  constexpr int kFiles = 20000;
  MetadataHalf& m = half();
  Mkdir("/big");
  const InodeId big(Stat("/big")->inode());
  for (int i = 0; i < kFiles;) {
    Batch batch;
    for (int n = 0; n < 500; ++n, ++i) {
      Entry file = m.names.NewInode(&batch, kFileInode, Namespace::Ownership{"ann", "staff", 0644});
      m.names.Link(&batch, big, fmt::format("{:06}", i), &file);
    }
    ASSERT_TRUE(m.store.Stage(std::move(batch)));
  }
  int seen = 0;
  std::string after;
  for (bool more = true; more;) {
    auto page = List("/big", after);
    ASSERT_TRUE(page);
    ASSERT_LE(page->entries_size(), static_cast<int>(FileService::kListPage));
    for (const auto& e : page->entries()) {
      ASSERT_EQ(e.name(), fmt::format("{:06}", seen));
      ++seen;
    }
    more = page->more();
    after = page->entries(page->entries_size() - 1).name();
  }
  EXPECT_EQ(seen, kFiles);
  proto::SummaryRequest r;
  r.set_path("/");
  auto sum = Call<proto::SummaryResponse>(proto::SUMMARY, r);
  ASSERT_TRUE(sum) << sum.error().ToString();
  EXPECT_EQ(sum->files(), static_cast<uint64_t>(kFiles));
  EXPECT_EQ(sum->directories(), 2u);
}

TEST_F(NamespaceTest, RenameMovesFilesAndTrees) {
  Mkdir("/a/b");
  Mkdir("/t");
  const uint64_t file = Put("/a/b/f");
  ASSERT_TRUE(Rename("/a/b/f", "/a/b/g"));
  ASSERT_TRUE(Rename("/a/b", "/t/new"));
  EXPECT_FALSE(Exists("/a/b"));
  EXPECT_FALSE(Exists("/t/new/f"));
  EXPECT_EQ(Stat("/t/new/g")->inode(), file);
  EXPECT_EQ(Names("/a"), std::vector<std::string>{});
  Restart();
  EXPECT_EQ(Stat("/t/new/g")->inode(), file);
  EXPECT_EQ((*half().names.PathOf(InodeId(file)))->ToString(), "/t/new/g");
}

TEST_F(NamespaceTest, RenameRefusals) {
  Mkdir("/d/e/f");
  Mkdir("/other");
  Put("/file");
  Put("/file2");
  const struct {
    std::string from, to;
    bool overwrite;
    Code code;
  } cases[] = {
      {"/none", "/x", false, Code::kNotFound},
      {"/none", "/none/x", false, Code::kNotFound},
      {"/d", "/d", true, Code::kInvalidArgument},
      {"/d", "/d/e", true, Code::kInvalidArgument},
      {"/d", "/d/e/f/g", false, Code::kInvalidArgument},
      {"/d", "/other", true, Code::kAlreadyExists},
      {"/d", "/file", true, Code::kNotDirectory},
      {"/d", "/nowhere/x", false, Code::kNotFound},
      {"/d", "/file/x", false, Code::kNotDirectory},
      {"/file", "/file", true, Code::kInvalidArgument},
      {"/file", "/file/x", true, Code::kNotDirectory},
      {"/file", "/file2", false, Code::kAlreadyExists},
      {"/file", "/d", true, Code::kAlreadyExists},
      {"/file", "/", true, Code::kInvalidArgument},
  };
  for (const auto& c : cases) EXPECT_EQ(CodeOf(Rename(c.from, c.to, c.overwrite)), c.code) << c.from << " " << c.to;
  // A name that merely begins like the source's is not below it.
  EXPECT_TRUE(Rename("/d", "/dd"));
}

TEST_F(NamespaceTest, RenameOverAFileReclaimsTheOldOne) {
  const uint64_t from = Put("/from");
  const uint64_t to = Put("/to");
  AddChunk(InodeId(to), true);
  ASSERT_TRUE(Rename("/from", "/to", true));
  EXPECT_EQ(Stat("/to")->inode(), from);
  EXPECT_FALSE(Exists("/from"));
  WaitForReclaim();
  EXPECT_EQ(CodeOf(half().names.Get(InodeId(to))), Code::kNotFound);
  EXPECT_EQ(half().chunks.Garbage(ChunkId(), 10)->size(), 1u);
  EXPECT_EQ(half().names.inode_count(), 2u);
}

TEST_F(NamespaceTest, AttributesAndTimes) {
  Mkdir("/d");
  Put("/d/f");
  proto::SetAttributesRequest r;
  Identify(r.mutable_mutation());
  r.set_path("/d/f");
  r.set_mode(0600);
  r.set_owner("bob");
  r.set_mtime_ns(123456789);
  auto set = Call<proto::SetAttributesResponse>(proto::SET_ATTRIBUTES, r);
  ASSERT_TRUE(set);
  auto status = Stat("/d/f");
  EXPECT_EQ(status->mode(), 0600u);
  EXPECT_EQ(status->owner(), "bob");
  EXPECT_EQ(status->group(), "staff");
  EXPECT_EQ(status->mtime_ns(), 123456789);
  EXPECT_EQ(status->mod_revision(), set->revision());
  EXPECT_EQ(status->SerializeAsString(), set->status().SerializeAsString());
  Identify(r.mutable_mutation());
  r.set_mode(010000);
  EXPECT_EQ(CodeOf(Call<proto::SetAttributesResponse>(proto::SET_ATTRIBUTES, r)), Code::kInvalidArgument);

  // A directory's mtime is that of its last change of entries.
  const int64_t before = Stat("/d")->mtime_ns();
  world.RunFor(1s);
  Put("/d/g");
  const int64_t created = Stat("/d")->mtime_ns();
  EXPECT_GT(created, before);
  world.RunFor(1s);
  Rename("/d/g", "/h");
  EXPECT_GT(Stat("/d")->mtime_ns(), created);
  EXPECT_EQ(Stat("/d")->mtime_ns(), Stat("/")->mtime_ns());
}

TEST_F(NamespaceTest, SummaryCountsATree) {
  Mkdir("/s/a/b");
  Mkdir("/s/c");
  for (const char* path : {"/s/f", "/s/a/f", "/s/a/b/f", "/s/c/f"}) AddChunk(InodeId(Put(path)), true, 10);
  proto::SummaryRequest r;
  r.set_path("/s");
  auto sum = Call<proto::SummaryResponse>(proto::SUMMARY, r);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->directories(), 4u);
  EXPECT_EQ(sum->files(), 4u);
  EXPECT_EQ(sum->bytes(), 40u);
  EXPECT_EQ(sum->bytes_with_replicas(), 120u);
  r.set_path("/none");
  EXPECT_EQ(CodeOf(Call<proto::SummaryResponse>(proto::SUMMARY, r)), Code::kNotFound);
}

TEST_F(NamespaceTest, NothingChangesWhenTheMetadataIsNotTheNewest) {
  Put("/f");
  half().serving.HistoryLost(Error(Code::kHistoryLost, "an older copy"));
  EXPECT_EQ(CodeOf(Mkdir("/d")), Code::kHistoryLost);
  EXPECT_EQ(CodeOf(Delete("/f")), Code::kHistoryLost);
  EXPECT_TRUE(Exists("/f"));
}

}  // namespace
}  // namespace picket::test
