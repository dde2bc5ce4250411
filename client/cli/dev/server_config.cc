#include "client/cli/dev/server_config.h"

#include <fmt/format.h>

#include <toml++/toml.h>

#include <charconv>
#include <sstream>

namespace picket::cli::dev {
namespace {

constexpr std::string_view kHeader = "# Written by picket dev up, which writes it anew at each start.\n";

// Numbers and truth values as such, everything else as a string: "60s", "64MiB".
void Set(toml::table& table, std::string_view dotted_key, const std::string& value) {
  toml::table* at = &table;
  while (true) {
    const size_t dot = dotted_key.find('.');
    if (dot == std::string_view::npos) break;
    const std::string_view name = dotted_key.substr(0, dot);
    at = at->insert(name, toml::table{}).first->second.as_table();
    if (at == nullptr) return;
    dotted_key.remove_prefix(dot + 1);
  }
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (value == "true" || value == "false") {
    at->insert_or_assign(dotted_key, value == "true");
  } else if (error == std::errc() && end == value.data() + value.size()) {
    at->insert_or_assign(dotted_key, number);
  } else {
    at->insert_or_assign(dotted_key, value);
  }
}

std::string Render(const toml::table& table) {
  std::ostringstream out;
  out << kHeader << table << "\n";
  return out.str();
}

}  // namespace

std::string ServerConfig(const Layout& layout, const State& state, const Member& member) {
  toml::table table;
  Set(table, "dir", layout.data(member.name));
  Set(table, "listen", member.address());
  if (member.role == "chunkserver") Set(table, "master", state.master().address());
  if (const auto settings = state.settings.find(member.role); settings != state.settings.end()) {
    for (const auto& [key, value] : settings->second) Set(table, key, value);
  }
  return Render(table);
}

std::vector<std::string> InitArguments(const Layout& layout, const State&, const Member& member) {
  std::vector<std::string> args{"init", "--dir", layout.data(member.name)};
  if (member.role == "chunkserver") args.insert(args.end(), {"--secret", layout.secret_file()});
  return args;
}

std::string ClientConfig(const State& state) {
  toml::table table;
  Set(table, "master", state.master().address());
  return Render(table);
}

}  // namespace picket::cli::dev
