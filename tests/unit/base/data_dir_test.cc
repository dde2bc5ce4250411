#include "common/identity/data_dir.h"

#include <gtest/gtest.h>

#include "tests/sim/node.h"

namespace picket {
namespace {

constexpr char kCluster[] = "00112233445566aa";

class DataDirTest : public testing::Test {
 protected:
  DataDirTest() { node.Start(); }

  template <class T>
  T Run(Task<T> task) {
    auto value = sim::RunTask(world, node, std::move(task));
    PICKET_CHECK(value.has_value());
    return std::move(*value);
  }
  Status Init(std::string dir, std::string role = "chunkserver", std::map<std::string, std::string> files = {}) {
    return Run(InitDataDir(&node, std::move(dir), std::move(role), kCluster, ServerId(0xab), std::move(files)));
  }
  Result<DataDir> Open(std::string dir, std::string role = "chunkserver") {
    return Run(DataDir::Open(&node, std::move(dir), std::move(role)));
  }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(Run(WriteFileAtomic(&node.fs(), path, text)));
  }
  // One line that names the directory and a next step.
  void ExpectError(const Error& e, Code code, std::string_view cause, std::string_view next_step) {
    EXPECT_EQ(e.code, code) << e.ToString();
    EXPECT_NE(e.message.find("/d"), std::string::npos) << e.ToString();
    EXPECT_NE(e.message.find(cause), std::string::npos) << e.ToString();
    EXPECT_NE(e.next_step.find(next_step), std::string::npos) << e.ToString();
    EXPECT_EQ(e.ToString().find('\n'), std::string::npos) << e.ToString();
  }

  sim::World world;
  sim::Node& node = world.AddNode("a");
};

TEST_F(DataDirTest, InitThenOpenSurvivesAPowerCut) {
  ASSERT_TRUE(Init("/d/", "chunkserver", {{"cluster.secret", "s"}}));
  node.Restart(sim::Node::Death::kPower);
  auto dir = Open("/d");
  ASSERT_TRUE(dir) << dir.error().ToString();
  EXPECT_EQ(dir->identity().role, "chunkserver");
  EXPECT_EQ(dir->identity().cluster, kCluster);
  EXPECT_EQ(dir->identity().server, ServerId(0xab));
  EXPECT_EQ(dir->identity().format, kDataDirFormat);
  EXPECT_NE(dir->identity().created_ns, 0);
  EXPECT_EQ(dir->Path("x"), "/d/x");
  EXPECT_EQ(Run(ReadFile(&node.fs(), "/d/cluster.secret")), "s");
}

TEST_F(DataDirTest, InitRefusesASecondTime) {
  ASSERT_TRUE(Init("/d"));
  auto again = Init("/d", "master");
  ASSERT_FALSE(again);
  ExpectError(again.error(), Code::kAlreadyExists, "already initialised as chunkserver of cluster 00112233445566aa",
              "another directory");
}

TEST_F(DataDirTest, InitRefusesWhatIsNotEmpty) {
  ASSERT_TRUE(Run(node.fs().MakeDir("/d")));
  Write("/d/photo.jpg", "x");
  auto status = Init("/d");
  ASSERT_FALSE(status);
  ExpectError(status.error(), Code::kNotEmpty, "photo.jpg", "empty directory");
}

TEST_F(DataDirTest, InitTakesAFreshDisk) {
  ASSERT_TRUE(Run(node.fs().MakeDir("/d")));
  ASSERT_TRUE(Run(node.fs().MakeDir("/d/lost+found")));
  EXPECT_TRUE(Init("/d"));
  EXPECT_TRUE(Open("/d"));
}

TEST_F(DataDirTest, OpenRefusesAMissingDirectory) {
  auto dir = Open("/d");
  ASSERT_FALSE(dir);
  ExpectError(dir.error(), Code::kNotFound, "does not exist", "picket-chunkserver init");
}

TEST_F(DataDirTest, OpenTakesAnEmptyOneForAnUnmountedDisk) {
  ASSERT_TRUE(Run(node.fs().MakeDir("/d")));
  auto dir = Open("/d");
  ASSERT_FALSE(dir);
  ExpectError(dir.error(), Code::kNotFound, "is empty: an unmounted disk?",
              "run `picket-chunkserver init` only on a new disk");
  ASSERT_TRUE(Run(node.fs().MakeDir("/d/lost+found")));
  EXPECT_EQ(Open("/d").error().code, Code::kNotFound);
  EXPECT_EQ(Run(node.fs().List("/d"))->size(), 1u) << "a refused directory is left as it was";
}

TEST_F(DataDirTest, OpenRefusesAForeignOne) {
  ASSERT_TRUE(Run(node.fs().MakeDir("/d")));
  Write("/d/photo.jpg", "x");
  auto dir = Open("/d");
  ASSERT_FALSE(dir);
  ExpectError(dir.error(), Code::kInvalidArgument, "is foreign: it holds photo.jpg", "picket-chunkserver init");
}

TEST_F(DataDirTest, OpenRefusesAnotherRoles) {
  ASSERT_TRUE(Init("/d", "master"));
  auto dir = Open("/d");
  ASSERT_FALSE(dir);
  ExpectError(dir.error(), Code::kInvalidArgument, "belongs to a master of cluster 00112233445566aa",
              "picket-chunkserver init");
}

TEST_F(DataDirTest, OpenRefusesANewerFormatWhateverElseItHolds) {
  ASSERT_TRUE(Run(node.fs().MakeDir("/d")));
  Write("/d/picket.toml", "format = 2\nrole = [\"changed\"]\n");
  auto dir = Open("/d");
  ASSERT_FALSE(dir);
  ExpectError(dir.error(), Code::kUnsupported, "has format 2, this release reads formats up to 1", "newer release");
}

TEST_F(DataDirTest, OpenRefusesADamagedIdentity) {
  ASSERT_TRUE(Run(node.fs().MakeDir("/d")));
  for (const char* text : {"", "format = 1\n", "format = 0\nrole = \"chunkserver\"\n", "format = \"1\"\n", "\x01\x02",
                           "format = 1\nrole = \"chunkserver\"\ncluster = \"c\"\ncreated_ns = 1\nserver = \"zz\"\n"}) {
    Write("/d/picket.toml", text);
    auto dir = Open("/d");
    ASSERT_FALSE(dir) << text;
    ExpectError(dir.error(), Code::kInvalidArgument, "is not the identity", "restore");
  }
}

TEST_F(DataDirTest, OpenLocks) {
  ASSERT_TRUE(Init("/d"));
  {
    auto first = Open("/d");
    ASSERT_TRUE(first);
    auto second = Open("/d");
    ASSERT_FALSE(second);
    ExpectError(second.error(), Code::kUnavailable, "in use by another process", "stop that server");
  }
  EXPECT_TRUE(Open("/d")) << "the lock goes with its owner";
}

// A disk that cannot be read must not be taken for an empty one.
TEST_F(DataDirTest, ReadErrorsAreIoErrors) {
  ASSERT_TRUE(Init("/d"));
  node.disk().faults.fail_reads = true;
  auto dir = Open("/d");
  node.disk().faults.fail_reads = false;
  ASSERT_FALSE(dir);
  EXPECT_EQ(dir.error().code, Code::kIoError) << dir.error().ToString();
}

}  // namespace
}  // namespace picket
