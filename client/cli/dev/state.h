// What a local cluster consists of, kept in its marker file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/cli/dev/layout.h"
#include "client/cli/dev/result.h"

namespace picket::cli::dev {

struct Member {
  std::string name;  // "master", "chunkserver-1", …
  std::string role;  // "master", "chunkserver"
  uint16_t port = 0;

  std::string address() const { return "127.0.0.1:" + std::to_string(port); }
};

struct State {
  std::vector<Member> members;  // the master first
  // role → key → value: settings given with --set, on top of what the cluster needs itself.
  std::map<std::string, std::map<std::string, std::string>> settings;

  const Member& master() const { return members.front(); }
  size_t chunkservers() const { return members.size() - 1; }
  // Adds members, without ports, until there are so many.
  void Grow(size_t chunkservers);
};

// kExitNotFound: no such directory, or no local cluster in it. kExitConflict: a directory of something else.
DevResult<State> LoadState(const Layout& layout);
DevResult<> SaveState(const Layout& layout, const State& state);

// Held while a command changes the cluster. kExitConflict: another one does.
class StateLock {
 public:
  static DevResult<StateLock> Take(const Layout& layout);
  StateLock(StateLock&& other) noexcept;
  ~StateLock();

 private:
  explicit StateLock(int fd) : fd_(fd) {}
  int fd_;
};

// Replaces a file's content in one step.
DevResult<> WriteFile(const std::string& path, const std::string& content);

}  // namespace picket::cli::dev
