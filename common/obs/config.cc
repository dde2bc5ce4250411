#include "common/obs/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "common/base/check.h"
#include "common/obs/nearest.h"
#include "common/obs/toml.h"
#include "common/obs/units.h"

namespace picket {
namespace {

std::string Joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + TomlQuote(w);
  return out;
}

std::string Prefix(std::string_view origin) { return origin.empty() ? "" : fmt::format("{}: ", origin); }

}  // namespace

std::string Config::Key::flag() const {
  std::string out = "--" + name;
  std::replace(out.begin() + 2, out.end(), '_', '-');
  std::replace(out.begin() + 2, out.end(), '.', '-');
  return out;
}

void Config::Add(Key key) {
  PICKET_CHECK(Find(key.name) == nullptr);
  keys_.push_back(std::move(key));
}

void Config::Text(std::string name, std::string* field, std::string doc) {
  Key key;
  key.accepts = "a text in quotes";
  key.initial = TomlQuote(*field);
  key.assign = [field](std::string_view text) {
    *field = text;
    return true;
  };
  key.name = std::move(name);
  key.doc = std::move(doc);
  Add(std::move(key));
}

void Config::Word(std::string name, std::string* field, std::vector<std::string> words, std::string doc) {
  Key key;
  key.accepts = "one of " + Joined(words);
  key.initial = TomlQuote(*field);
  key.assign = [field, words = std::move(words)](std::string_view text) {
    if (std::find(words.begin(), words.end(), text) == words.end()) return false;
    *field = text;
    return true;
  };
  key.name = std::move(name);
  key.doc = std::move(doc);
  Add(std::move(key));
}

void Config::Integer(std::string name, int64_t* field, int64_t low, int64_t high, std::string doc) {
  Key key;
  key.kind = Key::Kind::kInteger;
  key.accepts = fmt::format("a whole number from {} to {}", low, high);
  key.initial = std::to_string(*field);
  key.assign = [field, low, high](std::string_view text) {
    int64_t value = 0;
    auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc() || end != text.data() + text.size() || value < low || value > high) return false;
    *field = value;
    return true;
  };
  key.name = std::move(name);
  key.doc = std::move(doc);
  Add(std::move(key));
}

void Config::Size(std::string name, uint64_t* field, uint64_t low, uint64_t high, std::string doc) {
  Key key;
  key.kind = Key::Kind::kSize;
  key.initial = TomlQuote(FormatSize(*field));
  key.accepts = fmt::format("a size from {} to {}, such as {}", FormatSize(low), FormatSize(high), key.initial);
  key.assign = [field, low, high](std::string_view text) {
    auto value = ParseSize(text);
    if (!value || *value < low || *value > high) return false;
    *field = *value;
    return true;
  };
  key.name = std::move(name);
  key.doc = std::move(doc);
  Add(std::move(key));
}

void Config::Duration(std::string name, Nanos* field, Nanos low, Nanos high, std::string doc) {
  Key key;
  key.kind = Key::Kind::kDuration;
  key.initial = TomlQuote(FormatDuration(*field));
  key.accepts =
      fmt::format("a duration from {} to {}, such as {}", FormatDuration(low), FormatDuration(high), key.initial);
  key.assign = [field, low, high](std::string_view text) {
    auto value = ParseDuration(text);
    if (!value || *value < low || *value > high) return false;
    *field = *value;
    return true;
  };
  key.name = std::move(name);
  key.doc = std::move(doc);
  Add(std::move(key));
}

void Config::Bool(std::string name, bool* field, std::string doc) {
  Key key;
  key.kind = Key::Kind::kBool;
  key.accepts = "true or false";
  key.initial = *field ? "true" : "false";
  key.assign = [field](std::string_view text) {
    if (text != "true" && text != "false") return false;
    *field = text == "true";
    return true;
  };
  key.name = std::move(name);
  key.doc = std::move(doc);
  Add(std::move(key));
}

void Config::Address(std::string name, Endpoint* field, std::string doc, uint16_t default_port) {
  Key key;
  key.accepts = "an address as \"HOST:PORT\"";
  key.initial = TomlQuote(field->host.empty() ? "" : field->ToString());
  key.assign = [field, default_port](std::string_view text) {
    auto value = ParseEndpoint(text, default_port);
    if (!value) return false;
    *field = std::move(*value);
    return true;
  };
  key.name = std::move(name);
  key.doc = std::move(doc);
  Add(std::move(key));
}

