#include "common/obs/toml.h"

#include <fmt/format.h>
#include <toml++/toml.h>

namespace picket {
namespace {

void Flatten(const toml::table& table, const std::string& prefix, std::map<std::string, TomlValue>* out) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      Flatten(*inner, name + ".", out);
      continue;
    }
    TomlValue value;
    value.line = node.source().begin.line;
    if (const auto* s = node.as_string()) {
      value.kind = TomlValue::Kind::kString;
      value.text = s->get();
    } else if (const auto* i = node.as_integer()) {
      value.kind = TomlValue::Kind::kInteger;
      value.text = std::to_string(i->get());
    } else if (const auto* b = node.as_boolean()) {
      value.kind = TomlValue::Kind::kBool;
      value.text = b->get() ? "true" : "false";
    } else {
      value.text = node.is_array() ? "an array" : node.is_floating_point() ? "a fraction" : "a date or time";
    }
    out->emplace(name, std::move(value));
  }
}

}  // namespace

Result<std::map<std::string, TomlValue>> ParseToml(std::string_view text, std::string_view file) {
  // toml++ reports syntax errors by exception; none leaves this function.
  try {
    std::map<std::string, TomlValue> out;
    Flatten(toml::parse(text, file), "", &out);
    return out;
  } catch (const toml::parse_error& e) {
    std::string why(e.description());
    std::replace(why.begin(), why.end(), '\n', ' ');
    return Fail(Code::kInvalidArgument, fmt::format("{}:{}: {}", file, e.source().begin.line, why));
  }
}

std::string TomlQuote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace picket
