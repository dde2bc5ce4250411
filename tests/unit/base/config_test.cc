#include "common/obs/config.h"

#include <gtest/gtest.h>

namespace picket {
namespace {

struct Settings {
  std::string dir;
  std::string level = "info";
  int64_t replication = 3;
  uint64_t chunk_size = 64 << 20;
  Nanos lease = 60s;
  bool sync = true;
  Endpoint listen{"127.0.0.1", 7400};
};

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    config.Text("dir", &s.dir, "Where everything is kept.");
    config.Required();
    config.Integer("replication", &s.replication, 1, 16, "Replicas of a new file.");
    config.Size("chunk_size", &s.chunk_size, 1 << 20, 1 << 30, "Of files that do not say otherwise.\nA power of two.");
    config.Duration("lease", &s.lease, 1s, 10min, "Of a primary.");
    config.Bool("sync", &s.sync, "Whether close is durable.");
    config.Address("listen", &s.listen, "Where to listen.", 7400);
    config.Word("log.level", &s.level, {"debug", "info"}, "What is logged.");
  }
  std::string FileError(std::string_view text) {
    auto status = config.ParseToml(text, "m.toml");
    EXPECT_FALSE(status) << text;
    return status ? "" : status.error().message;
  }

  Settings s;
  Config config;
};

TEST_F(ConfigTest, FileSetsFields) {
  auto status = config.ParseToml(
      "dir = \"/d\"\nreplication = 2\nchunk_size = \"1MiB\"\nlease = \"5s\"\nsync = false\nlisten = \"h:1\"\n"
      "[log]\nlevel = \"debug\"\n",
      "m.toml");
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(s.dir, "/d");
  EXPECT_EQ(s.replication, 2);
  EXPECT_EQ(s.chunk_size, 1u << 20);
  EXPECT_EQ(s.lease, 5s);
  EXPECT_FALSE(s.sync);
  EXPECT_EQ(s.listen, Endpoint("h", 1));
  EXPECT_EQ(s.level, "debug");
  EXPECT_TRUE(config.Check());
}

TEST_F(ConfigTest, FlagsComeAfterTheFileAndWin) {
  ASSERT_TRUE(config.ParseToml("dir = \"/d\"\nreplication = 2\n", "m.toml"));
  ASSERT_TRUE(config.Set("replication", "5"));
  EXPECT_EQ(s.replication, 5);
  EXPECT_EQ(s.dir, "/d");
}

TEST_F(ConfigTest, SizeMayBePlainBytes) {
  ASSERT_TRUE(config.ParseToml("chunk_size = 2097152\n", "m.toml"));
  EXPECT_EQ(s.chunk_size, 2u << 20);
}

TEST_F(ConfigTest, MissingPortTakesTheDefault) {
  ASSERT_TRUE(config.Set("listen", "10.0.0.1"));
  EXPECT_EQ(s.listen, Endpoint("10.0.0.1", 7400));
}

TEST_F(ConfigTest, UnknownKeyNamesLineAndNearest) {
  EXPECT_EQ(FileError("dir = \"/d\"\nchunksize = 3\n"), "m.toml:2: unknown key chunksize; did you mean chunk_size?");
  EXPECT_EQ(FileError("[log]\nlevle = \"info\"\n"), "m.toml:2: unknown key log.levle; did you mean log.level?");
  EXPECT_EQ(FileError("quux_factor = 1\n"), "m.toml:1: unknown key quux_factor; --sample-config lists all keys");
}

