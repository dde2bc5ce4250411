// Records through the blocking library, against a real cluster in this process.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "common/base/crc32c.h"
#include "common/base/record_frame.h"
#include "picket/client.h"
#include "tests/unit/client/local_cluster.h"

namespace picket::client {
namespace {

constexpr uint64_t kChunkSize = 1 << 20;  // the cluster's default

class RecordsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = (std::filesystem::temp_directory_path() / "picket-records-XXXXXX").string();
    PICKET_CHECK(mkdtemp(name.data()) != nullptr);
    dir_ = new std::filesystem::path(name);
    cluster_ = new LocalCluster(dir_->string(), 3);
  }
  static void TearDownTestSuite() {
    delete cluster_;
    std::filesystem::remove_all(*dir_);
    delete dir_;
  }
  static std::unique_ptr<Client> Connect() {
    Options options;
    options.master = cluster_->address();
    auto client = Client::Connect(options);
    EXPECT_TRUE(client) << client.error().ToString();
    return std::move(*client);
  }
  static std::unique_ptr<RecordAppender> Open(Client& client, const std::string& path) {
    auto appender = client.AppendRecords(path);
    EXPECT_TRUE(appender) << appender.error().ToString();
    return std::move(*appender);
  }
  static std::map<uint64_t, std::string> ReadAll(Client& client, const std::string& path) {
    std::map<uint64_t, std::string> out;
    auto reader = client.ReadRecords(path);
    EXPECT_TRUE(reader) << reader.error().ToString();
    while (reader) {
      auto record = (*reader)->Next();
      EXPECT_TRUE(record) << record.error().ToString();
      if (!record || !*record) break;
      EXPECT_TRUE(out.emplace((*record)->offset, std::move((*record)->bytes)).second);
    }
    return out;
  }

  static inline std::filesystem::path* dir_ = nullptr;
  static inline LocalCluster* cluster_ = nullptr;
};

TEST_F(RecordsTest, ManyAppendersFillSeveralChunksAndEachRecordIsThereOnce) {
  constexpr int kAppenders = 3, kBatches = 12, kBatch = 24;
  std::vector<std::map<uint64_t, std::string>> acknowledged(kAppenders);
  std::vector<std::thread> threads;
  for (int a = 0; a < kAppenders; ++a) {
    threads.emplace_back([a, &mine = acknowledged[static_cast<size_t>(a)]] {
      auto client = Connect();
      auto appender = Open(*client, "/many");
      for (int b = 0; b < kBatches; ++b) {
        std::vector<std::string> records;
        for (int n = 0; n < kBatch; ++n) {
          std::string record = std::to_string(a) + "/" + std::to_string(b) + "/" + std::to_string(n) + " ";
          record.resize(record.size() + static_cast<size_t>((a * 31 + b * 17 + n * 13) * 101 % 9000), 'x');
          records.push_back(std::move(record));
        }
        const auto offsets = appender->AppendAll(records, b % 4 == 0);
        for (size_t n = 0; n < records.size(); ++n) {
          ASSERT_TRUE(offsets[n]) << offsets[n].error().ToString();
          mine.emplace(*offsets[n], records[n]);
        }
      }
      auto closed = appender->Close();
      EXPECT_TRUE(closed) << closed.error().ToString();
    });
  }
  for (auto& thread : threads) thread.join();
  std::map<uint64_t, std::string> expected;
  for (auto& mine : acknowledged) expected.merge(mine);
  EXPECT_EQ(expected.size(), static_cast<size_t>(kAppenders * kBatches * kBatch));
  auto client = Connect();
  EXPECT_EQ(ReadAll(*client, "/many"), expected);
  EXPECT_GT(expected.rbegin()->first, 2 * kChunkSize);
  EXPECT_FALSE(client->Stat("/many")->open);
}

