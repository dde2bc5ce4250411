// Records whose answers are lost, whose requests come late, and whose chunk is sealed meanwhile.
#include "client/core/record_appender.h"
#include "client/core/record_reader.h"
#include "tests/sim/scene.h"

namespace picket::sim {
namespace {

constexpr uint64_t kChunkSize = 1 << 20;

class RecordScene : public Scene {
 protected:
  std::unique_ptr<RecordAppender> Open(FileSystem* fs) {
    AppendFileOptions options;
    options.made.chunk_size = kChunkSize;
    auto appender = Do(fs->AppendRecords("/r", options));
    EXPECT_TRUE(appender) << appender.error().ToString();
    return appender ? std::move(*appender) : nullptr;
  }
  std::unique_ptr<FileSystem> AnotherClient() {
    FileSystemOptions options;
    options.master = cluster_.master_endpoint();
    return std::make_unique<FileSystem>(me(), options);
  }
  uint64_t Append(RecordAppender& appender, std::string bytes) {
    auto offset = Do(appender.Append(Buffer::Copy(bytes), false));
    EXPECT_TRUE(offset) << offset.error().ToString();
    return offset.value_or(UINT64_MAX);
  }
  static Task<> AppendLater(RecordAppender* appender, std::string bytes, std::optional<Result<uint64_t>>* into) {
    auto offset = co_await appender->Append(Buffer::Copy(bytes), false);
    *into = std::move(offset);
  }
  // The offsets at which those bytes are.
  std::vector<uint64_t> Find(const std::string& bytes) {
    std::vector<uint64_t> offsets;
    auto reader = Do(fs_->ReadRecords("/r"));
    EXPECT_TRUE(reader) << reader.error().ToString();
    while (reader) {
      auto record = Do((*reader)->Next());
      EXPECT_TRUE(record) << record.error().ToString();
      if (!record || !*record) break;
      if ((*record)->bytes.view() == bytes) offsets.push_back((*record)->offset);
    }
    return offsets;
  }
};

using Offsets = std::vector<uint64_t>;

TEST_F(RecordScene, ALostAnswerCostsNoSecondRecord) {
  auto appender = Open(fs_.get());
  Append(*appender, "one");
  LoseAnswers(proto::APPEND_RECORD, "");
  const uint64_t two = Append(*appender, "two");
  ASSERT_TRUE(Do(appender->Close()));
  EXPECT_EQ(Find("two"), Offsets{two});
}

TEST_F(RecordScene, ALostRequestCostsNoRecord) {
  auto appender = Open(fs_.get());
  LoseRequests(proto::APPEND_RECORD, "");
  const uint64_t one = Append(*appender, "one");
  ASSERT_TRUE(Do(appender->Close()));
  EXPECT_EQ(Find("one"), Offsets{one});
}

TEST_F(RecordScene, ARecordOutlivesTheRestartOfAllServers) {
  auto appender = Open(fs_.get());
  const uint64_t one = Append(*appender, "one");
  LoseAnswers(proto::APPEND_RECORD, "");
  for (Node* server : cluster_.servers()) server->Crash(Node::Death::kProcess);
  const uint64_t two = Append(*appender, "two");
  ASSERT_TRUE(Do(appender->Close()));
  EXPECT_EQ(Find("one"), Offsets{one});
  EXPECT_EQ(Find("two"), Offsets{two});
}

// F15 a, from end to end: applied, the answer lost, and another appender fills and seals the chunk.
TEST_F(RecordScene, F15aARecordIsLookedForInTheChunkOfItsFirstAttempt) {
  auto appender = Open(fs_.get());
  const uint64_t one = Append(*appender, "one");
  LoseAnswers(proto::APPEND_RECORD, "");
  std::optional<Result<uint64_t>> two;
  me().Spawn(AppendLater(appender.get(), "two", &two));
  world_.RunFor(1s);
  ASSERT_FALSE(two);
  auto other_client = AnotherClient();
  auto other = Open(other_client.get());
  uint64_t last = 0;
  for (int n = 0; n < 5; ++n) last = Append(*other, std::string(MaxRecord(kChunkSize), static_cast<char>('a' + n)));
  EXPECT_GE(last, kChunkSize);
  world_.RunUntil([&] { return two.has_value(); }, 5min);
  ASSERT_TRUE(two && *two) << (two ? two->error().ToString() : "it does not end");
  EXPECT_LT(**two, kChunkSize);
  EXPECT_EQ(Find("two"), Offsets{**two});
  EXPECT_EQ(Find("one"), Offsets{one});
  ASSERT_TRUE(Do(other->Close()));
  ASSERT_TRUE(Do(appender->Close()));
}

// F15 b, from end to end: the primary alone has the record when it vanishes, so the next set takes it away.
TEST_F(RecordScene, F15bARecordThatAFailOverTookAwayIsAppendedAgain) {
  auto appender = Open(fs_.get());
  const uint64_t one = Append(*appender, "one");
  const Set set = SetOf(Chunk(0, "/r"));
  for (size_t i : set.others) LoseRequests(proto::WRITE_PACKET, server(i).name(), 1000);
  std::optional<Result<uint64_t>> two;
  me().Spawn(AppendLater(appender.get(), "two", &two));
  world_.RunFor(50ms);
  ASSERT_FALSE(two);
  const ChunkId chunk(Chunk(0, "/r").chunk());
  ASSERT_GT(Replica(set.primary, chunk).replica().length(), Replica(set.others[0], chunk).replica().length());
  Away(set.primary, 5min);
  NothingIsLostAnyMore();
  ASSERT_TRUE(world_.RunUntil([&] { return two.has_value(); }, 5min));
  ASSERT_TRUE(*two) << two->error().ToString();
  const uint64_t three = Append(*appender, "three");
  ASSERT_TRUE(Do(appender->Close()));
  world_.RunFor(6min);  // the old primary is back
  EXPECT_EQ(Find("one"), Offsets{one});
  EXPECT_EQ(Find("two"), Offsets{**two});
  EXPECT_EQ(Find("three"), Offsets{three});
}

TEST_F(RecordScene, ALateDuplicateAppendsNothing) {
  auto appender = Open(fs_.get());
  Capture(proto::APPEND_RECORD);
  const uint64_t one = Append(*appender, "one");
  auto sent = TakeCaptured(proto::APPEND_RECORD);
  ASSERT_EQ(sent.size(), 1u);
  Append(*appender, "two");
  auto again = SendAgain(sent[0]);
  ASSERT_TRUE(again) << again.error().ToString();
  proto::AppendRecordResponse answer;
  ASSERT_TRUE(answer.ParseFromString(again->body));
  EXPECT_TRUE(answer.was_applied());
  EXPECT_EQ(answer.offset(), one);
  ASSERT_TRUE(Do(appender->Close()));
  EXPECT_FALSE(SendAgain(sent[0]));
  EXPECT_EQ(Find("one"), Offsets{one});
}

TEST_F(RecordScene, TheLastAppenderClosesTheFileAndTheNextGoesOnInItsChunk) {
  auto first = Open(fs_.get());
  auto other_client = AnotherClient();
  auto second = Open(other_client.get());
  Append(*first, "one");
  Append(*second, "two");
  ASSERT_TRUE(Do(first->Close()));
  EXPECT_TRUE(Do(fs_->Stat("/r"))->open());
  const uint64_t three = Append(*second, "three");
  ASSERT_TRUE(Do(second->Close()));
  EXPECT_FALSE(Do(fs_->Stat("/r"))->open());
  auto again = Open(fs_.get());
  const uint64_t four = Append(*again, "four");
  EXPECT_EQ(four, three + kRecordHeaderSize + 5);
  ASSERT_TRUE(Do(again->Close()));
  EXPECT_EQ(Do(fs_->Stat("/r"))->chunk_count(), 1u);
  EXPECT_EQ(Find("four"), Offsets{four});
}

TEST_F(RecordScene, AFileOfOtherBytesTakesNoRecords) {
  Create({.chunk_size = kChunkSize}, "/r");
  Write(0, 5000);
  ASSERT_TRUE(Do(writer_->Close()));
  auto appender = Open(fs_.get());
  auto refused = Do(appender->Append(Buffer::Copy("one"), false));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
}

}  // namespace
}  // namespace picket::sim
