// Record append: each record once, whatever is lost, retried, cut off, or forgotten (F15).
#include "chunkserver/record_window.h"
#include "common/base/record_frame.h"
#include "tests/unit/chunkserver/cluster.h"

namespace picket::cs {
namespace {

constexpr uint64_t kClient = 55;
constexpr uint64_t kFrame = kRecordHeaderSize;

proto::AppendRecordRequest Request(Cluster& c, size_t primary, uint64_t sequence, std::string_view record,
                                   Version v = kFirst, uint64_t known_end = 0, uint64_t client = kClient) {
  proto::AppendRecordRequest r;
  *r.mutable_token() = c.Token(v);
  r.mutable_token()->set_mode(proto::RECORD_APPEND);
  r.mutable_token()->set_holder(client);
  c.Sign(r.mutable_token());
  r.set_sequence(sequence);
  r.set_known_end(known_end);
  r.set_target_incarnation(c.Hop(primary).incarnation());
  r.set_crc(Crc32c(record));
  return r;
}

Result<proto::AppendRecordResponse> Append(Cluster& c, size_t primary, uint64_t sequence, std::string_view record,
                                           Version v = kFirst, uint64_t known_end = 0, uint64_t client = kClient,
                                           Nanos timeout = 5s) {
  return c.Call<proto::AppendRecordResponse>(primary, proto::APPEND_RECORD,
                                             Request(c, primary, sequence, record, v, known_end, client),
                                             Buffer::Copy(record), timeout);
}

Result<proto::LookupRecordResponse> Lookup(Cluster& c, size_t i, uint64_t sequence, Version v = kFirst,
                                           uint64_t known_end = 0) {
  proto::LookupRecordRequest r;
  r.set_chunk(kChunk);
  r.set_version(v.value);
  r.set_client(kClient);
  r.set_sequence(sequence);
  r.set_known_end(known_end);
  return c.Call<proto::LookupRecordResponse>(i, proto::LOOKUP_RECORD, r);
}

// Every record of a chunk's bytes, by its offset, as "client/sequence:payload"; "torn" for a rest.
std::map<uint64_t, std::string> Records(std::string_view bytes) {
  std::map<uint64_t, std::string> out;
  for (size_t at = 0; at + kFrame <= bytes.size();) {
    auto h = DecodeRecordHeader(bytes.substr(at, kFrame));
    if (!h || h->frame_size() > bytes.size() - at) {
      out[at] = "torn";
      break;
    }
    const std::string_view payload = bytes.substr(at + kFrame, h->length);
    if (!h->padding) {
      EXPECT_EQ(Crc32c(payload), h->crc);
      out[at] = std::to_string(h->client) + "/" + std::to_string(h->sequence) + ":" + std::string(payload.substr(0, 8));
    }
    at += h->frame_size();
  }
  return out;
}

size_t Count(std::string_view bytes, uint64_t sequence) {
  const std::string id = std::to_string(kClient) + "/" + std::to_string(sequence) + ":";
  size_t n = 0;
  for (const auto& [offset, record] : Records(bytes)) n += record.starts_with(id) ? 1 : 0;
  return n;
}

// Fills the chunk until fewer than `room` bytes are left.
uint64_t Fill(Cluster& c, uint64_t room, uint64_t first_sequence = 1000) {
  const std::string big(MaxRecord(kChunkSize), 'f');
  uint64_t end = 0, sequence = first_sequence;
  while (kChunkSize - end >= room) {
    const uint64_t size = std::min<uint64_t>(big.size(), kChunkSize - end - kFrame);
    auto appended = Append(c, 0, sequence++, std::string_view(big).substr(0, size));
    EXPECT_TRUE(appended) << appended.error().ToString();
    if (!appended) return end;
    end = appended->length();
  }
  return end;
}

TEST(RecordAppend, RecordsOfManyClientsAreEachOnEveryMemberAtTheirOffset) {
  Cluster c(3);
  c.Open({0, 1, 2});
  std::map<uint64_t, std::string> expected;
  for (uint64_t n = 1; n <= 20; ++n) {
    const std::string record = "r" + std::to_string(n);
    auto appended = Append(c, 0, n, record, kFirst, 0, 50 + n % 3);
    ASSERT_TRUE(appended) << appended.error().ToString();
    EXPECT_FALSE(appended->was_applied());
    expected[appended->offset()] = std::to_string(50 + n % 3) + "/" + std::to_string(n) + ":" + record;
  }
  EXPECT_EQ(expected.size(), 20u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Records(c.DataOn(i)), expected);
}

TEST(RecordAppend, ARetryIsAnsweredWithTheFirstOffset) {
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(Append(c, 0, 1, "one"));
  auto first = Append(c, 0, 2, "two");
  ASSERT_TRUE(first);
  ASSERT_TRUE(Append(c, 0, 3, "three"));
  auto again = Append(c, 0, 2, "two");
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_TRUE(again->was_applied());
  EXPECT_EQ(again->offset(), first->offset());
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(Count(c.DataOn(i), 2), 1u);
}

TEST(RecordAppend, OnlyThePrimaryPicksOffsets) {
  Cluster c(2);
  c.Open({0, 1});
  EXPECT_EQ(CodeOf(Append(c, 1, 1, "one")), Code::kNotPrimary);
  EXPECT_EQ(CodeOf(Append(c, 0, 1, "one", Version(3, 0))), Code::kStaleVersion);
  EXPECT_EQ(CodeOf(Append(c, 0, 1, "one", Version(3, 2))), Code::kReplicaBehind);
  EXPECT_EQ(c.DataOn(0), "");
}

TEST(RecordAppend, ATokenIsVerifiedHereAsInAPacket) {
  Cluster c(1);
  c.Open({0});
  proto::AppendRecordRequest r = Request(c, 0, 1, "one");
  r.mutable_token()->set_holder(kClient + 1);
  EXPECT_EQ(CodeOf(c.Call<proto::AppendRecordResponse>(0, proto::APPEND_RECORD, r, Buffer::Copy("one"))),
            Code::kTokenForged);
  EXPECT_EQ(c.DataOn(0), "");
}

// The member after it has the record; another one must not take its number and its place.
TEST(RecordAppend, APrimaryThatCouldNotApplyWhatItForwardedAppendsNoMore) {
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(Append(c, 0, 1, "one"));
  c.nodes[0]->disk().faults.fail_writes = true;
  auto failed = Append(c, 0, 2, "two");
  ASSERT_EQ(CodeOf(failed), Code::kIoError);
  EXPECT_EQ(failed.error().server, c.ids[0].value);
  c.nodes[0]->disk().faults.fail_writes = false;
  EXPECT_EQ(CodeOf(Append(c, 0, 3, "three")), Code::kOutOfOrder);
  EXPECT_EQ(Records(c.DataOn(0)).size(), 1u);
  EXPECT_EQ(Count(c.DataOn(1), 2), 1u);
}

TEST(RecordAppend, ADamagedRecordIsRefusedAndBlamesNoServer) {
  Cluster c(1);
  c.Open({0});
  auto refused =
      c.Call<proto::AppendRecordResponse>(0, proto::APPEND_RECORD, Request(c, 0, 1, "aaaa"), Buffer::Copy("aaab"));
  ASSERT_EQ(CodeOf(refused), Code::kCorrupt);
  EXPECT_EQ(refused.error().server, 0u);
  EXPECT_EQ(c.DataOn(0), "");
}

TEST(RecordAppend, ARecordHasABoundedSizeAndIsNotEmpty) {
  Cluster c(1);
  c.Open({0});
  EXPECT_EQ(CodeOf(Append(c, 0, 1, "")), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Append(c, 0, 1, std::string(MaxRecord(kChunkSize) + 1, 'x'))), Code::kInvalidArgument);
  EXPECT_TRUE(Append(c, 0, 1, std::string(MaxRecord(kChunkSize), 'x')));
}

TEST(RecordAppend, ASessionOfRecordsTakesNoOtherBytes) {
  Cluster c(1);
  c.Open({0});
  proto::WritePacketRequest r = c.Packet(0, 1, 0, "aaaa");
  r.mutable_token()->set_mode(proto::RECORD_APPEND);
  c.Sign(r.mutable_token());
  EXPECT_EQ(CodeOf(c.Call<proto::WritePacketResponse>(0, proto::WRITE_PACKET, r, Buffer::Copy("aaaa"))),
            Code::kConflict);
  proto::AppendRecordRequest a = Request(c, 0, 1, "aaaa");
  a.mutable_token()->set_mode(proto::EXCLUSIVE);
  c.Sign(a.mutable_token());
  EXPECT_EQ(CodeOf(c.Call<proto::AppendRecordResponse>(0, proto::APPEND_RECORD, a, Buffer::Copy("aaaa"))),
            Code::kInvalidArgument);
}

TEST(RecordAppend, AFileOfOtherBytesIsRefused) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "these bytes are not the frames of any record at all"));
  auto refused = Append(c, 0, 1, "one");
  EXPECT_EQ(CodeOf(refused), Code::kConflict);
  EXPECT_EQ(CodeOf(Lookup(c, 0, 1)), Code::kConflict);
}

