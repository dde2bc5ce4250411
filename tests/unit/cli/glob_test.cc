#include "client/cli/glob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace picket::cli {
namespace {

using testing::ElementsAre;

struct Case {
  const char* pattern;
  const char* name;
  bool matches;
};

TEST(Glob, Matches) {
  const Case cases[] = {
      {"*", "anything", true},
      {"*", "", true},
      {"*", ".hidden", false},
      {".*", ".hidden", true},
      {"?hidden", ".hidden", false},
      {"a*c", "abbbc", true},
      {"a*c", "abbbd", false},
      {"*a*b*", "xxaxxbxx", true},
      {"*ab", "aab", true},
      {"?", "ä", true},  // a character, not a byte
      {"??", "ä", false},
      {"[a-c]x", "bx", true},
      {"[a-c]x", "dx", false},
      {"[^a-c]x", "dx", true},
      {"[!a-c]x", "ax", false},
      {"[]]", "]", true},
      {"[a-]", "-", true},
      {"[ä-ü]", "ö", true},
      {"[x", "[x", true},  // no set without its end
      {"\\*", "*", true},
      {"\\*", "a", false},
      {"a\\[b\\]", "a[b]", true},
      {"", "", true},
      {"", "a", false},
  };
  for (const Case& c : cases) EXPECT_EQ(MatchesPattern(c.pattern, c.name), c.matches) << c.pattern << " " << c.name;
}

TEST(Glob, ManyStarsTakeNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 40; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesPattern(pattern + "b", std::string(4000, 'a')));
}

TEST(Glob, FindsPatternCharacters) {
  EXPECT_FALSE(HasPattern("/plain/path"));
  EXPECT_FALSE(HasPattern("/not\\*one"));
  for (const char* text : {"*", "a?", "[a]", "{a,b}"}) EXPECT_TRUE(HasPattern(text)) << text;
  EXPECT_EQ(Unescaped("a\\*b\\\\c"), "a*b\\c");
}

TEST(Glob, ExpandsBraces) {
  EXPECT_THAT(ExpandBraces("plain"), ElementsAre("plain"));
  EXPECT_THAT(ExpandBraces("a{b,c}d"), ElementsAre("abd", "acd"));
  EXPECT_THAT(ExpandBraces("a{b,c{d,e}}"), ElementsAre("ab", "acd", "ace"));
  EXPECT_THAT(ExpandBraces("{a,b}{c,d}"), ElementsAre("ac", "ad", "bc", "bd"));
  EXPECT_THAT(ExpandBraces("/x/{a/b,c}"), ElementsAre("/x/a/b", "/x/c"));
  EXPECT_THAT(ExpandBraces("{a,}"), ElementsAre("a", ""));
  EXPECT_THAT(ExpandBraces("\\{a,b}"), ElementsAre("\\{a,b}"));
  EXPECT_THAT(ExpandBraces("{a,b"), ElementsAre("{a,b"));
}

}  // namespace
}  // namespace picket::cli
