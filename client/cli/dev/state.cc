#include "client/cli/dev/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace picket::cli::dev {
namespace {

constexpr int kFormat = 1;

}  // namespace

void State::Grow(size_t chunkservers) {
  if (members.empty()) members.push_back({"master", "master"});
  while (members.size() <= chunkservers) {
    members.push_back({fmt::format("chunkserver-{}", members.size()), "chunkserver"});
  }
}

DevResult<State> LoadState(const Layout& layout) {
  std::error_code error;
  if (!std::filesystem::exists(layout.directory(), error) || std::filesystem::is_empty(layout.directory(), error)) {
    return DevFail(kExitNotFound, layout.directory(), "no local cluster here; make one: picket dev up");
  }
  std::ifstream file(layout.state_file());
  const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("picket_dev") || !json.contains("members")) {
    return DevFail(kExitConflict, layout.directory(),
                   "not a directory of picket dev (no picket-dev.json); choose another one with --dir");
  }
  if (json["picket_dev"] != kFormat) {
    return DevFail(kExitConflict, layout.directory(),
                   fmt::format("made by another version of picket dev (format {}, this is {})",
                               json["picket_dev"].dump(), kFormat));
  }
  State state;
  for (const auto& member : json["members"]) {
    state.members.push_back({member.value("name", ""), member.value("role", ""), member.value("port", uint16_t{0})});
  }
  state.settings = json.value("settings", decltype(state.settings){});
  if (state.members.empty()) return DevFail(kExitConflict, layout.state_file(), "names no processes; it is damaged");
  return state;
}

DevResult<> SaveState(const Layout& layout, const State& state) {
  nlohmann::ordered_json json{{"picket_dev", kFormat}, {"members", nlohmann::ordered_json::array()}};
  for (const Member& member : state.members) {
    json["members"].push_back({{"name", member.name}, {"role", member.role}, {"port", member.port}});
  }
  json["settings"] = state.settings;
  return WriteFile(layout.state_file(), json.dump(2) + "\n");
}

DevResult<StateLock> StateLock::Take(const Layout& layout) {
  const int fd = open(layout.lock_file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return DevFail(kExitFailure, layout.lock_file(), strerror(errno));
  StateLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return DevFail(kExitConflict, layout.directory(), "another picket dev command is at work here; wait for its end");
  }
  return lock;
}

StateLock::StateLock(StateLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

StateLock::~StateLock() {
  if (fd_ >= 0) close(fd_);
}

DevResult<> WriteFile(const std::string& path, const std::string& content) {
  const std::string partial = path + ".new";
  std::ofstream file(partial, std::ios::trunc);
  file << content;
  file.close();
  if (!file || rename(partial.c_str(), path.c_str()) != 0) {
    return DevFail(kExitFailure, path, fmt::format("could not be written: {}", strerror(errno)));
  }
  return {};
}

}  // namespace picket::cli::dev
