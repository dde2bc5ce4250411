// Going on at the end of a file that exists.
#include <gmock/gmock.h>

#include "tests/unit/client/fake_cluster.h"

namespace picket {
namespace {

using testing::HasSubstr;

class AppendTest : public FakeCluster {
 protected:
  std::unique_ptr<FileWriter> OpenForAppend(const std::string& path, AppendFileOptions options = {}) {
    auto writer = Run(files().OpenForAppend(path, options));
    PICKET_CHECK(writer.has_value());
    return std::move(*writer);
  }
  size_t Count(proto::Method method) const {
    return static_cast<size_t>(std::ranges::count_if(master.calls, [=](const auto& c) { return c.first == method; }));
  }
  std::vector<proto::WritePacketRequest> Packets() const {
    return Asked<proto::WritePacketRequest>(chunkservers[0]->script, proto::WRITE_PACKET);
  }
  auto& Twists() { return chunkservers[0]->script.twists[proto::WRITE_PACKET]; }
};

struct Sizes {
  size_t stored;
  size_t appended;
  size_t chunks;
  size_t reopened;
};
class AppendSizesTest : public AppendTest, public testing::WithParamInterface<Sizes> {};

TEST_P(AppendSizesTest, GoesOnWhereTheFileEnds) {
  const auto [stored, appended, chunks, reopened] = GetParam();
  const std::string before = Pattern(stored, 1);
  const std::string bytes = Pattern(appended, 2);
  Store("/f", before);
  auto writer = OpenForAppend("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), bytes, 300'000)));
  ASSERT_TRUE(Run(writer->Flush()));
  EXPECT_EQ(writer->bytes_written(), appended);
  EXPECT_EQ(writer->bytes_acknowledged(), appended);
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(status->length(), stored + appended);
  EXPECT_FALSE(status->open());
  EXPECT_EQ(Stored("/f"), before + bytes);
  EXPECT_EQ(file("/f").chunks.size(), chunks);
  EXPECT_EQ(Count(proto::GRANT), reopened);
}

INSTANTIATE_TEST_SUITE_P(Sizes, AppendSizesTest,
                         testing::Values(Sizes{0, 1, 1, 0}, Sizes{1, 1, 1, 1}, Sizes{kMiB, 5, 2, 0},
                                         Sizes{kMiB - 1, 1, 1, 1}, Sizes{kMiB - 1, 2, 2, 1},
                                         Sizes{100'000, 3 * kMiB, 4, 1}, Sizes{kMiB + 70'001, 2 * kMiB, 4, 1},
                                         Sizes{5, 0, 1, 0}));

TEST_F(AppendTest, AFileThatIsNotWrittenToKeepsItsSealedChunk) {
  Store("/f", "hello");
  auto writer = OpenForAppend("/f");
  EXPECT_EQ(writer->status().length(), 5u);
  ASSERT_TRUE(Run(writer->Flush()));
  ASSERT_TRUE(Run(writer->Sync()));
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(Count(proto::GRANT), 0u);
  EXPECT_EQ(Count(proto::ADD_CHUNK), 0u);
  EXPECT_EQ(Count(proto::CLOSE), 1u);
}

TEST_F(AppendTest, TheChunkIsReopenedAtItsSealedLength) {
  Store("/f", Pattern(70'001));
  auto writer = OpenForAppend("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "tail", 4)));
  ASSERT_TRUE(Run(writer->Sync()));
  const auto grants = Asked<proto::GrantRequest>(master, proto::GRANT);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_TRUE(grants[0].reopen());
  EXPECT_EQ(grants[0].acked_length(), 70'001u);
  EXPECT_EQ(grants[0].generation(), file("/f").status.generation());
  EXPECT_EQ(grants[0].holder(), files().id().value);
  ASSERT_EQ(Packets().size(), 1u);
  EXPECT_EQ(Packets()[0].offset(), 70'001u);
  EXPECT_EQ(Packets()[0].serial(), 1u);
  EXPECT_GE(Packets()[0].acked_length(), 70'001u) << "what was sealed is acknowledged";
  ASSERT_TRUE(Run(writer->Close()));
}

TEST_F(AppendTest, AGrantThatIsRefusedIsAskedForAgainAsTheSameChange) {
  Store("/f", "hello");
  auto writer = OpenForAppend("/f");
  master.twists[proto::GRANT] = {Twist::Refuse(Error(Code::kSuperseded, "a newer attempt"))};
  ASSERT_TRUE(Run(WriteAll(writer.get(), " world", 6)));
  ASSERT_TRUE(Run(writer->Close()));
  const auto grants = Asked<proto::GrantRequest>(master, proto::GRANT);
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_EQ(grants[0].mutation().sequence(), grants[1].mutation().sequence());
  EXPECT_EQ(Stored("/f"), "hello world");
}

TEST_F(AppendTest, AnotherLengthThanTheSealedOneIsIntegrity) {
  for (const uint64_t length : {4u, 6u}) {
    Store("/f", "hello");
    auto writer = OpenForAppend("/f");
    choose_length = [=](const proto::GrantRequest&, uint64_t) { return length; };
    ASSERT_TRUE(Run(WriteAll(writer.get(), "x", 1)));
    auto closed = Run(writer->Close());
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().code, Code::kIntegrity) << length;
  }
}

TEST_F(AppendTest, GoesOnAfterTheReopenedSetBreaks) {
  const std::string before = Pattern(kMiB - 5000);
  const std::string bytes = Pattern(kMiB + 9000, 2);
  Store("/f", before);
  Twists() = {Twist::Refuse(Error(Code::kIoError, "disk"), 0)};
  auto writer = OpenForAppend("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), bytes, 5000)));
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(Stored("/f"), before + bytes);
  const auto grants = Asked<proto::GrantRequest>(master, proto::GRANT);
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_FALSE(grants[1].reopen());
  EXPECT_EQ(grants[1].failed_servers_size(), 1);
  EXPECT_EQ(grants[1].acked_length(), before.size());
}

TEST_F(AppendTest, AHoleAtTheEndIsFilledWithZeros) {
  chunk_size = 4 * kMiB;
  Store("/f", "hello");
  file("/f").status.set_length(2 * kMiB + 7);
  auto writer = OpenForAppend("/f");
  EXPECT_EQ(writer->bytes_written(), 0u);
  ASSERT_TRUE(Run(WriteAll(writer.get(), "tail", 4)));
  ASSERT_TRUE(Run(writer->Flush()));
  EXPECT_EQ(writer->bytes_written(), 4u);
  EXPECT_EQ(writer->bytes_acknowledged(), 4u);
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(Stored("/f"), "hello" + std::string(2 * kMiB + 2, '\0') + "tail");
}

TEST_F(AppendTest, AHoleOverWholeChunksStaysOne) {
  Store("/f", "hello");
  file("/f").status.set_length(3 * kMiB);
  auto writer = OpenForAppend("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "tail", 4)));
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  ASSERT_EQ(file("/f").chunks.size(), 2u);
  EXPECT_EQ(file("/f").chunks[1].index(), 3u);
  EXPECT_EQ(file("/f").chunks[1].length(), 4u);
  EXPECT_EQ(Count(proto::GRANT), 0u);
}

TEST_F(AppendTest, CannotBeGivenUp) {
  Store("/f", "hello");
  auto writer = OpenForAppend("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), " world", 6)));
  auto abandoned = Run(writer->Abandon());
  ASSERT_FALSE(abandoned);
  EXPECT_EQ(abandoned.error().code, Code::kInvalidArgument);
  EXPECT_THAT(abandoned.error().next_step, HasSubstr("close"));
  EXPECT_EQ(Count(proto::ABANDON), 0u);
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Stored("/f"), "hello world");
}

TEST_F(AppendTest, MakesAMissingFileOnlyWhenAsked) {
  auto missing = Run(files().OpenForAppend("/f", {}));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  auto writer = OpenForAppend("/f", {.create = true});
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Stored("/f"), "hello");
}

TEST_F(AppendTest, SaysWhoItIsAndWhatItDemands) {
  Store("/f", "hello");
  AppendFileOptions options;
  options.session.writer_id = "importer-7";
  options.session.limits.set_soft_ms(5000);
  options.session.conditions.set_if_version(9);
  auto writer = OpenForAppend("/f", options);
  const auto opened = Asked<proto::OpenRequest>(master, proto::OPEN_FILE);
  ASSERT_EQ(opened.size(), 1u);
  EXPECT_EQ(opened[0].mode(), proto::EXCLUSIVE);
  EXPECT_EQ(opened[0].holder(), files().id().value);
  EXPECT_EQ(opened[0].writer_id(), "importer-7");
  EXPECT_EQ(opened[0].limits().soft_ms(), 5000u);
  EXPECT_EQ(opened[0].conditions().if_version(), 9u);
  EXPECT_FALSE(opened[0].create());
  EXPECT_FALSE(opened[0].lock());
}

TEST_F(AppendTest, WhoHoldsTheFileIsTold) {
  Store("/f", "hello");
  master.twists[proto::OPEN_FILE] = {
      Twist::Refuse(Error(Code::kLeaseConflict, "/f is being written").WithHolder("00000000000000aa"))};
  auto writer = Run(files().OpenForAppend("/f", {}));
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, Code::kLeaseConflict);
  EXPECT_EQ(writer.error().holder, "00000000000000aa");
  EXPECT_EQ(Count(proto::OPEN_FILE), 1u) << "who holds a file is not asked again and again";
}

// ---- what travels with changes -----------------------------------------------------------------------

TEST_F(AppendTest, ConditionsTravelWithEveryChange) {
  proto::Conditions conditions;
  conditions.set_if_revision(3);
  conditions.set_if_version(4);
  (void)Run(files().Mkdir("/d", false, 0755, conditions));
  (void)Run(files().Rename("/a", "/b", false, conditions));
  (void)Run(files().Remove("/a", {.conditions = conditions}));
  (void)Run(files().SetMode("/a", 0600, conditions));
  (void)Run(files().Concat("/a", {"/b", "/c"}, conditions));
  (void)Run(files().Truncate("/a", 7, {.writer_id = "w", .conditions = conditions}));
  auto expect = [&](const auto& requests) {
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].conditions().SerializeAsString(), conditions.SerializeAsString());
    EXPECT_EQ(requests[0].mutation().client(), files().id().value);
  };
  expect(Asked<proto::MkdirRequest>(master, proto::MKDIR));
  expect(Asked<proto::RenameRequest>(master, proto::RENAME));
  expect(Asked<proto::DeleteRequest>(master, proto::DELETE));
  expect(Asked<proto::SetAttributesRequest>(master, proto::SET_ATTRIBUTES));
  expect(Asked<proto::ConcatRequest>(master, proto::CONCAT));
  const auto truncated = Asked<proto::TruncateRequest>(master, proto::TRUNCATE);
  expect(truncated);
  EXPECT_EQ(truncated[0].length(), 7u);
  EXPECT_EQ(truncated[0].writer_id(), "w");
  EXPECT_EQ(truncated[0].holder(), files().id().value);
}

}  // namespace
}  // namespace picket
