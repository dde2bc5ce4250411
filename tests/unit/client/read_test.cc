// Reading: every byte verified, and every replica that can serve is enough.
#include <gmock/gmock.h>

#include "tests/unit/client/fake_cluster.h"

namespace picket {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ReadTest : public FakeCluster {
 protected:
  std::string Read(const std::string& path) {
    auto reader = Open(path);
    auto bytes = Run(ReadAll(reader.get()));
    EXPECT_TRUE(bytes) << bytes.error().ToString();
    return bytes.value_or("");
  }
  size_t Reads(size_t server) const {
    return Asked<proto::ReadRequest>(chunkservers[server]->script, proto::READ).size();
  }
  // The server that this client's reader of a sealed chunk asks first.
  size_t FirstChoice(const std::string& path, size_t chunk) {
    return (file(path).chunks[chunk].chunk() ^ files().id().value) % chunkservers.size();
  }
};

TEST_F(ReadTest, SequentialAcrossChunksAndPages) {
  page_limit = 2;
  const std::string bytes = Pattern(11 * kMiB + 4321);
  Store("/f", bytes, 2 * kMiB);
  EXPECT_EQ(Read("/f"), bytes);
}

TEST_F(ReadTest, EmptyFile) {
  Store("/f", "");
  EXPECT_EQ(Read("/f"), "");
}

TEST_F(ReadTest, ExactMultipleOfTheChunkSize) {
  const std::string bytes = Pattern(2 * kMiB);
  Store("/f", bytes);
  EXPECT_EQ(Read("/f"), bytes);
}

TEST_F(ReadTest, MissingFile) {
  auto reader = Run(files().Open("/nothing"));
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Code::kNotFound);
}

TEST_F(ReadTest, ReadAheadIsBoundedAndGrows) {
  Store("/f", Pattern(32 * kMiB), 32 * kMiB);
  for (auto& server : chunkservers) server->script.always[proto::READ] = Twist::Delay(500ms);
  auto reader = Open("/f");
  auto first = Begin(reader->Read());
  world.RunFor(100ms);
  EXPECT_EQ(Reads(0) + Reads(1) + Reads(2), 1u) << "one piece may be all that is wanted";
  ASSERT_TRUE(Await(first));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Run(reader->Read()));
  world.RunFor(400ms);
  EXPECT_LE(Reads(0) + Reads(1) + Reads(2), 9u + FileReader::kMaxInFlight);
  EXPECT_GE(Reads(0) + Reads(1) + Reads(2), 9u + FileReader::kMaxInFlight - 1);
}

