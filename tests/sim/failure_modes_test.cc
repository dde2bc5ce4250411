// The ways in which fencing is commonly got wrong, each as a scene with the real roles that such a system would
// not survive. docs/TESTING.md has the whole list; those that need no cluster are with the units.
#include <algorithm>
#include <ranges>

#include "proto/data.pb.h"
#include "tests/sim/scene.h"

namespace picket::sim {
namespace {

class FailureMode : public Scene {
 protected:
  void SetUp() override { Capture(proto::WRITE_PACKET); }

  // The newest packet that a client sent, with bytes.
  proto::WritePacketRequest NewestPacket(std::string* payload) {
    proto::WritePacketRequest newest;
    for (const Captured& packet : TakeCaptured(proto::WRITE_PACKET)) {
      proto::WritePacketRequest request;
      EXPECT_TRUE(request.ParseFromString(packet.body));
      if (request.forwarded() || packet.payload.empty()) continue;
      newest = request;
      *payload = packet.payload;
    }
    return newest;
  }
  // To another server, or another boot of the same one.
  Code CodeOfPacket(proto::WritePacketRequest request, const std::string& payload, size_t to) {
    request.set_target_incarnation(Replica(to, ChunkId(request.token().chunk())).incarnation());
    return CodeOf(SendAgain({proto::WRITE_PACKET, request.SerializeAsString(), payload, server(to).name()}));
  }
  Code CodeOfRead(size_t from, const proto::ChunkLocation& chunk, uint64_t version) {
    proto::ReadRequest request;
    request.set_chunk(chunk.chunk());
    request.set_version(version);
    request.set_length(1);
    return CodeOf(SendAgain({proto::READ, request.SerializeAsString(), "", server(from).name()}));
  }
  static Code CodeOf(const Result<RpcReply>& reply) { return reply ? Code::kOk : reply.error().code; }