void Config::Required() {
  PICKET_CHECK(!keys_.empty());
  keys_.back().required = true;
}

Config::Key* Config::Find(std::string_view name) {
  auto it = std::find_if(keys_.begin(), keys_.end(), [&](const Key& k) { return k.name == name; });
  return it == keys_.end() ? nullptr : &*it;
}

Status Config::Unknown(std::string_view name, std::string_view origin) const {
  std::vector<std::string> names;
  for (const Key& key : keys_) names.push_back(key.name);
  std::string hint = DidYouMean(name, names);
  if (hint.empty()) hint = "; --sample-config lists all keys";
  return Fail(Code::kInvalidArgument, fmt::format("{}unknown key {}{}", Prefix(origin), name, hint));
}

Status Config::ParseToml(std::string_view text, std::string_view file) {
  auto values = picket::ParseToml(text, file);
  if (!values) return Fail(values.error());
  // The first mistake in the file is the one to name.
  std::vector<std::pair<uint32_t, Error>> errors;
  for (const auto& [name, value] : *values) {
    const std::string origin = fmt::format("{}:{}", file, value.line);
    Key* key = Find(name);
    if (key == nullptr) {
      errors.emplace_back(value.line, Unknown(name, origin).error());
      continue;
    }
    using Kind = TomlValue::Kind;
    const bool fits = key->kind == Key::Kind::kBool      ? value.kind == Kind::kBool
                      : key->kind == Key::Kind::kInteger ? value.kind == Kind::kInteger
                      : key->kind == Key::Kind::kSize    ? value.kind == Kind::kString || value.kind == Kind::kInteger
                                                         : value.kind == Kind::kString;
    const std::string shown = value.kind == Kind::kString ? TomlQuote(value.text) : value.text;
    if (!fits || !key->assign(value.text)) {
      errors.emplace_back(value.line, Error(Code::kInvalidArgument, fmt::format("{}: {} = {} is not accepted; write {}",
                                                                                origin, name, shown, key->accepts)));
      continue;
    }
    key->set = true;
  }
  if (errors.empty()) return {};
  return Fail(std::min_element(errors.begin(), errors.end(), [](auto& a, auto& b) { return a.first < b.first; })->second);
}

Status Config::Set(std::string_view name, std::string_view text, std::string_view origin) {
  Key* key = Find(name);
  if (key == nullptr) return Unknown(name, origin);
  if (!key->assign(text)) {
    return Fail(Code::kInvalidArgument, fmt::format("{}{} = {} is not accepted; write {}", Prefix(origin), name,
                                                    TomlQuote(text), key->accepts));
  }
  key->set = true;
  return {};
}

Status Config::Check() const {
  for (const Key& key : keys_) {
    if (!key.required || key.set) continue;
    return Fail(Code::kInvalidArgument, fmt::format("{} is not set; give {} or write it in the configuration file: {}",
                                                    key.name, key.flag(), key.accepts));
  }
  return {};
}

std::string Config::Sample() const {
  // By table; TOML wants the keys that are in none first, and the empty name sorts first.
  std::map<std::string, std::vector<const Key*>> tables;
  for (const Key& key : keys_) {
    const size_t dot = key.name.rfind('.');
    tables[dot == std::string::npos ? "" : key.name.substr(0, dot)].push_back(&key);
  }
  std::string out;
  for (const auto& [table, keys] : tables) {
    if (!table.empty()) out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", table);
    for (const Key* key : keys) {
      if (!out.empty() && (table.empty() || key != keys.front())) out += '\n';
      std::string_view rest = key->doc;
      while (!rest.empty()) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        out += line.empty() ? "#\n" : fmt::format("# {}\n", line);
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      }
      out += fmt::format("# {}: {}.\n", key->required ? "Required" : "Accepted", key->accepts);
      const std::string leaf = table.empty() ? key->name : key->name.substr(table.size() + 1);
      out += fmt::format("{}{} = {}\n", key->required ? "" : "# ", leaf, key->initial);
    }
  }
  return out;
}

}  // namespace picket
