// The blocking library against a real cluster in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "common/base/rng.h"
#include "picket/client.h"
#include "tests/unit/client/local_cluster.h"

namespace picket::client {
namespace {

using testing::HasSubstr;

std::string Bytes(size_t size, uint64_t seed) {
  Rng rng(seed);
  std::string bytes(size, '\0');
  for (auto& b : bytes) b = static_cast<char>(rng.Next() >> 56);
  return bytes;
}

std::filesystem::path MakeTemporary() {
  std::string name = (std::filesystem::temp_directory_path() / "picket-client-XXXXXX").string();
  PICKET_CHECK(mkdtemp(name.data()) != nullptr);
  return name;
}

class BlockingTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new std::filesystem::path(MakeTemporary());
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
  static void Put(Client& client, const std::string& path, const std::string& bytes, size_t part = 64 << 10) {
    auto writer = client.Create(path, {.parents = true});
    ASSERT_TRUE(writer) << writer.error().ToString();
    for (size_t at = 0; at < bytes.size(); at += part) {
      auto written = (*writer)->Write(std::string_view(bytes).substr(at, part));
      ASSERT_TRUE(written) << written.error().ToString();
    }
    auto closed = (*writer)->Close();
    ASSERT_TRUE(closed) << closed.error().ToString();
    EXPECT_EQ(closed->length, bytes.size());
    EXPECT_EQ(closed->path, path);
    EXPECT_EQ((*writer)->bytes_acknowledged(), bytes.size());
  }
  static std::string Get(Reader& reader, size_t part = 100'000) {
    std::string all;
    std::string buffer(part, '\0');
    while (true) {
      auto size = reader.Read(buffer.data(), buffer.size());
      EXPECT_TRUE(size) << size.error().ToString();
      if (!size || *size == 0) return all;
      all.append(buffer, 0, *size);
    }
  }

  static std::filesystem::path* dir_;
  static LocalCluster* cluster_;
};
std::filesystem::path* BlockingTest::dir_ = nullptr;
LocalCluster* BlockingTest::cluster_ = nullptr;

TEST_F(BlockingTest, WritesAndReadsBack) {
  auto client = Connect();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 20, (size_t{1} << 20) + 1, (size_t{5} << 20) + 12345}) {
    const std::string path = "/sizes/" + std::to_string(size);
    const std::string bytes = Bytes(size, size);
    Put(*client, path, bytes);
    auto reader = client->Open(path);
    ASSERT_TRUE(reader) << reader.error().ToString();
    EXPECT_EQ((*reader)->status().length, size);
    EXPECT_EQ(Get(**reader), bytes);
    EXPECT_EQ((*reader)->Length().value_or(1), size);
    std::string some(1 << 21, '\0');
    auto at = (*reader)->ReadAt(size / 3, some.data(), some.size());
    ASSERT_TRUE(at);
    some.resize(*at);
    EXPECT_EQ(some, bytes.substr(size / 3, 1 << 21));
    ASSERT_TRUE((*reader)->Seek(size / 2));
    EXPECT_EQ(Get(**reader), bytes.substr(size / 2));
    auto chunks = client->Chunks(path);
    ASSERT_TRUE(chunks);
    EXPECT_EQ(chunks->size(), (size + (1 << 20) - 1) >> 20);
    for (const auto& chunk : *chunks) {
      EXPECT_TRUE(chunk.sealed);
      ASSERT_EQ(chunk.replicas.size(), 3u);
      for (const auto& replica : chunk.replicas) {
        EXPECT_EQ(replica.version, chunk.version);
        EXPECT_EQ(replica.state, "sealed");
        EXPECT_EQ(replica.server.size(), 16u);
      }
      auto described = client->DescribeChunk(chunk.id);
      ASSERT_TRUE(described);
      EXPECT_EQ(described->path, path);
    }
  }
}