TEST(RecordAppend, AShortFileOfOtherBytesIsRefusedToo) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(c.Write(0, 1, 0, "hello"));
  EXPECT_EQ(CodeOf(Append(c, 0, 1, "one")), Code::kConflict);
}

TEST(RecordAppend, AFullChunkIsPaddedAlikeOnEveryMemberBeforeItIsSaidToBeFull) {
  for (uint64_t left : {uint64_t{5}, uint64_t{31}, uint64_t{32}, uint64_t{33}, uint64_t{90}}) {
    Cluster c(3);
    c.Open({0, 1, 2});
    const uint64_t end = Fill(c, 2 << 20);
    const uint64_t size = kChunkSize - end - left - 2 * kFrame;
    auto half = Append(c, 0, 1, std::string(size / 2, 'a'));
    ASSERT_TRUE(half) << half.error().ToString();
    ASSERT_TRUE(Append(c, 0, 2, std::string(size - size / 2, 'b')));
    auto full = Append(c, 0, 3, std::string(100, 'x'));
    ASSERT_EQ(CodeOf(full), Code::kChunkFull) << left;
    EXPECT_EQ(full.error().mark, kChunkSize);
    const std::string bytes = c.DataOn(0);
    EXPECT_EQ(bytes.size(), kChunkSize);
    for (size_t i = 1; i < 3; ++i) EXPECT_TRUE(c.DataOn(i) == bytes) << left;
    EXPECT_EQ(Count(bytes, 3), 0u);
    EXPECT_EQ(CodeOf(Append(c, 0, 4, "x")), Code::kChunkFull);
    ASSERT_TRUE(c.Seal(0, kChunkSize)) << left;
  }
}

