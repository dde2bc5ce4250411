// Writing: what reaches the members and the master, and what happens when either fails.
#include <gmock/gmock.h>

#include "tests/unit/client/fake_cluster.h"

namespace picket {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class WriteTest : public FakeCluster {
 protected:
  WriteTest() { world.AddObserver([this](sim::Node&, const ProtocolEvent& e) { events.push_back(e); }); }

  size_t Count(proto::Method method) const {
    return static_cast<size_t>(std::ranges::count_if(master.calls, [=](const auto& c) { return c.first == method; }));
  }
  std::vector<proto::WritePacketRequest> Packets(size_t server) const {
    return Asked<proto::WritePacketRequest>(chunkservers[server]->script, proto::WRITE_PACKET);
  }
  std::vector<proto::GrantRequest> Grants() const { return Asked<proto::GrantRequest>(master, proto::GRANT); }
  auto& Twists(size_t server) { return chunkservers[server]->script.twists[proto::WRITE_PACKET]; }

  std::vector<ProtocolEvent> events;
};

struct Sizes {
  size_t size;
  size_t part;
  size_t chunks;
};
class WriteSizesTest : public WriteTest, public testing::WithParamInterface<Sizes> {};

TEST_P(WriteSizesTest, EveryMemberHoldsTheBytesAndTheMasterTheLength) {
  const auto [size, part, chunks] = GetParam();
  const std::string bytes = Pattern(size);
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), bytes, part)));
  EXPECT_EQ(writer->bytes_written(), size);
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(status->length(), size);
  EXPECT_FALSE(status->open());
  EXPECT_EQ(file("/f").chunks.size(), chunks);
  EXPECT_EQ(Stored("/f"), bytes);
  EXPECT_EQ(writer->bytes_acknowledged(), size);
  for (const auto& server : chunkservers) {
    for (const auto& [chunk, held] : server->replicas) EXPECT_EQ(held.synced, held.bytes) << "not durable at close";
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, WriteSizesTest,
                         testing::Values(Sizes{0, 1, 0}, Sizes{1, 1, 1}, Sizes{100'000, 777, 1}, Sizes{kMiB - 1, kMiB, 1},
                                         Sizes{kMiB, 4096, 1}, Sizes{kMiB + 1, kMiB + 1, 2},
                                         Sizes{3 * kMiB, 3 * kMiB, 3}, Sizes{2 * kMiB + 12345, 300'000, 3}));

TEST_F(WriteTest, LargeChunksTakeWholePackets) {
  chunk_size = 8 * kMiB;
  const std::string bytes = Pattern(5 * kMiB + 5);
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), bytes, 700'000)));
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Stored("/f"), bytes);
  const auto packets = Packets(0);
  ASSERT_EQ(packets.size(), 6u);
  for (size_t i = 0; i < packets.size(); ++i) {
    EXPECT_EQ(packets[i].serial(), i + 1);
    EXPECT_EQ(packets[i].offset(), i * kMiB);
    EXPECT_EQ(packets[i].target_incarnation(), 1u);
    EXPECT_EQ(packets[i].chain_size(), 0);
  }
}

TEST_F(WriteTest, TheWindowIsFour) {
  chunk_size = 16 * kMiB;
  chunkservers[0]->script.always[proto::WRITE_PACKET] = Twist::Delay(1s);
  auto writer = Create("/f");
  auto written = Begin(WriteAll(writer.get(), Pattern(10 * kMiB), kMiB));
  world.RunFor(900ms);
  EXPECT_EQ(Packets(0).size(), 4u);
  EXPECT_EQ(writer->bytes_acknowledged(), 0u);
  EXPECT_EQ(writer->bytes_written(), 8 * kMiB) << "the queue is bounded";
  ASSERT_TRUE(Await(written));
  ASSERT_TRUE(**written);
  ASSERT_TRUE(Run(writer->Close()));
}

TEST_F(WriteTest, FlushReturnsWhenAcknowledged) {
  auto writer = Create("/f");
  Twists(0) = {Twist::Delay(3s)};
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  auto flushed = Begin(writer->Flush());
  world.RunFor(2s);
  EXPECT_FALSE(flushed->has_value());
  EXPECT_EQ(writer->bytes_acknowledged(), 0u);
  ASSERT_TRUE(Await(flushed));
  EXPECT_TRUE(**flushed);
  EXPECT_EQ(writer->bytes_acknowledged(), 5u);
  EXPECT_THAT(replica("/f", 0, 2).synced, IsEmpty()) << "a flush is not a sync";
  const auto acknowledged = std::ranges::find_if(
      events, [](const auto& e) { return e.kind == ProtocolEvent::Kind::kAcknowledged; });
  ASSERT_NE(acknowledged, events.end());
  EXPECT_EQ(acknowledged->length, 5u);
  EXPECT_EQ(acknowledged->chunk.value, file("/f").chunks[0].chunk());
  EXPECT_EQ(acknowledged->version.value, file("/f").chunks[0].version());
}

TEST_F(WriteTest, SyncReachesEveryMembersDisk) {
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Sync()));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(replica("/f", 0, i).synced, "hello");
  // Bytes that a flush has sent already are synced by an empty packet.
  ASSERT_TRUE(Run(WriteAll(writer.get(), " world", 6)));
  ASSERT_TRUE(Run(writer->Flush()));
  ASSERT_TRUE(Run(writer->Sync()));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(replica("/f", 0, i).synced, "hello world");
  ASSERT_TRUE(Run(writer->Sync())) << "nothing new";
  EXPECT_EQ(Packets(0).size(), 3u);
  ASSERT_TRUE(Run(writer->Close()));
}

