// Registration, reports and liveness of servers, and a lost history, on a master with fake chunkservers.
#include "tests/unit/master/chunk_half.h"

namespace picket::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;
using Act = FakeDisk::Act;

TEST_F(ChunkTest, ServersBecomeSuspectThenDeadAndComeBack) {
  world.Cut(server_node(0), master_node);
  world.RunFor(20s);
  auto state = [&] { return std::string(Report().servers(0).state()); };
  EXPECT_EQ(state(), "suspect");
  world.RunFor(50s);
  EXPECT_EQ(state(), "dead");
  world.HealAll();
  world.RunFor(30s);
  EXPECT_EQ(state(), "live");
}

TEST_F(ChunkTest, F12HistoryLostStopsTheMaster) {
  WriteFile("/f", "hello");
  // The server has seen more of epoch 1 than this master's disk knows.
  server_node(0).Crash(sim::Node::Death::kProcess);
  disk(0).mark.set_revision(1'000'000);
  StartServer(0);
  world.RunFor(5s);
  EXPECT_THAT(Report().state(), HasSubstr("HISTORY_LOST"));
  EXPECT_EQ(Report().servers(0).state(), "live");  // its session of before has not run out
  proto::CreateRequest create;
  Identify(create.mutable_mutation());
  create.set_path("/g");
  create.set_holder(kWriter);
  EXPECT_EQ(Call<proto::CreateResponse>(proto::CREATE, create).error().code, Code::kHistoryLost);
  EXPECT_EQ(AddChunk(file, 1).error().code, Code::kHistoryLost);
  // What is there can still be read.
  EXPECT_EQ(GetFile("/f")->chunks_size(), 1);
}

TEST_F(ChunkTest, StrangersAreRefused) {
  const auto begin = [&](auto change) {
    proto::RegisterBeginRequest r;
    r.set_cluster(fleet.secret.cluster);
    r.set_server(55);
    r.set_nonce(std::string(kNonceBytes, 'n'));
    r.set_protocol(1);
    change(&r);
    return Call<proto::RegisterBeginResponse>(proto::REGISTER_BEGIN, r);
  };
  EXPECT_EQ(begin([](auto* r) { r->set_cluster("0123456789abcdef"); }).error().code, Code::kWrongCluster);
  EXPECT_EQ(begin([](auto* r) { r->set_protocol(2); }).error().code, Code::kUnsupported);
  EXPECT_EQ(begin([](auto* r) { r->set_nonce("short"); }).error().code, Code::kInvalidArgument);
  EXPECT_EQ(begin([](auto* r) { r->set_server(0); }).error().code, Code::kInvalidArgument);

  auto challenge = begin([](auto*) {});
  ASSERT_TRUE(challenge);
  EXPECT_TRUE(VerifyMasterProof(fleet.secret, std::string(kNonceBytes, 'n'), challenge->challenge(), ServerId(55),
                                challenge->proof()));
  proto::RegisterCompleteRequest complete;
  complete.set_server(55);
  complete.set_incarnation(1);
  complete.set_host("node-9");
  complete.set_port(1);
  complete.set_proof("guess");
  EXPECT_EQ(Call<proto::RegisterCompleteResponse>(proto::REGISTER_COMPLETE, complete).error().code,
            Code::kPermissionDenied);
  // A challenge is answered once: the right proof comes too late.
  complete.set_proof(ChunkserverProof(fleet.secret, challenge->challenge(), std::string(kNonceBytes, 'n'),
                                      ServerId(55), Incarnation(1)));
  EXPECT_EQ(Call<proto::RegisterCompleteResponse>(proto::REGISTER_COMPLETE, complete).error().code,
            Code::kPermissionDenied);
  EXPECT_EQ(Report().servers_size(), 3);
}