// F15 a: applied, answer lost, the chunk fills up and is sealed: the retry is decided in this chunk.
TEST(RecordAppend, F15aARetryIsDecidedInTheChunkOfItsFirstAttempt) {
  Cluster c(3);
  c.Open({0, 1, 2});
  auto first = Append(c, 0, 1, "one");  // its answer is lost
  ASSERT_TRUE(first);
  const uint64_t end = Fill(c, 1 << 20);
  auto full = Append(c, 0, 2, std::string(MaxRecord(kChunkSize), 'x'));
  ASSERT_EQ(CodeOf(full), Code::kChunkFull) << end;
  auto again = Append(c, 0, 1, "one");
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->offset(), first->offset());
  ASSERT_TRUE(c.Seal(0, kChunkSize));
  for (size_t i = 0; i < 3; ++i) {
    auto found = Lookup(c, i, 1);
    ASSERT_TRUE(found) << found.error().ToString();
    EXPECT_TRUE(found->applied());
    EXPECT_EQ(found->offset(), first->offset());
    auto absent = Lookup(c, i, 2);
    ASSERT_TRUE(absent);
    EXPECT_FALSE(absent->applied());
    EXPECT_TRUE(absent->definite());
  }
}

// F15 b: the fail-over took the record away; its entry has gone with it.
TEST(RecordAppend, F15bAnEntryDiesWithItsBytes) {
  Cluster c(2);
  c.Open({0, 1});
  auto kept = Append(c, 0, 1, "one");
  ASSERT_TRUE(kept);
  const std::string content = c.DataOn(0);
  c.nodes[1]->Pause();
  EXPECT_FALSE(Append(c, 0, 2, "two", kFirst, 0, kClient, 1s));
  EXPECT_EQ(Count(c.DataOn(0), 2), 1u);
  c.nodes[1]->Crash(Node::Death::kPower);
  c.Boot(1);
  // The set goes on from the common prefix.
  ASSERT_TRUE(c.Set(0, kFirst, Version(3, 2), content, 0, kFirst));
  ASSERT_TRUE(c.Grant({0}, Version(3, 2)));
  EXPECT_EQ(Count(c.DataOn(0).substr(0, content.size()), 2), 0u);
  auto again = Append(c, 0, 2, "two", Version(3, 2));
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_FALSE(again->was_applied());
  EXPECT_EQ(again->offset(), content.size());
  EXPECT_EQ(Records(c.DataOn(0)).size(), 2u);
}