TEST_F(WriteTest, SyncReachesBackToChunksSealedWithoutOne) {
  CreateFileOptions options;
  options.sync = false;
  auto writer = Create("/f", options);
  const std::string bytes = Pattern(2 * kMiB + 10);
  ASSERT_TRUE(Run(WriteAll(writer.get(), bytes, kMiB)));
  ASSERT_TRUE(Run(writer->Flush()));
  EXPECT_THAT(replica("/f", 0, 0).synced, IsEmpty());
  ASSERT_TRUE(Run(writer->Sync()));
  for (size_t chunk = 0; chunk < 3; ++chunk) {
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(replica("/f", chunk, i).synced, replica("/f", chunk, i).bytes);
  }
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Stored("/f"), bytes);
}

TEST_F(WriteTest, SyncOfASealedChunkOutlastsARestartOfItsServer) {
  CreateFileOptions options;
  options.sync = false;
  auto writer = Create("/f", options);
  ASSERT_TRUE(Run(WriteAll(writer.get(), Pattern(kMiB + 10), kMiB)));
  ASSERT_TRUE(Run(writer->Flush()));
  server_nodes[1]->Crash(sim::Node::Death::kProcess);
  auto synced = Begin(writer->Sync());
  world.RunFor(5s);
  EXPECT_FALSE(synced->has_value());
  StartServer(1);
  file("/f").chunks[0].mutable_replicas(1)->mutable_hop()->set_incarnation(2);
  ASSERT_TRUE(Await(synced));
  ASSERT_TRUE(**synced) << (*synced)->error().ToString();
  const auto seals = Asked<proto::SealRequest>(chunkservers[1]->script, proto::SEAL);
  ASSERT_FALSE(seals.empty());
  EXPECT_EQ(seals.back().target_incarnation(), 2u) << "asked in its present boot";
  EXPECT_EQ(replica("/f", 0, 1).synced, replica("/f", 0, 1).bytes);
}

// ---- a member fails in mid-write -------------------------------------------------------------------

