// TRUNCATE, with a recovery that does to the metadata what the real one does.
#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

class TruncateTest : public MetadataTest {
 protected:
  static constexpr uint64_t kOther = kClient + 1;
  static constexpr uint64_t kSize = 1 << 20;
  // A closed file of two full chunks and one of 100 bytes.
  TruncateTest() {
    auto r = CreateRequestFor("/f");
    r.set_chunk_size(kSize);
    auto created = Call<proto::CreateResponse>(proto::CREATE, r);
    inode = created->status().inode();
    for (uint64_t length : {kSize, kSize, uint64_t{100}}) AddChunk(InodeId(inode), true, length);
    EXPECT_TRUE(Close(*created));
  }
  proto::TruncateRequest RequestFor(uint64_t length, uint64_t holder = kClient, std::string writer_id = "") {
    proto::TruncateRequest r;
    Identify(r.mutable_mutation());
    r.set_path("/f");
    r.set_length(length);
    r.set_holder(holder);
    r.set_writer_id(std::move(writer_id));
    return r;
  }
  Result<proto::TruncateResponse> Truncate(const proto::TruncateRequest& r) {
    return Call<proto::TruncateResponse>(proto::TRUNCATE, r);
  }
  bool AwaitRecovery(size_t begun) {
    return world.RunUntil([&] { return half().recoverer.begun >= begun; }, 10s);
  }
  uint64_t inode = 0;
};

TEST_F(TruncateTest, CutsAndCloses) {
  const auto before = *Stat("/f");
  auto cut = Truncate(RequestFor(kSize + 7));
  ASSERT_TRUE(cut) << cut.error().ToString();
  EXPECT_EQ(cut->status().length(), kSize + 7);
  EXPECT_EQ(cut->status().chunk_count(), 2u);
  EXPECT_FALSE(cut->status().open());
  EXPECT_GT(cut->status().mod_revision(), before.mod_revision());
  EXPECT_GT(cut->status().generation(), before.generation());
  EXPECT_EQ(Stat("/f")->SerializeAsString(), cut->status().SerializeAsString());
  auto empty = Truncate(RequestFor(0));
  ASSERT_TRUE(empty);
  EXPECT_EQ(Stat("/f")->length(), 0u);
  EXPECT_EQ(Stat("/f")->stored_bytes(), 0u);
}

TEST_F(TruncateTest, TheSameLengthIsSuccessAndALongerOneIsRefused) {
  const auto before = *Stat("/f");
  auto same = Truncate(RequestFor(2 * kSize + 100));
  ASSERT_TRUE(same);
  EXPECT_EQ(same->status().SerializeAsString(), before.SerializeAsString());
  auto longer = Truncate(RequestFor(2 * kSize + 101));
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, Code::kInvalidArgument);
  EXPECT_TRUE(longer.error().next_step.contains("write --offset"));
  EXPECT_EQ(Stat("/f")->SerializeAsString(), before.SerializeAsString());
  EXPECT_EQ(half().recoverer.begun, 0u);
}

TEST_F(TruncateTest, ChecksPathAndConditions) {
  auto r = RequestFor(5);
  r.set_path("/none");
  EXPECT_EQ(CodeOf(Truncate(r)), Code::kNotFound);
  r = RequestFor(5);
  r.set_path("/");
  EXPECT_EQ(CodeOf(Truncate(r)), Code::kIsDirectory);
  r = RequestFor(5, 0);
  EXPECT_EQ(CodeOf(Truncate(r)), Code::kInvalidArgument);
  r = RequestFor(5);
  r.mutable_conditions()->set_if_version(Stat("/f")->mod_revision() - 1);
  EXPECT_EQ(CodeOf(Truncate(r)), Code::kConflict);
  r = RequestFor(5);
  r.mutable_conditions()->set_if_version(Stat("/f")->mod_revision());
  EXPECT_TRUE(Truncate(r));
}

