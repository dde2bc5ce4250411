// A TOML file as a flat list of values: dotted key, spelling, kind and line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace picket {

struct TomlValue {
  enum class Kind { kString, kInteger, kBool, kOther };  // kOther: a float, a date, an array
  Kind kind = Kind::kOther;
  std::string text;  // the string's content; an integer or bool as TOML spells it; else what it is
  uint32_t line = 0;
};

// Keys of tables are joined by dots. kInvalidArgument, with `file` and the line, for what is not TOML.
Result<std::map<std::string, TomlValue>> ParseToml(std::string_view text, std::string_view file);

// The text between TOML's double quotes, quotes included.
std::string TomlQuote(std::string_view text);

}  // namespace picket