TEST_F(WriteTest, GoesOnFromTheMiddleOfAPacket) {
  chunk_size = 8 * kMiB;
  const std::string bytes = Pattern(6 * kMiB + 99);
  // The third packet breaks; the survivors have part of it, which is neither a block nor a packet.
  Twists(0) = {std::nullopt, std::nullopt,
               Twist::Refuse(Error(Code::kOutOfOrder, "as if"), 3)};
  uint64_t length = 0;
  choose_length = [&](const proto::GrantRequest&, uint64_t) { return length = 2 * kMiB + 70'001; };
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), bytes, kMiB)));
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_NE(length, 0u);
  EXPECT_EQ(Stored("/f"), bytes);
  EXPECT_EQ(status->length(), bytes.size());
  const auto packets = Packets(0);
  const auto resent = std::ranges::find_if(packets, [&](const auto& p) { return p.offset() == length; });
  ASSERT_NE(resent, packets.end());
  EXPECT_EQ(resent->serial(), 1u) << "serials begin anew with each version";
  ASSERT_EQ(Grants().size(), 1u);
  EXPECT_LE(Grants()[0].acked_length(), length);
}

TEST_F(WriteTest, BytesBetweenAcknowledgedAndLCountAsAcknowledged) {
  Twists(0) = {Twist::Refuse(Error(Code::kReplicaUnclean, "restarted"), 3)};
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Flush()));
  EXPECT_EQ(Grants().size(), 1u);
  EXPECT_EQ(Packets(0).size(), 1u) << "all of it was there (D6)";
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Stored("/f"), "hello");
}

TEST_F(WriteTest, LBelowAcknowledgedIsIntegrity) {
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Flush()));
  Twists(0) = {Twist::Refuse(Error(Code::kNotPrimary, "no lease"))};
  choose_length = [](const proto::GrantRequest&, uint64_t) { return 4; };
  ASSERT_TRUE(Run(WriteAll(writer.get(), "more", 4)));
  auto flushed = Run(writer->Flush());
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, Code::kIntegrity);
  EXPECT_EQ(Run(writer->Close()).error().code, Code::kIntegrity) << "the first failure stands";
}

TEST_F(WriteTest, LBeyondWhatWasSentIsIntegrity) {
  auto writer = Create("/f");
  Twists(0) = {Twist::Refuse(Error(Code::kNotPrimary, "no lease"))};
  choose_length = [](const proto::GrantRequest&, uint64_t) { return 6; };
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  EXPECT_EQ(Run(writer->Flush()).error().code, Code::kIntegrity);
}

TEST_F(WriteTest, ADiskErrorNamesTheServerThatHadIt) {
  auto writer = Create("/f");
  Error error(Code::kIoError, "write failed");
  error.server = 0x102;
  Twists(0) = {Twist::Refuse(error, 2)};
  const std::string bytes = Pattern(2 * kMiB);
  ASSERT_TRUE(Run(WriteAll(writer.get(), bytes, kMiB)));
  ASSERT_TRUE(Run(writer->Close()));
  ASSERT_EQ(Grants().size(), 1u);
  EXPECT_THAT(Grants()[0].failed_servers(), ElementsAre(0x102));
  EXPECT_EQ(file("/f").chunks[0].replicas_size(), 2);
  EXPECT_EQ(Stored("/f"), bytes);
  const auto chunks = Asked<proto::AddChunkRequest>(master, proto::ADD_CHUNK);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_THAT(chunks[1].exclude_servers(), ElementsAre(0x102)) << "the next chunk avoids it";
}

TEST_F(WriteTest, ASilentPrimaryIsNamed) {
  auto writer = Create("/f");
  Twists(0) = {Twist::Silence()};
  chunkservers[0]->script.always[proto::HELLO] = Twist::Silence();
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Close()));
  ASSERT_EQ(Grants().size(), 1u);
  EXPECT_THAT(Grants()[0].failed_servers(), ElementsAre(0x100));
  EXPECT_EQ(Stored("/f"), "hello");
}

TEST_F(WriteTest, APrimaryThatAnswersIsNotBlamedForSilenceBehindIt) {
  auto writer = Create("/f");
  Twists(0) = {Twist::Silence(1)};
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Close()));
  ASSERT_EQ(Grants().size(), 1u);
  EXPECT_THAT(Grants()[0].failed_servers(), IsEmpty());
  EXPECT_EQ(Stored("/f"), "hello");
}