// F15 c: what the window does not remember any more is not taken for new.
TEST(RecordWindow, F15cAnEvictedRecordIsNotTakenForNew) {
  RecordWindow w(3);
  const ClientId client(7);
  for (uint64_t n = 1; n <= 5; ++n) w.Note({client, n}, 100);
  EXPECT_EQ(w.evicted_through(), 200u);
  EXPECT_EQ(w.size(), 3u);
  for (uint64_t n = 1; n <= 2; ++n) {
    auto evicted = w.Find({client, n}, (n - 1) * 100);
    ASSERT_FALSE(evicted);
    EXPECT_EQ(evicted.error().code, Code::kDedupWindowExceeded);
  }
  auto kept = w.Find({client, 3}, 200);
  ASSERT_TRUE(kept && *kept);
  EXPECT_EQ((*kept)->offset, 200u);
  auto fresh = w.Find({client, 6}, 200);
  ASSERT_TRUE(fresh);
  EXPECT_FALSE(*fresh);
  EXPECT_EQ(CodeOf(w.Find({client, 6}, 199)), Code::kDedupWindowExceeded);
}

TEST(RecordWindow, TheFirstOfTwoPlacesStands) {
  RecordWindow w(2);
  w.Note({ClientId(1), 1}, 40);
  w.Note({ClientId(1), 1}, 40);
  w.Skip(20);
  auto found = w.Find({ClientId(1), 1}, 0);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->offset, 0u);
  EXPECT_EQ(w.end(), 100u);
}

TEST(RecordAppend, AChunkRemembersOnlyItsNewestRecords) {
  Cluster c(1);
  c.Open({0});
  // Frames are made here: the window is read from the bytes, whoever wrote them.
  std::string bytes;
  const uint64_t count = RecordWindow::kMaxEntries + 10;
  for (uint64_t n = 1; n <= count; ++n) {
    RecordHeader h;
    h.length = 1;
    h.client = kClient;
    h.sequence = n;
    h.crc = Crc32c("x");
    bytes += EncodeRecordHeader(h) + "x";
  }
  uint64_t at = 0;
  for (uint64_t serial = 1; at < bytes.size(); ++serial) {
    const std::string_view part = std::string_view(bytes).substr(at, 1 << 20);
    ASSERT_TRUE(c.Write(0, serial, at, part));
    at += part.size();
  }
  EXPECT_EQ(CodeOf(Append(c, 0, 10, "x", kFirst, 0)), Code::kDedupWindowExceeded);
  EXPECT_EQ(CodeOf(Lookup(c, 0, 10)), Code::kDedupWindowExceeded);
  auto newest = Append(c, 0, 11, "x", kFirst, 0);
  ASSERT_TRUE(newest) << newest.error().ToString();
  EXPECT_EQ(newest->offset(), 10u * 33);
  auto fresh = Append(c, 0, count + 1, "x", kFirst, bytes.size());
  ASSERT_TRUE(fresh) << fresh.error().ToString();
  EXPECT_EQ(fresh->offset(), bytes.size());
}

