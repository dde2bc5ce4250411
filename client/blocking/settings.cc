#include "client/blocking/settings.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "common/obs/config.h"

namespace picket::client {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string UserName() {
  std::vector<char> room(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, room.data(), room.size(), &found) == 0 && found != nullptr) return found->pw_name;
  return std::to_string(geteuid());
}

std::string GroupName() {
  std::vector<char> room(64 << 10);
  group entry{};
  group* found = nullptr;
  if (getgrgid_r(getegid(), &entry, room.data(), room.size(), &found) == 0 && found != nullptr) return found->gr_name;
  return std::to_string(getegid());
}

// The master's address as the configuration file has it; "" when there is no file to look at.
picket::Result<std::string> MasterFromFile(const Options& options) {
  std::string file = options.config_file.empty() ? Variable("PICKET_CONFIG") : options.config_file;
  const bool asked_for = !file.empty();
  if (!asked_for) {
    const std::string home = Variable("HOME");
    if (home.empty()) return std::string();
    file = home + "/.config/picket/client.toml";
  }
  std::ifstream in(file);
  if (!in) {
    if (!asked_for && errno == ENOENT) return std::string();
    return Fail(Code::kInvalidArgument, "configuration file " + file + ": " + std::strerror(errno));
  }
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::string master;
  Config config;
  config.Text("master", &master, "Address of the master, host:port.");
  PICKET_TRY(config.ParseToml(text, file));
  if (master.empty() && asked_for) return Fail(Code::kInvalidArgument, file + " does not name a master: no key `master`");
  return master;
}

}  // namespace

picket::Result<FileSystemOptions> ResolveSettings(const Options& options) {
  FileSystemOptions out;
  std::string master = options.master.empty() ? Variable("PICKET_MASTER") : options.master;
  if (master.empty()) {
    auto from_file = MasterFromFile(options);
    if (!from_file) return Fail(std::move(from_file).error());
    master = std::move(*from_file);
  }
  if (master.empty()) {
    picket::Error error(Code::kInvalidArgument, "no master is named");
    error.next_step =
        "give --master HOST:PORT, set PICKET_MASTER, or write master = \"HOST:PORT\" into ~/.config/picket/client.toml";
    return Fail(std::move(error));
  }
  auto endpoint = ParseEndpoint(master, kDefaultMasterPort);
  if (!endpoint) return Fail(Code::kInvalidArgument, "master address \"" + master + "\": " + endpoint.error().message);
  out.master = std::move(*endpoint);
  out.user = options.user.empty() ? UserName() : options.user;
  out.group = options.group.empty() ? GroupName() : options.group;
  out.connect_timeout = std::chrono::milliseconds(options.connect_timeout_ms);
  out.operation_timeout = std::chrono::milliseconds(options.operation_timeout_ms);
  return out;
}

}  // namespace picket::client
