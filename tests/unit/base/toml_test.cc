#include "common/obs/toml.h"

#include <gtest/gtest.h>

namespace picket {
namespace {

TEST(Toml, TablesBecomeDottedKeysWithLines) {
  auto values = ParseToml("a = \"x\"\n\n[log]\nlevel = \"info\"\n[log.file]\nsize = 7\non = true\n", "f.toml");
  ASSERT_TRUE(values);
  ASSERT_EQ(values->size(), 4u);
  EXPECT_EQ(values->at("a").kind, TomlValue::Kind::kString);
  EXPECT_EQ(values->at("log.level").text, "info");
  EXPECT_EQ(values->at("log.level").line, 4u);
  EXPECT_EQ(values->at("log.file.size").kind, TomlValue::Kind::kInteger);
  EXPECT_EQ(values->at("log.file.size").text, "7");
  EXPECT_EQ(values->at("log.file.on").text, "true");
}

TEST(Toml, SyntaxErrorsNameFileAndLine) {
  for (const char* text : {"a = 1\nb = \n", "a = 1\nb = \"open\n", "a = 1\na = 2\n", "a = 1\n[b\n"}) {
    auto values = ParseToml(text, "f.toml");
    ASSERT_FALSE(values) << text;
    EXPECT_EQ(values.error().code, Code::kInvalidArgument);
    EXPECT_TRUE(values.error().message.starts_with("f.toml:2: ")) << values.error().message;
    EXPECT_EQ(values.error().message.find('\n'), std::string::npos);
  }
  EXPECT_FALSE(ParseToml("a = \"\xff\xfe\"\n", "f.toml"));
}

TEST(Toml, QuotedTextReadsBack) {
  const std::string text = "a\"b\\c\n\t\x7f caf\xc3\xa9";
  auto values = ParseToml("k = " + TomlQuote(text) + "\n", "f");
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(values->at("k").text, text);
}

}  // namespace
}  // namespace picket