TEST_F(TruncateTest, AHeldFileIsTakenByTheRulesOfOpening) {
  auto writer = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther, "w"));
  ASSERT_TRUE(writer);
  auto refused = Truncate(RequestFor(5));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLeaseConflict);
  EXPECT_EQ(refused.error().holder, ToHex(kOther));
  EXPECT_EQ(Stat("/f")->generation(), writer->generation());
  auto own = Truncate(RequestFor(kSize, kClient, "w"));
  ASSERT_TRUE(own) << own.error().ToString();
  EXPECT_EQ(CodeOf(Close(AsCreated(*writer), kOther)), Code::kStaleGeneration);

  writer = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther));
  AddChunk(InodeId(inode), false);
  world.RunFor(61s);
  EXPECT_EQ(half().recoverer.begun, 1u);
  ASSERT_TRUE(Truncate(RequestFor(5)));
  EXPECT_EQ(half().recoverer.begun, 3u) << "the stalled writer's recovery, then the cut";
  EXPECT_EQ(Stat("/f")->length(), 5u);
}

// From the first batch on it is bound to happen: the requester is fenced too, and the master is the holder.
TEST_F(TruncateTest, IsInRecoveryFromItsFirstBatchOn) {
  half().recoverer.hold = true;
  auto cut = Begin<proto::TruncateResponse>(proto::TRUNCATE, RequestFor(5));
  ASSERT_TRUE(AwaitRecovery(1));
  const auto session = half().sessions.Find(InodeId(inode));
  ASSERT_TRUE(session);
  EXPECT_TRUE(session->recovering);
  EXPECT_EQ(session->stalled_holder, ClientId(kClient));
  EXPECT_EQ(half().names.Get(InodeId(inode))->inode.truncate_to(), 5u);
  EXPECT_EQ(Stat("/f")->length(), 2 * kSize + 100) << "the old content until the last batch";
  half().recoverer.hold = false;
  ASSERT_TRUE(world.RunUntil([&] { return cut->has_value(); }, 10s));
  EXPECT_TRUE(cut->value());
}

// The master dies in the middle; recovery goes on by itself and somebody appends. The retry cuts nothing.
TEST_F(TruncateTest, ARetryAcrossARestartCutsOnce) {
  keep_answers = true;
  half().recoverer.hold = true;
  const auto r = RequestFor(kSize);
  auto lost = Begin<proto::TruncateResponse>(proto::TRUNCATE, r);
  ASSERT_TRUE(AwaitRecovery(1));
  Restart();
  EXPECT_TRUE(half().sessions.Find(InodeId(inode))->recovering);
  auto opened = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kOther));  // awaits the end, as a scan would bring it
  ASSERT_TRUE(opened) << opened.error().ToString();
  EXPECT_EQ(opened->status().length(), kSize);
  AddChunk(InodeId(inode), true, 30);
  ASSERT_TRUE(Close(AsCreated(*opened), kOther));
  auto again = Truncate(r);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->status().length(), kSize + 30);
  EXPECT_EQ(Stat("/f")->length(), kSize + 30);
}

TEST_F(TruncateTest, ARetryAwaitsTheEnd) {
  half().recoverer.hold = true;
  const auto r = RequestFor(kSize);
  auto first = Begin<proto::TruncateResponse>(proto::TRUNCATE, r, 2s);
  world.RunFor(3s);
  ASSERT_TRUE(first->has_value());
  EXPECT_EQ(CodeOf(**first), Code::kWaitingFor);
  auto again = Begin<proto::TruncateResponse>(proto::TRUNCATE, r);
  world.RunFor(1s);
  EXPECT_FALSE(again->has_value());
  half().recoverer.hold = false;
  ASSERT_TRUE(world.RunUntil([&] { return again->has_value(); }, 10s));
  ASSERT_TRUE(again->value());
  EXPECT_EQ(again->value()->status().length(), kSize);
  EXPECT_EQ(half().recoverer.begun, 1u);
}

}  // namespace
}  // namespace picket::test
