// Writing at any offset, and reading what that leaves: holes.
#include <gmock/gmock.h>

#include "tests/unit/client/fake_cluster.h"

namespace picket {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RandomWriteTest : public FakeCluster {
 protected:
  std::unique_ptr<RandomWriter> OpenForWrite(const std::string& path, AppendFileOptions options = {}) {
    auto writer = Run(files().OpenForWrite(path, options));
    PICKET_CHECK(writer.has_value());
    return std::move(*writer);
  }
  Status Put(RandomWriter* writer, uint64_t offset, const std::string& bytes) {
    return Run(writer->WriteAt(offset, Buffer::Copy(bytes)));
  }
  // The same in the expected content.
  static void Patch(std::string* content, uint64_t offset, const std::string& bytes) {
    if (content->size() < offset + bytes.size()) content->resize(offset + bytes.size());
    content->replace(offset, bytes.size(), bytes);
  }
  std::vector<proto::WritePacketRequest> Packets(size_t server = 0) const {
    return Asked<proto::WritePacketRequest>(chunkservers[server]->script, proto::WRITE_PACKET);
  }
  std::vector<proto::GrantRequest> Grants() const { return Asked<proto::GrantRequest>(master, proto::GRANT); }
  auto& Twists(size_t server) { return chunkservers[server]->script.twists[proto::WRITE_PACKET]; }
  std::string ReadBack(const std::string& path) {
    auto reader = Open(path);
    auto bytes = Run(ReadAll(reader.get()));
    EXPECT_TRUE(bytes) << bytes.error().ToString();
    return bytes.value_or("");
  }
};

TEST_F(RandomWriteTest, ReplacesBytesAcrossChunksAndLeavesTheOthersAlone) {
  std::string content = Pattern(3 * kMiB);
  Store("/f", content);
  const uint64_t untouched = file("/f").chunks[2].version();
  auto writer = OpenForWrite("/f");
  const std::string patch = Pattern(300'000, 2);
  Patch(&content, kMiB - 100'000, patch);
  ASSERT_TRUE(Put(writer.get(), kMiB - 100'000, patch));
  EXPECT_EQ(writer->bytes_written(), patch.size());
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(status->length(), content.size());
  EXPECT_EQ(Stored("/f"), content);
  EXPECT_EQ(file("/f").chunks[2].version(), untouched);
  for (const auto& packet : Packets()) EXPECT_TRUE(packet.overwrite());
  for (const auto& grant : Grants()) EXPECT_TRUE(grant.reopen());
  EXPECT_EQ(ReadBack("/f"), content);
}

TEST_F(RandomWriteTest, ReplacesAndGoesOnBehindTheEnd) {
  chunk_size = 4 * kMiB;
  std::string content = Pattern(100'000);
  Store("/f", content);
  auto writer = OpenForWrite("/f");
  const std::string patch = Pattern(2 * kMiB, 2);
  Patch(&content, 70'000, patch);
  ASSERT_TRUE(Put(writer.get(), 70'000, patch));
  ASSERT_TRUE(Put(writer.get(), 5, "back again"));
  Patch(&content, 5, "back again");
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Stored("/f"), content);
}

TEST_F(RandomWriteTest, AGapInsideTheChunkIsFilledWithZeros) {
  chunk_size = 4 * kMiB;
  std::string content = Pattern(1000);
  Store("/f", content);
  auto writer = OpenForWrite("/f");
  Patch(&content, 3 * kMiB + 5, "far");
  ASSERT_TRUE(Put(writer.get(), 3 * kMiB + 5, "far"));
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Stored("/f"), content);
  EXPECT_EQ(ReadBack("/f"), content);
}

TEST_F(RandomWriteTest, ChunksThatWereNeverWrittenAreAHoleThatReadsAsZeros) {
  std::string content = Pattern(1000);
  Store("/f", content);
  {
    auto writer = OpenForWrite("/f");
    Patch(&content, 5 * kMiB + 5, "far");
    ASSERT_TRUE(Put(writer.get(), 5 * kMiB + 5, "far"));
    ASSERT_TRUE(Run(writer->Close()));
  }
  EXPECT_THAT(file("/f").chunks, SizeIs(2));
  EXPECT_EQ(file("/f").chunks[0].length(), 1000u) << "the first one stays short";
  EXPECT_EQ(ReadBack("/f"), content);
  auto reader = Open("/f");
  EXPECT_EQ(Run(reader->ReadAt(500, 2 * kMiB))->view(), content.substr(500, 2 * kMiB));
  EXPECT_EQ(Run(reader->ReadAt(3 * kMiB + 1, 10))->view(), std::string(10, '\0'));
  EXPECT_EQ(Run(reader->ReadAt(5 * kMiB, 100))->view(), std::string(5, '\0') + "far");
  // The hole is written later.
  auto writer = OpenForWrite("/f");
  Patch(&content, 2 * kMiB + 7, "middle");
  ASSERT_TRUE(Put(writer.get(), 2 * kMiB + 7, "middle"));
  ASSERT_TRUE(Run(writer->Flush()));
  EXPECT_EQ(Run(reader->ReadAt(2 * kMiB, 13))->view(), content.substr(2 * kMiB, 13)) << "nothing old is remembered";
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(ReadBack("/f"), content);
}

TEST_F(RandomWriteTest, PiecesBehindAShortChunksEndAreZerosToo) {
  chunk_size = 4 * kMiB;
  std::string content = Pattern(1'500'000);
  Store("/f", content);
  auto writer = OpenForWrite("/f");
  Patch(&content, 4 * kMiB, "next");
  ASSERT_TRUE(Put(writer.get(), 4 * kMiB, "next"));
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(ReadBack("/f"), content);
}

TEST_F(RandomWriteTest, AFileThatDoesNotExistIsMadeOnDemand) {
  AppendFileOptions options;
  options.create = true;
  auto writer = OpenForWrite("/f", options);
  ASSERT_TRUE(Put(writer.get(), 3, "abc"));
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Stored("/f"), std::string(3, '\0') + "abc");
}

TEST_F(RandomWriteTest, AnOffsetBeyondAllFilesIsRefusedAndTheWriterGoesOn) {
  Store("/f", "hello");
  auto writer = OpenForWrite("/f");
  for (const uint64_t offset : {uint64_t{1} << 60, (uint64_t{1} << 60) - 1, uint64_t{1} << 63, UINT64_MAX}) {
    auto refused = Put(writer.get(), offset, "xx");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr("/f"));
  }
  ASSERT_TRUE(Put(writer.get(), 0, "j"));
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Stored("/f"), "jello");
}

TEST_F(RandomWriteTest, NothingWrittenChangesNothing) {
  Store("/f", "hello");
  auto writer = OpenForWrite("/f");
  ASSERT_TRUE(Run(writer->Flush()));
  ASSERT_TRUE(Run(writer->Sync()));
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_THAT(Grants(), IsEmpty());
  EXPECT_EQ(Stored("/f"), "hello");
  EXPECT_EQ(Put(writer.get(), 0, "x").error().code, Code::kInvalidArgument);
}

TEST_F(RandomWriteTest, SyncReachesEveryMembersDisk) {
  Store("/f", "hello world");
  auto writer = OpenForWrite("/f");
  ASSERT_TRUE(Put(writer.get(), 0, "J"));
  ASSERT_TRUE(Run(writer->Flush()));
  EXPECT_NE(replica("/f", 0, 1).synced, "Jello world");
  ASSERT_TRUE(Run(writer->Sync()));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(replica("/f", 0, i).synced, "Jello world");
  const size_t packets = Packets().size();
  ASSERT_TRUE(Run(writer->Sync())) << "nothing new";
  EXPECT_EQ(Packets().size(), packets);
}

TEST_F(RandomWriteTest, AtMostTheWindowIsOnTheWay) {
  chunk_size = 16 * kMiB;
  Store("/f", Pattern(12 * kMiB));
  chunkservers[0]->script.always[proto::WRITE_PACKET] = Twist::Delay(1s);
  auto writer = OpenForWrite("/f");
  auto written = Begin(writer->WriteAt(0, Buffer::Copy(Pattern(10 * kMiB, 2))));
  world.RunFor(900ms);
  EXPECT_EQ(Packets().size(), 4u);
  EXPECT_FALSE(written->has_value());
  ASSERT_TRUE(Await(written));
  ASSERT_TRUE(Run(writer->Close()));
}

// A packet that reached one member only: the set goes on without that answer, and it is sent again.
TEST_F(RandomWriteTest, AnOverwriteThatWasNotAcknowledgedIsSentAgain) {
  std::string content = Pattern(500'000);
  Store("/f", content);
  auto writer = OpenForWrite("/f");
  Twists(0) = {std::nullopt, Twist::Refuse(Error(Code::kConnectionLost, "broke"), 1)};
  ASSERT_TRUE(Put(writer.get(), 1000, "first"));
  ASSERT_TRUE(Put(writer.get(), 70'000, "second"));
  ASSERT_TRUE(Put(writer.get(), 70'002, "third"));
  Patch(&content, 1000, "first");
  Patch(&content, 70'000, "second");
  Patch(&content, 70'002, "third");
  ASSERT_TRUE(Run(writer->Flush()));
  EXPECT_THAT(Grants(), SizeIs(2));
  EXPECT_EQ(Stored("/f"), content) << "on every member";
  ASSERT_TRUE(Run(writer->Close()));
}

// L lies inside an appended packet: the rest of it is sent, then what followed.
TEST_F(RandomWriteTest, TheSetGoesOnInsideAPacket) {
  chunk_size = 4 * kMiB;
  std::string content = Pattern(1000);
  Store("/f", content);
  auto writer = OpenForWrite("/f");
  const std::string tail = Pattern(100'000, 2);
  Twists(0) = {Twist::Refuse(Error(Code::kConnectionLost, "broke"), 3)};
  choose_length = [](const proto::GrantRequest& request, uint64_t common) {
    return request.reopen() ? common : std::min<uint64_t>(common, 30'000);
  };
  ASSERT_TRUE(Put(writer.get(), 1000, tail));
  ASSERT_TRUE(Put(writer.get(), 29'000, "here and there"));
  ASSERT_TRUE(Put(writer.get(), 90'000, "later"));
  Patch(&content, 1000, tail);
  Patch(&content, 29'000, "here and there");
  Patch(&content, 90'000, "later");
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(Stored("/f"), content);
}

TEST_F(RandomWriteTest, AGrantBelowWhatWasAcknowledgedIsIntegrity) {
  Store("/f", Pattern(1000));
  auto writer = OpenForWrite("/f");
  ASSERT_TRUE(Put(writer.get(), 1000, "more"));
  ASSERT_TRUE(Run(writer->Flush()));
  Twists(0) = {Twist::Refuse(Error(Code::kConnectionLost, "broke"))};
  choose_length = [](const proto::GrantRequest&, uint64_t) { return 1000u; };
  ASSERT_TRUE(Put(writer.get(), 0, "x"));
  auto flushed = Run(writer->Flush());
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, Code::kIntegrity);
  EXPECT_EQ(Put(writer.get(), 0, "y").error().code, Code::kIntegrity) << "the first failure stands";
}

TEST_F(RandomWriteTest, AFencedWriterStopsAndSaysWhy) {
  Store("/f", Pattern(1000));
  auto writer = OpenForWrite("/f");
  Twists(0) = {Twist::Refuse(Error(Code::kStaleGeneration, "old session").WithTokens(5, 9))};
  ASSERT_TRUE(Put(writer.get(), 0, "x"));
  auto closed = Run(writer->Close());
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::kStaleGeneration);
  EXPECT_EQ(closed.error().token, 5u);
  EXPECT_EQ(closed.error().mark, 9u);
  EXPECT_THAT(closed.error().message, HasSubstr("/f"));
  EXPECT_FALSE(closed.error().next_step.empty());
}

TEST_F(RandomWriteTest, ASealThatBrokeIsTakenUpByANewGrant) {
  Store("/f", Pattern(1000));
  auto writer = OpenForWrite("/f");
  ASSERT_TRUE(Put(writer.get(), 0, "x"));
  chunkservers[0]->script.twists[proto::SEAL] = {Twist::Refuse(Error(Code::kStaleVersion, "raised"))};
  auto closed = Run(writer->Close());
  ASSERT_TRUE(closed) << closed.error().ToString();
  EXPECT_THAT(Grants(), SizeIs(2));
}

// ---- holes, as readers see them ----

TEST_F(RandomWriteTest, AnOpenChunksEndIsItsPrimarysWord) {
  Store("/f", Pattern(2 * kMiB + 100));
  auto& chunk = file("/f").chunks[1];
  const std::string whole = replica("/f", 1, 0).bytes;
  for (size_t i = 0; i < 3; ++i) {
    auto& held = replica("/f", 1, i);
    held.sealed = false;
    held.readable = i == 0 ? 5000 : 1000;  // the others have not heard of the last flush
  }
  chunk.set_sealed(false);
  chunk.set_length(1000);
  chunk.set_primary(chunkservers[0]->id.value);
  auto reader = Open("/f");
  EXPECT_EQ(Run(reader->ReadAt(kMiB, 6000))->view(), whole.substr(0, 5000) + std::string(1000, '\0'));
  // Without it nobody says that there is a hole.
  server_nodes[0]->Crash(sim::Node::Death::kProcess);
  auto lagging = Run(reader->ReadAt(kMiB, 6000));
  ASSERT_FALSE(lagging);
  EXPECT_THAT(lagging.error().message, HasSubstr("SHORT"));
  EXPECT_EQ(Run(reader->ReadAt(kMiB, 1000))->view(), whole.substr(0, 1000));
}

// A primary that restarted does not know yet what was acknowledged: what was sealed is no hole.
TEST_F(RandomWriteTest, AnOpenChunkIsNoShorterThanWhenItWasSealed) {
  Store("/f", Pattern(2 * kMiB + 100));
  auto& chunk = file("/f").chunks[1];
  for (size_t i = 0; i < 3; ++i) {
    auto& held = replica("/f", 1, i);
    held.sealed = false;
    held.readable = 0;
  }
  chunk.set_sealed(false);
  chunk.set_length(1000);
  for (const uint64_t primary : {chunkservers[0]->id.value, uint64_t{0}}) {
    chunk.set_primary(primary);
    auto reader = Open("/f");
    auto read = Run(reader->ReadAt(kMiB, 6000));
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr("SHORT"));
  }
}

TEST_F(RandomWriteTest, ASealedReplicaShorterThanItsRecordIsNoHole) {
  Store("/f", Pattern(2 * kMiB));
  for (size_t i = 0; i < 3; ++i) replica("/f", 0, i).bytes.resize(1000);
  auto reader = Open("/f");
  auto read = Run(reader->ReadAt(0, 5000));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("SHORT"));
}

TEST_F(RandomWriteTest, WhatTheFileDoesNotReachIsNoHole) {
  Store("/f", Pattern(2 * kMiB));
  auto reader = Open("/f");
  // Cut by somebody else since.
  auto& of = file("/f");
  of.chunks.pop_back();
  of.status.set_length(kMiB);
  of.status.set_chunk_count(1);
  for (auto& server : chunkservers) {
    for (auto& [id, held] : server->replicas) held.version = Version(7, 7);
  }
  of.chunks[0].set_version(Version(7, 7).value);
  EXPECT_EQ(Run(reader->ReadAt(kMiB + 5, 10)).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace picket