TEST_F(WriteTest, APrimaryThatDiesCostsNoBytes) {
  chunk_size = 8 * kMiB;
  auto writer = Create("/f");
  const std::string bytes = Pattern(6 * kMiB);
  auto written = Begin(WriteAll(writer.get(), bytes, kMiB));
  ASSERT_TRUE(world.RunUntil([&] { return Packets(0).size() >= 2; }));
  server_nodes[0]->Crash(sim::Node::Death::kProcess);
  // The master waits for the old lease, then leaves the dead server out.
  Error wait(Code::kWaitingFor, "the old primary's lease");
  wait.retry_after_ms = 5000;
  master.twists[proto::GRANT] = {Twist::Refuse(wait), Twist::Refuse(wait)};
  file("/f").chunks[0].mutable_replicas()->DeleteSubrange(0, 1);
  const Nanos before = world.now();
  ASSERT_TRUE(Await(written));
  ASSERT_TRUE(**written) << (*written)->error().ToString();
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(Stored("/f"), bytes);
  EXPECT_GE(world.now() - before, 10s) << "retry_after is heard";
  const auto grants = Grants();
  ASSERT_EQ(grants.size(), 3u);
  EXPECT_EQ(grants[0].mutation().sequence(), grants[2].mutation().sequence()) << "one attempt, one mutation";
  EXPECT_THAT(grants[0].failed_servers(), IsEmpty()) << "a broken line names nobody (D18)";
}

TEST_F(WriteTest, ASupersededAttemptIsAskedForAnew) {
  auto writer = Create("/f");
  Twists(0) = {Twist::Refuse(Error(Code::kReplicaBehind, "missed a grant"))};
  master.twists[proto::GRANT] = {Twist::Refuse(Error(Code::kSuperseded, "newer attempt"))};
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Close()));
  const auto grants = Grants();
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_NE(grants[0].mutation().sequence(), grants[1].mutation().sequence());
}

TEST_F(WriteTest, ForgivesWhenTooFewAreLeft) {
  auto writer = Create("/f");
  Error error(Code::kIoError, "write failed");
  error.server = 0x101;
  Twists(0) = {Twist::Refuse(error)};
  master.twists[proto::GRANT] = {Twist::Refuse(Error(Code::kNotEnoughReplicas, "1 of 2"))};
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Close()));
  const auto grants = Grants();
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_THAT(grants[0].failed_servers(), ElementsAre(0x101));
  EXPECT_THAT(grants[1].failed_servers(), IsEmpty());
}

TEST_F(WriteTest, EndlessFailureEndsWithItsReason) {
  auto writer = Create("/f");
  chunkservers[0]->script.always[proto::WRITE_PACKET] = Twist::Refuse(Error(Code::kNotPrimary, "no lease here"));
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  const Nanos before = world.now();
  auto flushed = Run(writer->Flush());
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, Code::kNotPrimary);
  EXPECT_THAT(flushed.error().message, HasSubstr("/f"));
  EXPECT_LT(world.now() - before, 120s);
}

// ---- fencing ---------------------------------------------------------------------------------------

TEST_F(WriteTest, StaleIsFinal) {
  for (const Code code : {Code::kStaleGeneration, Code::kStaleEpoch}) {
    auto writer = Create("/f");
    Twists(0) = {Twist::Refuse(Error(code, "overtaken").WithTokens(1, 2).WithHolder("bob"))};
    ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
    auto flushed = Run(writer->Flush());
    ASSERT_FALSE(flushed);
    EXPECT_EQ(flushed.error().code, code);
    EXPECT_EQ(flushed.error().mark, 2u);
    EXPECT_EQ(flushed.error().holder, "bob");
    EXPECT_EQ(Run(writer->Write(Buffer::Copy("x"))).error().code, code);
    EXPECT_EQ(Run(writer->Close()).error().code, code);
  }
  EXPECT_THAT(Grants(), IsEmpty());
}

TEST_F(WriteTest, AStaleVersionIsForTheMasterToJudge) {
  // An attempt of the master raised the marks and was never committed: nobody took the file.
  auto writer = Create("/f");
  Twists(0) = {Twist::Refuse(Error(Code::kStaleVersion, "overtaken").WithTokens(1, 2))};
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Grants().size(), 1u);
  EXPECT_EQ(Stored("/f"), "hello");
  // Somebody did, and the master says so.
  auto other = Create("/g");
  Twists(0) = {Twist::Refuse(Error(Code::kStaleVersion, "overtaken").WithTokens(1, 2))};
  master.twists[proto::GRANT] = {Twist::Refuse(Error(Code::kStaleGeneration, "taken over").WithHolder("bob"))};
  ASSERT_TRUE(Run(WriteAll(other.get(), "hello", 5)));
  auto closed = Run(other->Close());
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::kStaleGeneration);
}