TEST_F(BlockingTest, Names) {
  auto client = Connect();
  ASSERT_TRUE(client->Mkdir("/names/a/b", true));
  EXPECT_EQ(client->Mkdir("/names/a/b", false).error().kind, ErrorKind::kAlreadyExists);
  Put(*client, "/names/a/f", "hello");
  ASSERT_TRUE(client->Rename("/names/a/f", "/names/a/g"));
  EXPECT_EQ(client->Stat("/names/a/f").error().kind, ErrorKind::kNotFound);
  auto status = client->Stat("/names/a/g");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->length, 5u);
  EXPECT_EQ(status->owner, client->user());
  EXPECT_EQ(status->replication, 3u);
  EXPECT_FALSE(status->open);
  auto page = client->List("/names/a");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->entries.size(), 2u);
  EXPECT_EQ(page->entries[0].path, "/names/a/b");
  EXPECT_EQ(page->entries[0].type, FileType::kDirectory);
  EXPECT_EQ(page->entries[1].path, "/names/a/g");
  auto itself = client->List("/names/a/g");
  ASSERT_TRUE(itself);
  EXPECT_TRUE(itself->is_file);
  ASSERT_TRUE(client->SetMode("/names/a/g", 0600));
  ASSERT_TRUE(client->SetTimes("/names/a/g", 1234567890));
  ASSERT_TRUE(client->SetOwner("/names/a/g", "eve", ""));
  status = client->Stat("/names/a/g");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->mode, 0600u);
  EXPECT_EQ(status->mtime_ns, 1234567890);
  EXPECT_EQ(status->owner, "eve");
  auto summary = client->Summarize("/names");
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->files, 1u);
  EXPECT_EQ(summary->bytes, 5u);
  EXPECT_EQ(client->Remove("/names/a", false).error().kind, ErrorKind::kNotEmpty);
  auto trash = client->Remove("/names/a", true);
  ASSERT_TRUE(trash);
  EXPECT_THAT(*trash, HasSubstr("/.Trash/" + client->user()));
  EXPECT_EQ(client->Remove("/names", true, true).value_or("?"), "");
  EXPECT_EQ(client->Open("/").error().kind, ErrorKind::kIsDirectory);
  auto report = client->Report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->servers.size(), 3u);
  EXPECT_EQ(report->master, client->master());
}

TEST_F(BlockingTest, AReaderFollowsAWriter) {
  auto client = Connect();
  auto writer = client->Create("/follow", {});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->Write("one "));
  ASSERT_TRUE((*writer)->Flush());
  EXPECT_EQ((*writer)->bytes_acknowledged(), 4u);
  auto reader = client->Open("/follow");
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->Length().value_or(0), 4u);
  EXPECT_EQ(Get(**reader), "one ");
  ASSERT_TRUE((*writer)->Write("two"));
  ASSERT_TRUE((*writer)->Sync());
  EXPECT_EQ(Get(**reader), "two");
  ASSERT_TRUE((*writer)->Close());
  EXPECT_EQ(Get(**reader), "");
}

TEST_F(BlockingTest, SyncWithoutSyncedSeals) {
  auto client = Connect();
  auto writer = client->Create("/unsynced", {.sync_on_close = false});
  ASSERT_TRUE(writer);
  const std::string bytes = Bytes((3 << 20) + 5, 9);
  ASSERT_TRUE((*writer)->Write(bytes));
  auto synced = (*writer)->Sync();
  EXPECT_TRUE(synced) << synced.error().ToString();
  ASSERT_TRUE((*writer)->Close());
  auto reader = client->Open("/unsynced");
  ASSERT_TRUE(reader);
  EXPECT_EQ(Get(**reader), bytes);
}

TEST_F(BlockingTest, OverwriteAndAbandon) {
  auto client = Connect();
  Put(*client, "/over", "old");
  EXPECT_EQ(client->Create("/over", {}).error().kind, ErrorKind::kAlreadyExists);
  {
    auto writer = client->Create("/over", {.overwrite = true});
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->Write("new"));
    EXPECT_EQ(Get(**client->Open("/over")), "old");
    ASSERT_TRUE((*writer)->Abandon());
    EXPECT_FALSE((*writer)->Write("x"));
  }
  EXPECT_EQ(Get(**client->Open("/over")), "old");
  auto writer = client->Create("/over", {.overwrite = true});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->Write("new"));
  ASSERT_TRUE((*writer)->Close());
  EXPECT_EQ(Get(**client->Open("/over")), "new");

  auto fresh = client->Create("/fresh", {});
  ASSERT_TRUE(fresh);
  ASSERT_TRUE((*fresh)->Write("bytes"));
  ASSERT_TRUE((*fresh)->Flush());
  ASSERT_TRUE((*fresh)->Abandon());
  EXPECT_EQ(client->Stat("/fresh").error().kind, ErrorKind::kNotFound);
}