TEST_F(ReadTest, SeekThenRead) {
  const std::string bytes = Pattern(5 * kMiB);
  Store("/f", bytes);
  auto reader = Open("/f");
  ASSERT_TRUE(Run(reader->Read()));
  ASSERT_TRUE(Run(reader->Read()));
  reader->Seek(123'457);
  auto rest = Run(ReadAll(reader.get()));
  ASSERT_TRUE(rest);
  EXPECT_EQ(*rest, bytes.substr(123'457));
}

struct Range {
  uint64_t offset;
  size_t size;
};
class ReadAtTest : public ReadTest, public testing::WithParamInterface<Range> {};

TEST_P(ReadAtTest, ReturnsExactlyThoseBytes) {
  const std::string bytes = Pattern(3 * kMiB + 77);
  Store("/f", bytes);
  auto reader = Open("/f");
  auto got = Run(reader->ReadAt(GetParam().offset, GetParam().size));
  ASSERT_TRUE(got) << got.error().ToString();
  const std::string expected =
      GetParam().offset >= bytes.size() ? "" : bytes.substr(GetParam().offset, GetParam().size);
  EXPECT_EQ(got->view(), expected);
}

INSTANTIATE_TEST_SUITE_P(Ranges, ReadAtTest,
                         testing::Values(Range{0, 1}, Range{0, 0}, Range{65535, 2}, Range{kMiB - 1, 2},
                                         Range{kMiB - 100, 2 * kMiB + 200}, Range{3 * kMiB, 1000},
                                         Range{3 * kMiB + 76, 5}, Range{3 * kMiB + 77, 5}, Range{UINT64_MAX - 3, 100},
                                         Range{5, 64 * kMiB}));

TEST_F(ReadTest, ACorruptBlockIsReadElsewhereAndReported) {
  const std::string bytes = Pattern(kMiB);
  Store("/f", bytes);
  const size_t bad = FirstChoice("/f", 0);
  replica("/f", 0, bad).rot = 100'000;
  EXPECT_EQ(Read("/f"), bytes);
  world.RunFor(1s);
  const auto complaints =
      Asked<proto::VerifyReplicaRequest>(chunkservers[bad]->script, proto::VERIFY_REPLICA);
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_EQ(complaints[0].chunk(), file("/f").chunks[0].chunk());
  EXPECT_EQ(complaints[0].version(), file("/f").chunks[0].version());
  for (size_t i = 0; i < 3; ++i) {
    if (i != bad) EXPECT_THAT(Asked<proto::VerifyReplicaRequest>(chunkservers[i]->script, proto::VERIFY_REPLICA), IsEmpty());
  }
}

TEST_F(ReadTest, AServerThatFindsItselfCorruptIsNotAskedToLookAgain) {
  Store("/f", Pattern(kMiB));
  const size_t bad = FirstChoice("/f", 0);
  chunkservers[bad]->script.always[proto::READ] = Twist::Refuse(Error(Code::kCorrupt, "block 3"));
  EXPECT_EQ(Read("/f"), Pattern(kMiB));
  EXPECT_THAT(Asked<proto::VerifyReplicaRequest>(chunkservers[bad]->script, proto::VERIFY_REPLICA), IsEmpty());
}

TEST_F(ReadTest, CorruptEverywhereIsCorrupt) {
  Store("/f", Pattern(kMiB));
  for (size_t i = 0; i < 3; ++i) replica("/f", 0, i).rot = 5;
  auto reader = Open("/f");
  const Nanos before = world.now();
  auto got = Run(reader->Read());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kCorrupt);
  EXPECT_LT(world.now() - before, 10s);
}

TEST_F(ReadTest, ADeadServerIsAvoidedForAWhile) {
  const std::string bytes = Pattern(6 * kMiB);
  Store("/f", bytes, 8 * kMiB);
  const size_t dead = FirstChoice("/f", 0);
  server_nodes[dead]->Crash(sim::Node::Death::kPower);  // nobody says that it is gone
  const Nanos before = world.now();
  EXPECT_EQ(Read("/f"), bytes);
  EXPECT_LT(world.now() - before, 3s) << "one hedge, then the others";
}

TEST_F(ReadTest, ASlowServerIsOvertaken) {
  Store("/f", Pattern(kMiB));
  chunkservers[FirstChoice("/f", 0)]->script.always[proto::READ] = Twist::Delay(30s);
  const Nanos before = world.now();
  EXPECT_EQ(Read("/f"), Pattern(kMiB));
  EXPECT_LT(world.now() - before, 2s);
}

TEST_F(ReadTest, AStaleVersionIsAskedForAgain) {
  const std::string bytes = Pattern(kMiB + 10);
  Store("/f", bytes);
  auto reader = Open("/f");
  for (auto& chunk : file("/f").chunks) {
    chunk.set_version(chunk.version() + 1000);
    for (size_t i = 0; i < 3; ++i) chunkservers[i]->replicas.at(chunk.chunk()).version = Version(chunk.version());
  }
  auto got = Run(ReadAll(reader.get()));
  ASSERT_TRUE(got) << got.error().ToString();
  EXPECT_EQ(*got, bytes);
}

TEST_F(ReadTest, ServersThatMovedAreFound) {
  const std::string bytes = Pattern(kMiB);
  Store("/f", bytes);
  auto reader = Open("/f");
  const uint64_t chunk = file("/f").chunks[0].chunk();
  for (size_t i = 0; i < 2; ++i) chunkservers[i]->replicas.erase(chunk);
  file("/f").chunks[0].mutable_replicas()->DeleteSubrange(0, 2);
  auto got = Run(ReadAll(reader.get()));
  ASSERT_TRUE(got) << got.error().ToString();
  EXPECT_EQ(*got, bytes);
}

TEST_F(ReadTest, NoReplicaIsNamedWithinTenSeconds) {
  Store("/f", Pattern(kMiB));
  for (auto* node : server_nodes) node->Crash(sim::Node::Death::kPower);
  auto reader = Open("/f");
  const Nanos before = world.now();
  auto got = Run(reader->Read());
  ASSERT_FALSE(got);
  EXPECT_LE(world.now() - before, 10s);
  EXPECT_EQ(got.error().code, Code::kUnavailable);
  EXPECT_THAT(got.error().message, HasSubstr(ToHex(file("/f").chunks[0].chunk())));
  EXPECT_THAT(got.error().message, HasSubstr(Version(file("/f").chunks[0].version()).ToString()));
  for (const auto& server : chunkservers) {
    EXPECT_THAT(got.error().message, HasSubstr(ToString(server->id)));
    EXPECT_THAT(got.error().message, HasSubstr(server->endpoint.ToString()));
  }
}

TEST_F(ReadTest, AChunkThatNobodyHasIsNamedWithinTenSeconds) {
  Store("/f", Pattern(kMiB));
  file("/f").chunks[0].clear_replicas();
  auto reader = Open("/f");
  const Nanos before = world.now();
  auto got = Run(reader->Read());
  ASSERT_FALSE(got);
  EXPECT_LE(world.now() - before, 10s);
  EXPECT_EQ(got.error().code, Code::kUnavailable);
}

TEST_F(ReadTest, AReplicaThatComesBackInTimeServes) {
  Store("/f", Pattern(kMiB));
  for (auto* node : server_nodes) node->Crash(sim::Node::Death::kProcess);
  auto reader = Open("/f");
  auto got = Begin(ReadAll(reader.get()));
  world.RunFor(3s);
  StartServer(1);
  ASSERT_TRUE(Await(got));
  ASSERT_TRUE(**got) << (*got)->error().ToString();
}

// ---- files that are being written ------------------------------------------------------------------

TEST_F(ReadTest, AnOpenFileEndsWhereAReplicaSays) {
  auto writer = Create("/f");
  const std::string bytes = Pattern(2 * kMiB + 1000);
  ASSERT_TRUE(Run(WriteAll(writer.get(), bytes.substr(0, kMiB + 10), 50'000)));
  ASSERT_TRUE(Run(writer->Flush()));
  auto reader = Open("/f");
  EXPECT_EQ(Run(reader->Length()).value_or(0), kMiB + 10);
  auto head = Run(ReadAll(reader.get()));
  ASSERT_TRUE(head) << head.error().ToString();
  EXPECT_EQ(*head, bytes.substr(0, kMiB + 10));

  ASSERT_TRUE(Run(WriteAll(writer.get(), bytes.substr(kMiB + 10), 50'000)));
  ASSERT_TRUE(Run(writer->Close()));
  auto rest = Run(ReadAll(reader.get()));
  ASSERT_TRUE(rest) << rest.error().ToString();
  EXPECT_EQ(*head + *rest, bytes);
  EXPECT_EQ(Run(reader->Length()).value_or(0), bytes.size());
}

TEST_F(ReadTest, AMemberThatKnowsLessIsNotTheEnd) {
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Flush()));
  // The primary knows all of it; the others lag (F16).
  replica("/f", 0, 1).readable = 2;
  replica("/f", 0, 2).readable = 0;
  auto reader = Open("/f");
  EXPECT_EQ(Run(reader->Length()).value_or(0), 5u);
  chunkservers[0]->script.twists[proto::READ] = {Twist::Refuse(Error(Code::kUnavailable, "busy"))};
  auto got = Run(ReadAll(reader.get()));
  ASSERT_TRUE(got) << got.error().ToString();
  EXPECT_EQ(*got, "hello");
}

TEST_F(ReadTest, AnOpenFileThatIsEmptySoFar) {
  auto writer = Create("/f");
  auto reader = Open("/f");
  EXPECT_EQ(Run(reader->Length()).value_or(9), 0u);
  auto got = Run(reader->Read());
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->empty());
}

}  // namespace
}  // namespace picket
