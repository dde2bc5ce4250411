#include "master/path.h"

#include <gtest/gtest.h>

namespace picket {
namespace {

using namespace std::string_literals;

TEST(PathTest, AcceptsAndNormalises) {
  const std::string longest(kMaxNameBytes, 'x');
  const struct {
    std::string text;
    std::string printed;
    size_t depth;
  } cases[] = {
      {"/", "/", 0},
      {"///", "/", 0},
      {"/a", "/a", 1},
      {"/a/", "/a", 1},
      {"//a///b//", "/a/b", 2},
      {"/" + longest, "/" + longest, 1},
      {"/...", "/...", 1},
      {"/.hidden/..x", "/.hidden/..x", 2},
      {"/a b/\ttab\n", "/a b/\ttab\n", 2},
      {"/grüße/日本/🙂", "/grüße/日本/🙂", 3},
  };
  for (const auto& c : cases) {
    auto path = Path::Parse(c.text);
    ASSERT_TRUE(path) << c.text << ": " << path.error().ToString();
    EXPECT_EQ(path->ToString(), c.printed);
    EXPECT_EQ(path->names().size(), c.depth);
  }
}

TEST(PathTest, RefusesWithTheReason) {
  std::string deep;
  for (size_t i = 0; i <= kMaxPathDepth; ++i) deep += "/d";
  const struct {
    std::string text;
    std::string reason;
  } cases[] = {
      {"", "empty"},
      {"a/b", "not absolute"},
      {"/a/./b", "'.' is not allowed"},
      {"/a/..", "'..' is not allowed"},
      {"/" + std::string(256, 'x'), "256 bytes; the limit is 255"},
      {"/a\0b"s, "NUL"},
      {"/\xff", "not valid UTF-8"},
      {"/ok/\xc3", "not valid UTF-8"},                // cut off
      {"/\xc0\xaf", "not valid UTF-8"},               // overlong '/'
      {"/\xe0\x80\xaf", "not valid UTF-8"},           // overlong
      {"/\xed\xa0\x80", "not valid UTF-8"},           // surrogate
      {"/\xf4\x90\x80\x80", "not valid UTF-8"},       // above U+10FFFF
      {"/" + std::string(kMaxPathBytes, '/'), "the limit is 8192"},
      {deep, "more than 1024 components"},
  };
  for (const auto& c : cases) {
    auto path = Path::Parse(c.text);
    ASSERT_FALSE(path) << Quoted(c.text);
    EXPECT_EQ(path.error().code, Code::kInvalidArgument);
    EXPECT_TRUE(path.error().message.contains(c.reason)) << path.error().message;
    EXPECT_TRUE(IsUtf8(path.error().message));
    EXPECT_FALSE(path.error().message.contains('\n'));
  }
}

TEST(PathTest, NamesOf255BytesOfMultibyteCharactersFit) {
  std::string name;
  while (name.size() + 3 <= kMaxNameBytes) name += "語";
  EXPECT_EQ(name.size(), 255u);
  EXPECT_TRUE(CheckName(name));
  EXPECT_FALSE(CheckName(name + "a"));
}

TEST(PathTest, NamesAreJudged) {
  for (std::string_view bad : {"", ".", "..", "a/b", "/", "\x80"}) EXPECT_FALSE(CheckName(bad)) << Quoted(bad);
  for (std::string_view good : {"...", " ", "-rf", "a\\b", "*"}) EXPECT_TRUE(CheckName(good));
}

TEST(PathTest, Relations) {
  const Path root = *Path::Parse("/");
  const Path a = *Path::Parse("/a");
  const Path ab = *Path::Parse("/a/b");
  EXPECT_TRUE(ab.IsWithin(a));
  EXPECT_TRUE(ab.IsWithin(root));
  EXPECT_TRUE(a.IsWithin(a));
  EXPECT_FALSE(a.IsWithin(ab));
  EXPECT_FALSE(Path::Parse("/ab")->IsWithin(a));
  EXPECT_EQ(ab.Parent(), a);
  EXPECT_EQ(root.Parent(), root);
  EXPECT_EQ(ab.name(), "b");
  EXPECT_EQ(root.name(), "");
}

TEST(PathTest, QuotedIsOnePrintableLine) {
  EXPECT_EQ(Quoted("a\n\x1b[31m"), "'a\\x0A\\x1B[31m'");
  EXPECT_EQ(Quoted("\xff\x7f"), "'\\xFF\\x7F'");
  EXPECT_EQ(Quoted("\xc2\x9b"), "'\\xC2\\x9B'");
  EXPECT_EQ(Quoted("grüße"), "'grüße'");
  EXPECT_LT(Quoted(std::string(10000, 'x')).size(), 400u);
}

}  // namespace
}  // namespace picket