TEST_F(WriteTest, TheSessionIsRenewedAtAThirdOfItsLimit) {
  soft_limit_ms = 6000;
  auto writer = Create("/f");
  world.RunFor(21s);
  EXPECT_GE(Count(proto::RENEW), 9u);
  EXPECT_LE(Count(proto::RENEW), 11u);
  ASSERT_TRUE(Run(writer->Close()));
  const size_t renewed = Count(proto::RENEW);
  world.RunFor(1min);
  EXPECT_EQ(Count(proto::RENEW), renewed) << "a closed session is not renewed";
}

TEST_F(WriteTest, ALostSessionFences) {
  soft_limit_ms = 6000;
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  const uint64_t generation = file("/f").status.generation();
  lost_inodes = {file("/f").status.inode()};
  file("/f").status.set_generation(generation + 5);
  file("/f").status.set_holder("00000000000000aa");
  world.RunFor(5s);
  auto written = Run(writer->Write(Buffer::Copy("x")));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kStaleGeneration);
  EXPECT_EQ(written.error().token, generation);
  EXPECT_EQ(written.error().mark, generation + 5);
  EXPECT_EQ(written.error().holder, "00000000000000aa");
  EXPECT_THAT(written.error().message, HasSubstr("/f"));
  EXPECT_THAT(written.error().next_step, HasSubstr("look at it"));
}

TEST_F(WriteTest, ALostSessionOfARemovedFileSaysSo) {
  soft_limit_ms = 6000;
  auto writer = Create("/f");
  lost_inodes = {file("/f").status.inode()};
  master.always[proto::GET_FILE] = Twist::Refuse(Error(Code::kNotFound, "no such inode"));
  world.RunFor(5s);
  auto written = Run(writer->Write(Buffer::Copy("x")));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kStaleGeneration);
  EXPECT_THAT(written.error().next_step, HasSubstr("the file was removed"));
}

TEST_F(WriteTest, ALostSessionIsReportedAlsoWhenNobodySaysWhoHasIt) {
  soft_limit_ms = 6000;
  auto writer = Create("/f");
  lost_inodes = {file("/f").status.inode()};
  master.always[proto::GET_FILE] = Twist::Silence();
  world.RunFor(5s);
  auto written = Run(writer->Write(Buffer::Copy("x")));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kStaleGeneration);
}

TEST_F(WriteTest, AReplicasRefusalOfAnOldWriterSaysWhoHasTheFile) {
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Flush()));
  const uint64_t generation = file("/f").status.generation();
  file("/f").status.set_holder("00000000000000aa");
  Twists(0) = {Twist::Refuse(Error(Code::kStaleGeneration, "old writer").WithTokens(generation, generation + 1))};
  ASSERT_TRUE(Run(WriteAll(writer.get(), "x", 1)));
  auto closed = Run(writer->Close());
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::kStaleGeneration);
  EXPECT_EQ(closed.error().mark, generation + 1);
  EXPECT_EQ(closed.error().holder, "00000000000000aa");
}

TEST_F(WriteTest, ASilentMasterDoesNotEndASession) {
  soft_limit_ms = 6000;
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  master_node.Crash(sim::Node::Death::kProcess);
  world.RunFor(40s);
  StartMaster();
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(Stored("/f"), "hello");
}

TEST_F(WriteTest, ADestroyedWriterStops) {
  soft_limit_ms = 6000;
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  writer.reset();
  const size_t renewed = Count(proto::RENEW);
  world.RunFor(1min);
  EXPECT_EQ(Count(proto::RENEW), renewed);
  EXPECT_TRUE(file("/f").status.open());
}

// ---- the master ------------------------------------------------------------------------------------