  // A new version of the set, which goes on with `size` bytes.
  void GoOnUnderANewVersion(uint64_t offset, size_t size) {
    const Version before(Chunk().version());
    BreakConnections(me());
    WriteAndFlush(offset, size);
    ASSERT_GT(Version(Chunk().version()), before);
  }
  void AwaitRegistered() {
    ASSERT_TRUE(world_.RunUntil([&] { return cluster_.AllRegistered(); }, 2min));
  }
};

// A check for equality tells the old writer and the one who is ahead the same, and somebody has to guess. A mark
// knows which of the two is old: the old token is dead for good, the replica that is behind has to catch up, and
// no message but the master's order raises it.
TEST_F(FailureMode, EqualityCheckInsteadOfAMark) {
  Create();
  WriteAndFlush(0, 1000);
  std::string old_bytes, new_bytes;
  const proto::WritePacketRequest old_packet = NewestPacket(&old_bytes);
  const size_t behind = SetOf(Chunk()).others[0];
  GrantWithout(behind);
  WriteAndFlush(1000, 500);
  NothingIsLostAnyMore();
  const proto::WritePacketRequest new_packet = NewestPacket(&new_bytes);
  const proto::ChunkLocation chunk = Chunk();
  for (size_t i : SetOf(chunk).others) EXPECT_EQ(CodeOfPacket(old_packet, old_bytes, i), Code::kStaleVersion);
  EXPECT_EQ(CodeOfPacket(old_packet, old_bytes, SetOf(chunk).primary), Code::kStaleVersion);
  EXPECT_EQ(CodeOfPacket(new_packet, new_bytes, behind), Code::kReplicaBehind);
  EXPECT_EQ(Replica(behind, ChunkId(chunk.chunk())).replica().version(), old_packet.token().version());
  ASSERT_TRUE(Close());
  ExpectFile(1500);
}

// Power is lost everywhere. Who remembers the newest token in memory only would take the old one afterwards, or
// give the same number out twice.
TEST_F(FailureMode, MarkOrCounterLostAtRestart) {
  Create();
  WriteAndFlush(0, 1000);
  std::string bytes;
  const proto::WritePacketRequest old_packet = NewestPacket(&bytes);
  GoOnUnderANewVersion(1000, 500);
  ASSERT_TRUE(Do(writer_->Sync()));
  const Version newest(Chunk().minted());
  for (size_t i = 0; i < cluster_.servers().size(); ++i) server(i).Crash(Node::Death::kPower);
  master().Crash(Node::Death::kPower);
  AwaitRegistered();
  for (size_t i = 0; i < cluster_.servers().size(); ++i) {
    EXPECT_EQ(CodeOfPacket(old_packet, bytes, i), Code::kStaleVersion) << i;
  }
  GoOnUnderANewVersion(1500, 500);
  EXPECT_GT(Version(Chunk().version()), newest);
  ASSERT_TRUE(Close());
  ExpectFile(2000);
}

// Clocks go back, jump ahead and differ: no token comes from one.
TEST_F(FailureMode, TimeStampsAsTokens) {
  Create();
  WriteAndFlush(0, 1000);
  const Generation first(writer_->status().generation());
  const Version version(Chunk().version());
  master().JumpWall(-48h);
  server(0).JumpWall(24h);
  server(1).JumpWall(-24h);
  GoOnUnderANewVersion(1000, 500);
  ASSERT_TRUE(Close());
  master().Crash(Node::Death::kProcess);
  master().JumpWall(-48h);
  AwaitRegistered();
  Append();
  WriteAndFlush(1500, 500);
  EXPECT_GT(Generation(writer_->status().generation()), first);
  EXPECT_GT(Version(Chunk().version()), version);
  ASSERT_TRUE(Close());
  ExpectFile(2000);
}

// The refusal of one step is the end of the handle: no later call may look like success.
TEST_F(FailureMode, RefusalSwallowed) {
  Create();
  WriteAndFlush(0, 1000);
  Recover();
  Write(1000, 500);
  for (int call = 0; call < 2; ++call) {
    const Status flushed = Do(writer_->Flush());
    ASSERT_FALSE(flushed);
    EXPECT_EQ(flushed.error().code, Code::kStaleGeneration) << flushed.error().ToString();
  }
  EXPECT_FALSE(Do(writer_->Write(PatternBuffer(1, 1500, 10))));
  const Status closed = Close();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::kStaleGeneration) << closed.error().ToString();
  ExpectFile(1000);
}

// A replica that was left behind has whole, verified, old bytes; a reader with an old version would see them as
// they were. Reads show their version too.
TEST_F(FailureMode, ReadThatSkipsTheToken) {
  Create();
  WriteAndFlush(0, 1000);
  const uint64_t old_version = Chunk().version();
  const size_t behind = SetOf(Chunk()).others[0];
  GrantWithout(behind);
  WriteAndFlush(1000, 500);
  NothingIsLostAnyMore();
  const proto::ChunkLocation chunk = Chunk();
  EXPECT_EQ(CodeOfRead(behind, chunk, chunk.version()), Code::kReplicaBehind);
  EXPECT_EQ(CodeOfRead(SetOf(chunk).primary, chunk, chunk.version()), Code::kOk);
  EXPECT_EQ(CodeOfRead(SetOf(chunk).primary, chunk, old_version), Code::kStaleVersion);
  EXPECT_EQ(ReadableBytes(), 1500u);
  ASSERT_TRUE(Close());
  ExpectFile(1500);
}

// A number was minted and no replica heard of it. It is skipped, and nobody waits for it.
TEST_F(FailureMode, VersionBumpThatReachedNobody) {
  Create();
  WriteAndFlush(0, 1000);
  const Version before(Chunk().version());
  LoseRequests(proto::ADVANCE_VERSION, "", 1000);
  BreakConnections(me());
  BeginFlush(1000, 500);
  ASSERT_TRUE(world_.RunUntil([&] { return Version(Chunk().minted()) > before; }, 1min));
  EXPECT_EQ(Version(Chunk().version()), before);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(Version(Replica(i, ChunkId(Chunk().chunk())).replica().version()), before) << i;
  EXPECT_EQ(ReadableBytes(), 1000u);
  NothingIsLostAnyMore();
  AwaitFlush();
  EXPECT_GT(Version(Chunk().version()), before);
  ASSERT_TRUE(Close());
  ExpectFile(1500);
}

// Every replica raised its mark, and the master never heard of it: the set is still the old one in the record, and
// new in every mark. Readers go on, and the next attempt takes the marks up from where they are.
TEST_F(FailureMode, AnswerLostAfterTheBump) {
  Create();
  WriteAndFlush(0, 1000);
  const proto::ChunkLocation before = Chunk();
  LoseAnswers(proto::ADVANCE_VERSION, "", 1000);
  BreakConnections(me());
  BeginFlush(1000, 500);
  const auto raised = [&] {
    return std::ranges::all_of(std::views::iota(size_t{0}, size_t{3}), [&](size_t i) {
      return Replica(i, ChunkId(before.chunk())).replica().version() > before.version();
    });
  };
  ASSERT_TRUE(world_.RunUntil(raised, 1min));
  EXPECT_EQ(Chunk().version(), before.version());
  EXPECT_EQ(ReadableBytes(), 1000u);
  NothingIsLostAnyMore();
  AwaitFlush();
  EXPECT_GT(Chunk().version(), before.version());
  ASSERT_TRUE(Close());
  ExpectFile(1500);
}

}  // namespace
}  // namespace picket::sim