TEST(RecordAppend, ARetryAfterTheFailOverOfThePrimaryReturnsTheFirstOffset) {
  Cluster c(3);
  c.Open({0, 1, 2});
  ASSERT_TRUE(Append(c, 0, 1, "one"));
  auto first = Append(c, 0, 2, "two");  // its answer is lost
  ASSERT_TRUE(first);
  c.nodes[0]->Crash(Node::Death::kPower);
  for (size_t i : {1, 2}) ASSERT_TRUE(c.Advance(i, kFirst, Version(3, 2)));
  ASSERT_TRUE(c.Grant({1, 2}, Version(3, 2)));
  auto again = Append(c, 1, 2, "two", Version(3, 2));
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_TRUE(again->was_applied());
  EXPECT_EQ(again->offset(), first->offset());
  ASSERT_TRUE(Append(c, 1, 3, "three", Version(3, 2)));
  EXPECT_EQ(Records(c.DataOn(1)).size(), 3u);
  EXPECT_EQ(c.DataOn(1), c.DataOn(2));
}

TEST(RecordAppend, ARestartedServerGivesTheSameAnswers) {
  for (const auto death : {Node::Death::kProcess, Node::Death::kPower}) {
    Cluster c(1);
    c.Open({0});
    std::vector<uint64_t> offsets;
    for (uint64_t n = 1; n <= 30; ++n) {
      auto r = Request(c, 0, n, std::string(n * 1000, 'a'));
      r.set_sync(true);
      auto appended =
          c.Call<proto::AppendRecordResponse>(0, proto::APPEND_RECORD, r, Buffer::Copy(std::string(n * 1000, 'a')));
      ASSERT_TRUE(appended) << appended.error().ToString();
      offsets.push_back(appended->offset());
    }
    c.Restart(0, death);
    ASSERT_TRUE(c.Advance(0, kFirst, Version(3, 2)));
    ASSERT_TRUE(c.Grant({0}, Version(3, 2)));
    for (uint64_t n = 1; n <= 30; ++n) {
      auto again = Append(c, 0, n, std::string(n * 1000, 'a'), Version(3, 2));
      ASSERT_TRUE(again) << again.error().ToString();
      EXPECT_TRUE(again->was_applied());
      EXPECT_EQ(again->offset(), offsets[n - 1]);
    }
  }
}

TEST(RecordAppend, ARetryIsNotAnsweredBeforeEveryMemberHasTheRecord) {
  Cluster c(3);
  c.Open({0, 1, 2});
  ASSERT_TRUE(Append(c, 0, 1, "one"));
  c.nodes[2]->Pause();
  struct Call {
    static Task<> Run(Cluster* cluster, uint64_t sequence, Nanos timeout, std::vector<Result<RpcReply>>* out) {
      auto channel = cluster->channels->Get(Endpoint(cluster->nodes[0]->host(), kPort));
      auto reply =
          co_await channel->Call(proto::APPEND_RECORD, Request(*cluster, 0, sequence, "two").SerializeAsString(),
                                 Payload(Buffer::Copy("two")), timeout);
      out->push_back(std::move(reply));
    }
  };
  // Four attempts at one record, while the chain hangs.
  std::vector<Result<RpcReply>> answers;
  for (int n = 0; n < 4; ++n) c.outside.Spawn(Call::Run(&c, 2, 8s, &answers));
  const Mono until = c.outside.Now() + 2s;
  c.world.RunUntil([&] { return c.outside.Now() >= until; });
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(Count(c.DataOn(0), 2), 1u);
  c.nodes[2]->Resume();
  c.world.RunUntil([&] { return answers.size() == 4; });
  ASSERT_EQ(answers.size(), 4u);
  for (auto& answer : answers) {
    ASSERT_TRUE(answer) << answer.error().ToString();
    proto::AppendRecordResponse response;
    ASSERT_TRUE(response.ParseFromString(answer->body));
    EXPECT_EQ(response.offset(), kFrame + 3);
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Count(c.DataOn(i), 2), 1u);
}