TEST_F(BlockingTest, ManyThreadsShareOneClient) {
  auto client = Connect();
  ASSERT_TRUE(client->Mkdir("/threads", false));
  const std::string shared = Bytes(3 << 20, 77);
  Put(*client, "/threads/shared", shared);
  auto reader = client->Open("/threads/shared");
  ASSERT_TRUE(reader);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Rng rng(static_cast<uint64_t>(t) + 1);
      for (int i = 0; i < 10; ++i) {
        const std::string path = "/threads/" + std::to_string(t) + "-" + std::to_string(i);
        const std::string bytes = Bytes(rng.Below(200'000), static_cast<uint64_t>(t * 100 + i));
        Put(*client, path, bytes, 1000 + rng.Below(50'000));
        auto own = client->Open(path);
        if (!own || Get(**own) != bytes) continue;
        const uint64_t offset = rng.Below(shared.size());
        std::string some(rng.Below(100'000), '\0');
        auto size = (*reader)->ReadAt(offset, some.data(), some.size());
        if (!size) continue;
        some.resize(*size);
        if (some == shared.substr(offset, some.size())) ++good;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 80);
  EXPECT_EQ(client->List("/threads")->entries.size(), 81u);
}

TEST_F(BlockingTest, HandlesOutliveTheirClient) {
  auto client = Connect();
  Put(*client, "/outlive", "bytes");
  auto reader = client->Open("/outlive");
  auto writer = client->Create("/outlive2", {});
  ASSERT_TRUE(reader);
  ASSERT_TRUE(writer);
  client.reset();
  EXPECT_EQ(Get(**reader), "bytes");
  ASSERT_TRUE((*writer)->Write("more"));
  ASSERT_TRUE((*writer)->Close());
  writer->reset();
  // A writer that is dropped in the middle holds nothing up.
  auto dropped = Connect()->Create("/dropped", {});
  ASSERT_TRUE(dropped);
  ASSERT_TRUE((*dropped)->Write(Bytes(3 << 20, 3)));
}

// ---- settings --------------------------------------------------------------------------------------

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() : home(MakeTemporary()) {
    setenv("HOME", home.c_str(), 1);
    unsetenv("PICKET_MASTER");
    unsetenv("PICKET_CONFIG");
  }
  ~SettingsTest() override { std::filesystem::remove_all(home); }
  void Write(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  // Where it tries to connect to, or why it does not.
  static std::string Outcome(Options options = {}) {
    options.connect_timeout_ms = 50;
    auto client = Client::Connect(options);
    EXPECT_FALSE(client);
    return client ? "" : client.error().ToString();
  }
  const std::filesystem::path home;
};

TEST_F(SettingsTest, NoMasterIsNamed) {
  const std::string outcome = Outcome();
  EXPECT_THAT(outcome, HasSubstr("no master is named"));
  EXPECT_THAT(outcome, HasSubstr("PICKET_MASTER"));
  EXPECT_THAT(outcome, HasSubstr("client.toml"));
}

TEST_F(SettingsTest, OptionThenVariableThenFile) {
  Write(home / ".config/picket/client.toml", "master = \"127.0.0.1:1\"\n");
  EXPECT_THAT(Outcome(), HasSubstr("127.0.0.1:1:"));
  Write(home / "other.toml", "master = \"127.0.0.1:2\"\n");
  setenv("PICKET_CONFIG", (home / "other.toml").c_str(), 1);
  EXPECT_THAT(Outcome(), HasSubstr("127.0.0.1:2:"));
  Write(home / "third.toml", "master = \"127.0.0.1:3\"\n");
  EXPECT_THAT(Outcome({.config_file = home / "third.toml"}), HasSubstr("127.0.0.1:3:"));
  setenv("PICKET_MASTER", "127.0.0.1:4", 1);
  EXPECT_THAT(Outcome(), HasSubstr("127.0.0.1:4:"));
  EXPECT_THAT(Outcome({.master = "127.0.0.1:5"}), HasSubstr("127.0.0.1:5:"));
}

TEST_F(SettingsTest, BadOnesAreNamed) {
  EXPECT_THAT(Outcome({.master = "not an address:"}), HasSubstr("not an address"));
  EXPECT_THAT(Outcome({.config_file = home / "missing.toml"}), HasSubstr("missing.toml"));
  Write(home / "bad.toml", "mastre = \"127.0.0.1:1\"\n");
  const std::string outcome = Outcome({.config_file = home / "bad.toml"});
  EXPECT_THAT(outcome, HasSubstr("mastre"));
  EXPECT_THAT(outcome, HasSubstr("master"));
  Write(home / "empty.toml", "");
  EXPECT_THAT(Outcome({.config_file = home / "empty.toml"}), HasSubstr("empty.toml"));
}

TEST_F(SettingsTest, AnUnreachableMasterIsSaidInTimeAndOneLine) {
  const auto before = std::chrono::steady_clock::now();
  auto client = Client::Connect({.master = "127.0.0.1:1", .connect_timeout_ms = 300});
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(client.error().code, "UNAVAILABLE");
  const std::string text = client.error().ToString();
  EXPECT_THAT(text, HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(text, HasSubstr("check that picket-master runs"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace picket::client