TEST_F(ChunkTest, OlderBootOfAServerIsRefused) {
  server_node(0).Crash(sim::Node::Death::kProcess);
  disk(0).incarnation = 0;
  // Boot 1 has registered before; boot 0 + 1 is the same, so begin at one below.
  StartServer(0);
  world.RunFor(5s);
  EXPECT_EQ(Report().servers(0).hop().incarnation(), 1u);
  server_node(0).Crash(sim::Node::Death::kProcess);
  StartServer(0);
  world.RunFor(5s);
  EXPECT_EQ(Report().servers(0).hop().incarnation(), 2u);
  const uint64_t session = fake(0).session();
  EXPECT_NE(session, 0u);
  server_node(0).Crash(sim::Node::Death::kProcess);
  disk(0).incarnation = 0;
  StartServer(0);
  world.RunFor(5s);
  EXPECT_EQ(Report().servers(0).hop().incarnation(), 2u);
  EXPECT_EQ(fake(0).session(), 0u);
}

TEST_F(ChunkTest, TwinOfALivingServerIsRefused) {
  disk(0).host = "node-9";
  auto twin = sim::RunTask(world, server_node(0), fake(0).Register());
  ASSERT_TRUE(twin);
  ASSERT_FALSE(*twin);
  EXPECT_EQ(twin->error().code, Code::kConflict);
  EXPECT_EQ(Report().servers(0).hop().host(), server_node(0).host());
}

TEST_F(ChunkTest, ReportsComeInPagesAndInOrder) {
  world.RunFor(1s);
  proto::ChunkReportRequest page;
  page.set_server(disk(0).id.value);
  page.set_session(fake(0).session());
  page.set_page(5);
  EXPECT_EQ(Call<proto::ChunkReportResponse>(proto::CHUNK_REPORT, page).error().code, Code::kOutOfOrder);
  page.set_page(1);  // after the one that the registration sent
  EXPECT_TRUE(Call<proto::ChunkReportResponse>(proto::CHUNK_REPORT, page));
  EXPECT_TRUE(Call<proto::ChunkReportResponse>(proto::CHUNK_REPORT, page));  // again: its answer was lost
  page.set_session(page.session() + 1000);
  EXPECT_EQ(Call<proto::ChunkReportResponse>(proto::CHUNK_REPORT, page).error().code, Code::kNotFound);
}

TEST_F(ChunkTest, LargeReportIsTakenInSlices) {
  for (uint64_t chunk = 1; chunk <= 2000; ++chunk) {
    FakeReplica orphan;
    orphan.version = Version(1, 1).value;
    orphan.instance = chunk;
    disk(0).replicas[chunk] = orphan;
  }
  const proto::WriteGrant grant = WriteFile("/f", "hello");
  server_node(0).Crash(sim::Node::Death::kProcess);
  StartServer(0);
  world.RunFor(5s);
  const proto::ChunkLocation seen = Chunk(grant.token().chunk());
  ASSERT_EQ(seen.replicas_size(), 3);
  for (const auto& r : seen.replicas()) EXPECT_TRUE(r.counted());
}

TEST_F(ChunkTest, HeartbeatOfAnotherSessionRegistersAgain) {
  const uint64_t before = fake(0).session();
  RestartMaster();
  world.RunFor(10s);
  EXPECT_NE(fake(0).session(), before);
  EXPECT_EQ(Report().servers_size(), 3);
}

TEST_F(ChunkTest, HelloSaysWho) {
  auto hello = Call<proto::HelloResponse>(proto::HELLO, proto::HelloRequest());
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->role(), "master");
  EXPECT_EQ(hello->cluster(), fleet.secret.cluster);
  EXPECT_EQ(hello->epoch().number(), 1u);
  RestartMaster();
  EXPECT_EQ(Call<proto::HelloResponse>(proto::HELLO, proto::HelloRequest())->epoch().number(), 2u);
}

TEST_F(ChunkTest, DescribeAndGetFileRefuseWhatIsNotThere) {
  proto::DescribeChunkRequest describe;
  describe.set_chunk(1);
  EXPECT_EQ(Call<proto::DescribeChunkResponse>(proto::DESCRIBE_CHUNK, describe).error().code, Code::kNotFound);
  EXPECT_EQ(GetFile("/nothing").error().code, Code::kNotFound);
  EXPECT_EQ(GetFile("/").error().code, Code::kIsDirectory);
  EXPECT_EQ(Call<proto::GetFileResponse>(proto::GET_FILE, proto::GetFileRequest()).error().code,
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace picket::test
