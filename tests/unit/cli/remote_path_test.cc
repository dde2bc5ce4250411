#include "client/cli/remote_path.h"

#include <gtest/gtest.h>

namespace picket::cli {
namespace {

TEST(RemotePath, Resolves) {
  EXPECT_EQ(ResolvePath("/a/b", "me"), "/a/b");
  EXPECT_EQ(ResolvePath("//a///b/", "me"), "/a/b");
  EXPECT_EQ(ResolvePath("/", "me"), "/");
  EXPECT_EQ(ResolvePath("a", "me"), "/user/me/a");
  EXPECT_EQ(ResolvePath(".", "me"), "/user/me");
  EXPECT_EQ(ResolvePath("/a/./b/../c", "me"), "/a/c");
  EXPECT_EQ(ResolvePath("/../..", "me"), "/");
  EXPECT_EQ(ResolvePath("picket://host:1/a", "me"), "/a");
  EXPECT_EQ(ResolvePath("picket://host:1", "me"), "/");
}

TEST(RemotePath, Parts) {
  EXPECT_EQ(JoinPath("/", "a"), "/a");
  EXPECT_EQ(JoinPath("/a", "b"), "/a/b");
  EXPECT_EQ(BaseName("/a/b"), "b");
  EXPECT_EQ(BaseName("/"), "");
  EXPECT_EQ(ParentPath("/a/b"), "/a");
  EXPECT_EQ(ParentPath("/a"), "/");
  EXPECT_TRUE(IsWithin("/a/b", "/a"));
  EXPECT_TRUE(IsWithin("/a", "/a"));
  EXPECT_TRUE(IsWithin("/a", "/"));
  EXPECT_FALSE(IsWithin("/ab", "/a"));
}

}  // namespace
}  // namespace picket::cli
