#include "client/cli/local_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace picket::cli {
namespace {

namespace fs = std::filesystem;
using client::ErrorKind;

class LocalFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/picket-cli-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  void Write(const std::string& name, const std::string& content) { std::ofstream(Path(name)) << content; }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  size_t Entries() const { return static_cast<size_t>(std::distance(fs::directory_iterator(dir_), {})); }

  std::string dir_;
};

TEST_F(LocalFileTest, PendingFileAppearsWhenItIsComplete) {
  {
    auto file = PendingFile::Create(Path("out"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(WriteLocalAt(file->fd(), 3, {"def", 3}));
    ASSERT_TRUE(WriteLocalAt(file->fd(), 0, {"abc", 3}));
    EXPECT_FALSE(fs::exists(Path("out")));
    ASSERT_TRUE(file->SetAttributes({.mode = 0600, .mtime_ns = 1'700'000'000'000'000'005}));
    ASSERT_TRUE(file->Commit(false));
  }
  EXPECT_EQ(Read("out"), "abcdef");
  EXPECT_EQ(Entries(), 1u);
  const auto status = StatLocal(Path("out"), false);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->mode, 0600u);
  EXPECT_EQ(status->mtime_ns, 1'700'000'000'000'000'005);
}

TEST_F(LocalFileTest, PendingFileLeavesNothingBehind) {
  {
    auto file = PendingFile::Create(Path("out"));
  }
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(LocalFileTest, PendingFileReplacesOnlyWhenAsked) {
  Write("out", "old");
  {
    auto file = PendingFile::Create(Path("out"));
    ASSERT_TRUE(file);
    const auto committed = file->Commit(false);
    ASSERT_FALSE(committed);
    EXPECT_EQ(committed.error().kind, ErrorKind::kAlreadyExists);
  }
  EXPECT_EQ(Read("out"), "old");
  EXPECT_EQ(Entries(), 1u);
  auto file = PendingFile::Create(Path("out"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Commit(true));
  EXPECT_EQ(Read("out"), "");
}

TEST_F(LocalFileTest, WhatAKilledProcessLeftBehindIsTidiedUp) {
  Write(".picket-get-abandon", "half");
  Write(".picket-gets", "mine");
  auto file = PendingFile::Create(Path("out"));
  ASSERT_TRUE(file);
  PendingFile::RemoveAbandoned(dir_);
  EXPECT_FALSE(fs::exists(Path(".picket-get-abandon")));
  EXPECT_TRUE(fs::exists(Path(".picket-gets")));
  ASSERT_TRUE(file->Commit(false)) << "what is being written was left alone";
  EXPECT_EQ(Entries(), 2u);
}

TEST_F(LocalFileTest, TellsTypesApart) {
  Write("file", "abc");
  fs::create_symlink("file", Path("link"));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(StatLocal(Path("file"), false)->type, LocalStatus::Type::kFile);
  EXPECT_EQ(StatLocal(Path("link"), false)->type, LocalStatus::Type::kSymlink);
  EXPECT_EQ(StatLocal(Path("link"), true)->type, LocalStatus::Type::kFile);
  EXPECT_EQ(StatLocal(Path("pipe"), true)->type, LocalStatus::Type::kSpecial);
  EXPECT_EQ(StatLocal(dir_, false)->type, LocalStatus::Type::kDirectory);
  EXPECT_EQ(StatLocal(Path("absent"), false).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(*ListLocal(dir_), (std::vector<std::string>{"file", "link", "pipe"}));
}

}  // namespace
}  // namespace picket::cli