TEST_F(WriteTest, EveryLostAnswerIsAskedForWithTheSameMutation) {
  for (const auto method : {proto::CREATE, proto::ADD_CHUNK, proto::COMMIT_SEAL}) {
    master.twists[method] = {Twist::LoseAnswer()};
  }
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(by_inode.size(), 1u);
  EXPECT_EQ(file("/f").chunks.size(), 1u);
  EXPECT_EQ(Stored("/f"), "hello");
  const auto created = Asked<proto::CreateRequest>(master, proto::CREATE);
  ASSERT_EQ(created.size(), 2u);
  EXPECT_EQ(created[0].mutation().sequence(), created[1].mutation().sequence());
}

TEST_F(WriteTest, AMasterThatRestartsInMidWriteIsWaitedFor) {
  auto writer = Create("/f");
  const std::string bytes = Pattern(5 * kMiB);
  auto written = Begin(WriteAll(writer.get(), bytes, kMiB));
  ASSERT_TRUE(world.RunUntil([&] { return file("/f").chunks.size() == 2; }));
  master_node.Crash(sim::Node::Death::kProcess);
  world.RunFor(20s);
  StartMaster();
  ASSERT_TRUE(Await(written));
  ASSERT_TRUE(**written);
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Stored("/f"), bytes);
}

TEST_F(WriteTest, NoServerToPlaceOnIsSaidSoon) {
  master.always[proto::ADD_CHUNK] = Twist::Refuse(Error(Code::kNotEnoughReplicas, "0 live chunkservers"));
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  const Nanos before = world.now();
  auto closed = Run(writer->Close());
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::kNotEnoughReplicas);
  EXPECT_THAT(closed.error().message, HasSubstr("0 live chunkservers"));
  EXPECT_LT(world.now() - before, 15s);
}

TEST_F(WriteTest, AServerThatCouldNotCreateAReplicaIsLeftOut) {
  Error error(Code::kNoSpace, "disk full");
  error.server = 0x101;
  master.twists[proto::ADD_CHUNK] = {Twist::Refuse(error)};
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Close()));
  const auto chunks = Asked<proto::AddChunkRequest>(master, proto::ADD_CHUNK);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_THAT(chunks[1].exclude_servers(), ElementsAre(0x101));
  EXPECT_EQ(file("/f").chunks[0].replicas_size(), 2);
}

TEST_F(WriteTest, ASealThatWasOvertakenIsDoneAgainUnderANewVersion) {
  master.twists[proto::COMMIT_SEAL] = {Twist::Refuse(Error(Code::kSuperseded, "newer attempt"))};
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  auto status = Run(writer->Close());
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(Grants().size(), 1u);
  EXPECT_EQ(Stored("/f"), "hello");
}

TEST_F(WriteTest, ASealThatLeavesAMemberOutIsNotCommitted) {
  chunkservers[0]->forgets_a_member = true;
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Grants().size(), 1u);
  for (const auto& commit : Asked<proto::CommitSealRequest>(master, proto::COMMIT_SEAL)) {
    EXPECT_EQ(commit.sealed_servers_size(), 3);
  }
}

TEST_F(WriteTest, AbandonGivesUpAtOnce) {
  chunkservers[0]->script.always[proto::WRITE_PACKET] = Twist::Silence();
  auto writer = Create("/f");
  ASSERT_TRUE(Run(WriteAll(writer.get(), "hello", 5)));
  auto flushed = Begin(writer->Flush());
  world.RunFor(1s);
  const Nanos before = world.now();
  ASSERT_TRUE(Run(writer->Abandon()));
  EXPECT_LT(world.now() - before, 1s);
  EXPECT_TRUE(file("/f").removed);
  ASSERT_TRUE(Await(flushed));
  EXPECT_FALSE(**flushed);
}

TEST_F(WriteTest, ClosedIsClosed) {
  auto writer = Create("/f");
  ASSERT_TRUE(Run(writer->Close()));
  EXPECT_EQ(Run(writer->Write(Buffer::Copy("x"))).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(Run(writer->Close())) << "a second close says the same";
  EXPECT_EQ(Run(writer->Abandon()).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace picket