TEST(RecordAppend, ARetryWhoseFirstAttemptFailedInTheChainIsNotAnsweredFromHere) {
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(Append(c, 0, 1, "one"));
  c.nodes[1]->Crash(Node::Death::kProcess);
  EXPECT_FALSE(Append(c, 0, 2, "two"));
  auto again = Append(c, 0, 2, "two");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().server, c.ids[1].value);
}

TEST(RecordAppend, ALookupWhileTheChunkIsOpenIsNeverDefinite) {
  Cluster c(2);
  c.Open({0, 1});
  ASSERT_TRUE(Append(c, 0, 1, "one"));
  auto there = Lookup(c, 0, 1);
  ASSERT_TRUE(there) << there.error().ToString();
  EXPECT_TRUE(there->applied());
  auto not_yet = Lookup(c, 0, 2);
  ASSERT_TRUE(not_yet);
  EXPECT_FALSE(not_yet->applied());
  EXPECT_FALSE(not_yet->definite());
  EXPECT_EQ(CodeOf(Lookup(c, 1, 1)), Code::kNotPrimary);
  EXPECT_EQ(CodeOf(Lookup(c, 0, 1, Version(3, 0))), Code::kStaleVersion);
}

TEST(RecordAppend, NothingIsAppendedBehindTheRestOfARecord) {
  Cluster c(1);
  c.Open({0});
  ASSERT_TRUE(Append(c, 0, 1, "one"));
  ASSERT_TRUE(Append(c, 0, 2, std::string(1000, 'x')));
  const std::string torn = c.DataOn(0).substr(0, 500);
  ASSERT_TRUE(c.Set(0, kFirst, Version(3, 2), torn, 0, kFirst));
  ASSERT_TRUE(c.Grant({0}, Version(3, 2)));
  auto full = Append(c, 0, 2, std::string(1000, 'x'), Version(3, 2));
  ASSERT_EQ(CodeOf(full), Code::kChunkFull);
  EXPECT_EQ(full.error().mark, torn.size());
  ASSERT_TRUE(c.Seal(0, torn.size(), Version(3, 2)));
  auto absent = Lookup(c, 0, 2, Version(3, 2));
  ASSERT_TRUE(absent) << absent.error().ToString();
  EXPECT_FALSE(absent->applied());
  EXPECT_TRUE(absent->definite());
}

TEST(RecordAppend, SyncedRecordsSurviveAPowerCutOfAllMembers) {
  Cluster c(2);
  c.Open({0, 1});
  auto r = Request(c, 0, 1, "one");
  r.set_sync(true);
  ASSERT_TRUE(c.Call<proto::AppendRecordResponse>(0, proto::APPEND_RECORD, r, Buffer::Copy("one")));
  for (size_t i = 0; i < 2; ++i) c.Restart(i, Node::Death::kPower);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(Count(c.DataOn(i), 1), 1u);
}

TEST(RecordAppend, ManyInFlightAreEachAppendedOnce) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Cluster c(3, seed);
    c.Open({0, 1, 2});
    struct Call {
      static Task<> Run(Cluster* cluster, uint64_t sequence, int* good, int* done) {
        const std::string record = "record " + std::to_string(sequence % 32);
        auto channel = cluster->channels->Get(Endpoint(cluster->nodes[0]->host(), kPort));
        auto reply = co_await channel->Call(proto::APPEND_RECORD,
                                            Request(*cluster, 0, sequence % 32, record).SerializeAsString(),
                                            Payload(Buffer::Copy(record)), 5s);
        *good += reply ? 1 : 0;
        ++*done;
      }
    };
    int good = 0, done = 0;
    for (uint64_t n = 0; n < 96; ++n) c.outside.Spawn(Call::Run(&c, n, &good, &done));
    c.world.RunUntil([&] { return done == 96; });
    EXPECT_EQ(good, 96);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(Records(c.DataOn(i)).size(), 32u);
      EXPECT_EQ(c.DataOn(i), c.DataOn(0));
    }
  }
}

}  // namespace
}  // namespace picket::cs
