#include "client/cli/glob.h"

#include <cstdint>
#include <optional>

namespace picket::cli {
namespace {

// One UTF-8 character from the front of `text`: `?` and sets match characters, not bytes.
std::string_view FirstCharacter(std::string_view text) {
  size_t n = 1;
  while (n < text.size() && (static_cast<uint8_t>(text[n]) & 0xC0) == 0x80) ++n;
  return text.substr(0, n);
}

struct SetMatch {
  bool matches = false;
  size_t length = 0;  // of the set in the pattern, both brackets included
};

// `pattern` begins with '['. nullopt: no closing bracket, so the bracket is literal.
std::optional<SetMatch> MatchSet(std::string_view pattern, std::string_view character) {
  size_t at = 1;
  const bool negated = at < pattern.size() && (pattern[at] == '^' || pattern[at] == '!');
  if (negated) ++at;
  bool found = false;
  auto take = [&]() {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    const std::string_view c = FirstCharacter(pattern.substr(at));
    at += c.size();
    return c;
  };
  for (bool first = true; at < pattern.size(); first = false) {
    if (pattern[at] == ']' && !first) return SetMatch{found != negated, at + 1};
    const std::string_view low = take();
    std::string_view high = low;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      ++at;
      high = take();
    }
    // Byte order of UTF-8 is the order of code points.
    found = found || (low <= character && character <= high);
  }
  return std::nullopt;
}

bool Match(std::string_view pattern, std::string_view name) {
  // A later '*' makes earlier ones final, so one point of return is enough.
  std::optional<std::string_view> star_pattern;
  std::string_view star_name;
  while (true) {
    if (!pattern.empty() && pattern[0] == '*') {
      pattern.remove_prefix(1);
      star_pattern = pattern;
      star_name = name;
      continue;
    }
    if (name.empty() && pattern.empty()) return true;
    size_t pattern_step = 0;
    size_t name_step = 0;
    if (!name.empty() && !pattern.empty()) {
      const std::string_view character = FirstCharacter(name);
      std::optional<SetMatch> set;
      if (pattern[0] == '[') set = MatchSet(pattern, character);
      if (set) {
        if (set->matches) pattern_step = set->length, name_step = character.size();
      } else if (pattern[0] == '?') {
        pattern_step = 1, name_step = character.size();
      } else {
        const size_t escape = pattern[0] == '\\' && pattern.size() > 1 ? 1 : 0;
        if (pattern[escape] == name[0]) pattern_step = escape + 1, name_step = 1;
      }
    }
    if (pattern_step > 0) {
      pattern.remove_prefix(pattern_step);
      name.remove_prefix(name_step);
      continue;
    }
    if (!star_pattern || star_name.empty()) return false;
    star_name.remove_prefix(FirstCharacter(star_name).size());
    pattern = *star_pattern;
    name = star_name;
  }
}

}  // namespace

bool HasPattern(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '*' || text[i] == '?' || text[i] == '[' || text[i] == '{') {
      return true;
    }
  }
  return false;
}

std::string Unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return out;
}

std::vector<std::string> ExpandBraces(std::string_view pattern) {
  size_t open = std::string_view::npos;
  std::vector<size_t> cuts;  // of the outermost pair: '{', each ',', '}'
  int depth = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      ++i;
    } else if (c == '{') {
      if (depth++ == 0) {
        open = i;
        cuts = {i};
      }
    } else if (c == ',' && depth == 1) {
      cuts.push_back(i);
    } else if (c == '}' && depth > 0 && --depth == 0) {
      cuts.push_back(i);
      break;
    }
  }
  if (open == std::string_view::npos || depth != 0) return {std::string(pattern)};

  std::vector<std::string> out;
  const std::string_view before = pattern.substr(0, open);
  const std::vector<std::string> tails = ExpandBraces(pattern.substr(cuts.back() + 1));
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const std::string_view choice = pattern.substr(cuts[i] + 1, cuts[i + 1] - cuts[i] - 1);
    for (const std::string& middle : ExpandBraces(choice)) {
      for (const std::string& tail : tails) out.push_back(std::string(before) + middle + tail);
    }
  }
  return out;
}

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  const bool hidden = !name.empty() && name[0] == '.';
  const bool dot_named = !pattern.empty() && (pattern[0] == '.' || pattern.substr(0, 2) == "\\.");
  return (!hidden || dot_named) && Match(pattern, name);
}

}  // namespace picket::cli