TEST_F(ConfigTest, WrongValuesNameLineAndWhatIsAccepted) {
  EXPECT_EQ(FileError("replication = 17\n"),
            "m.toml:1: replication = 17 is not accepted; write a whole number from 1 to 16");
  EXPECT_EQ(FileError("replication = \"2\"\n"),
            "m.toml:1: replication = \"2\" is not accepted; write a whole number from 1 to 16");
  EXPECT_EQ(FileError("chunk_size = \"64MX\"\n"),
            "m.toml:1: chunk_size = \"64MX\" is not accepted; write a size from 1MiB to 1GiB, such as \"64MiB\"");
  EXPECT_EQ(FileError("chunk_size = \"2GiB\"\n"),
            "m.toml:1: chunk_size = \"2GiB\" is not accepted; write a size from 1MiB to 1GiB, such as \"64MiB\"");
  EXPECT_EQ(FileError("lease = 60\n"),
            "m.toml:1: lease = 60 is not accepted; write a duration from 1s to 10m, such as \"1m\"");
  EXPECT_EQ(FileError("sync = \"true\"\n"), "m.toml:1: sync = \"true\" is not accepted; write true or false");
  EXPECT_EQ(FileError("listen = \"h:99999\"\n"),
            "m.toml:1: listen = \"h:99999\" is not accepted; write an address as \"HOST:PORT\"");
  EXPECT_EQ(FileError("replication = 1.5\n"),
            "m.toml:1: replication = a fraction is not accepted; write a whole number from 1 to 16");
  EXPECT_EQ(FileError("[log]\nlevel = \"loud\"\n"),
            "m.toml:2: log.level = \"loud\" is not accepted; write one of \"debug\", \"info\"");
}

TEST_F(ConfigTest, FirstMistakeInTheFileIsNamed) {
  // `zzz` comes first in the file, `replication` first in the alphabet.
  EXPECT_TRUE(FileError("zzz = 1\nreplication = 0\n").starts_with("m.toml:1: unknown key zzz"));
}

TEST_F(ConfigTest, FlagErrorsNameTheFlag) {
  auto status = config.Set("replication", "many", "--replication");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "--replication: replication = \"many\" is not accepted; write a whole number from 1 to 16");
  EXPECT_EQ(s.replication, 3);
}

TEST_F(ConfigTest, RequiredKeyMustBeSet) {
  auto status = config.Check();
  ASSERT_FALSE(status);
  EXPECT_TRUE(status.error().message.starts_with("dir is not set; give --dir")) << status.error().message;
  ASSERT_TRUE(config.Set("dir", "/d"));
  EXPECT_TRUE(config.Check());
}

TEST_F(ConfigTest, FlagSpelling) {
  EXPECT_EQ(config.keys()[2].flag(), "--chunk-size");
  EXPECT_EQ(config.keys().back().flag(), "--log-level");
}

TEST_F(ConfigTest, SampleDocumentsEveryKey) {
  EXPECT_EQ(config.Sample(),
            "# Where everything is kept.\n"
            "# Required: a text in quotes.\n"
            "dir = \"\"\n"
            "\n"
            "# Replicas of a new file.\n"
            "# Accepted: a whole number from 1 to 16.\n"
            "# replication = 3\n"
            "\n"
            "# Of files that do not say otherwise.\n"
            "# A power of two.\n"
            "# Accepted: a size from 1MiB to 1GiB, such as \"64MiB\".\n"
            "# chunk_size = \"64MiB\"\n"
            "\n"
            "# Of a primary.\n"
            "# Accepted: a duration from 1s to 10m, such as \"1m\".\n"
            "# lease = \"1m\"\n"
            "\n"
            "# Whether close is durable.\n"
            "# Accepted: true or false.\n"
            "# sync = true\n"
            "\n"
            "# Where to listen.\n"
            "# Accepted: an address as \"HOST:PORT\".\n"
            "# listen = \"127.0.0.1:7400\"\n"
            "\n"
            "[log]\n"
            "# What is logged.\n"
            "# Accepted: one of \"debug\", \"info\".\n"
            "# level = \"info\"\n");
}

// What the sample shows as defaults must be accepted, and change nothing.
TEST_F(ConfigTest, SampleWithEveryKeyUncommentedReadsBack) {
  std::string text;
  std::string_view rest = text = config.Sample();
  std::string enabled;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n') + 1);
    rest.remove_prefix(line.size());
    if (line.starts_with("# ") && line.find(" = ") != std::string_view::npos) line.remove_prefix(2);
    enabled += line;
  }
  auto status = config.ParseToml(enabled, "sample");
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(s.chunk_size, 64u << 20);
  EXPECT_EQ(s.lease, 60s);
  EXPECT_EQ(s.level, "info");
  for (const Config::Key& key : config.keys()) EXPECT_TRUE(key.set) << key.name;
}

}  // namespace
}  // namespace picket