TEST_F(RecordsTest, AReaderSeesWhatIsAcknowledgedAndGoesOn) {
  auto client = Connect();
  auto appender = Open(*client, "/growing");
  auto one = appender->Append("one");
  ASSERT_TRUE(one) << one.error().ToString();
  auto reader = client->ReadRecords("/growing");
  ASSERT_TRUE(reader) << reader.error().ToString();
  auto first = (*reader)->Next();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->bytes, "one");
  EXPECT_FALSE((*reader)->Next()->has_value());
  auto two = appender->Append("two", true);
  ASSERT_TRUE(two);
  auto second = (*reader)->Next();
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->bytes, "two");
  EXPECT_EQ((*second)->offset, *two);
  EXPECT_EQ((*second)->client, (*first)->client);
  EXPECT_GT((*second)->sequence, (*first)->sequence);
  ASSERT_TRUE((*reader)->Seek(*one));
  EXPECT_EQ((*(*reader)->Next())->bytes, "one");
  ASSERT_TRUE(appender->Close());
}

TEST_F(RecordsTest, TwoAppendersOfOneClientShareItsSession) {
  auto client = Connect();
  auto a = Open(*client, "/shared");
  auto b = Open(*client, "/shared");
  ASSERT_TRUE(a->Append("one"));
  ASSERT_TRUE(a->Close());
  auto two = b->Append("two");
  ASSERT_TRUE(two) << two.error().ToString();
  EXPECT_TRUE(client->Stat("/shared")->open);
  ASSERT_TRUE(b->Close());
  EXPECT_FALSE(client->Stat("/shared")->open);
  EXPECT_EQ(ReadAll(*client, "/shared").size(), 2u);
  EXPECT_FALSE(b->Append("three"));
}

TEST_F(RecordsTest, ARecordHasABoundedSize) {
  auto client = Connect();
  auto appender = Open(*client, "/bounds");
  EXPECT_EQ(appender->max_record(), kChunkSize / 4 - 32);
  const auto answers = appender->AppendAll(
      {"", std::string(appender->max_record() + 1, 'x'), std::string(appender->max_record(), 'y'), "z"});
  EXPECT_EQ(answers[0].error().kind, ErrorKind::kInvalidArgument);
  EXPECT_EQ(answers[1].error().kind, ErrorKind::kInvalidArgument);
  EXPECT_TRUE(answers[2]);
  EXPECT_TRUE(answers[3]);
  ASSERT_TRUE(appender->Close());
  EXPECT_EQ(ReadAll(*client, "/bounds").size(), 2u);
}

TEST_F(RecordsTest, ARecordThatDoesNotMatchItsChecksumIsNamedByItsOffset) {
  auto client = Connect();
  picket::RecordHeader header;
  header.length = 4;
  header.crc = Crc32c("good");
  auto writer = client->Create("/damaged", {});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->Write(EncodeRecordHeader(header) + "good" + EncodeRecordHeader(header) + "evil"));
  ASSERT_TRUE((*writer)->Close());
  auto reader = client->ReadRecords("/damaged");
  ASSERT_TRUE(reader);
  EXPECT_TRUE((*reader)->Next()->has_value());
  auto bad = (*reader)->Next();
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().kind, ErrorKind::kCorrupt);
  EXPECT_NE(bad.error().message.find("byte 36"), std::string::npos) << bad.error().message;
}

TEST_F(RecordsTest, AFileOfOtherBytesHasNoRecordsAndTakesNone) {
  auto client = Connect();
  auto writer = client->Create("/bytes", {});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->Write(std::string(5000, 'b')));
  ASSERT_TRUE((*writer)->Close());
  auto reader = client->ReadRecords("/bytes");
  ASSERT_TRUE(reader);
  auto record = (*reader)->Next();
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind, ErrorKind::kCorrupt);
  auto appender = Open(*client, "/bytes");
  auto refused = appender->Append("one");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kConflict);
  EXPECT_EQ(client->ReadRecords("/nothing").error().kind, ErrorKind::kNotFound);
  // The failure is told again at the close, which leaves nobody waiting for the lease.
  EXPECT_FALSE(appender->Close());
  auto leases = client->Leases();
  ASSERT_TRUE(leases);
  for (const LeaseInfo& lease : *leases) EXPECT_TRUE(lease.recovering) << lease.path;
}

}  // namespace
}  // namespace picket::client
