// Patterns over remote paths, as in `hdfs dfs`: `*`, `?`, `[a-z]`, `[^a]`, `{a,b}`, and `\` before a
// character takes it literally. As in a shell, a leading dot is matched only by a literal dot.
// Pure: strings in, strings out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace picket::cli {

// True if the text has a pattern character that is not escaped.
bool HasPattern(std::string_view text);

// The text with each `\c` replaced by `c`.
std::string Unescaped(std::string_view text);

// "a{b,c{d,e}}" → "ab", "acd", "ace". Unbalanced braces are literal.
std::vector<std::string> ExpandBraces(std::string_view pattern);

// Whether a name (no slashes) matches a pattern that has no braces left.
bool MatchesPattern(std::string_view pattern, std::string_view name);

}  // namespace picket::cli
