#include "client/cli/dev/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "client/cli/dev/ports.h"
#include "client/cli/dev/registration_watch.h"
#include "client/cli/dev/server_config.h"

namespace picket::cli::dev {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDefaultChunkservers = 3;
constexpr auto kStopGrace = std::chrono::seconds(15);

DevResult<std::string> ServerProgram(const std::string& role) {
  if (auto program = FindServerProgram(role)) return *program;
  return DevFail(kExitFailure, "picket-" + role, "not found next to this program; build or install all of Picket");
}

}  // namespace

std::string_view RunName(MemberStatus::Run run) {
  switch (run) {
    case MemberStatus::Run::kRunning:
      return "running";
    case MemberStatus::Run::kDead:
      return "dead";
    case MemberStatus::Run::kStopped:
      return "stopped";
  }
  return "";
}

DevResult<> Cluster::Up(const UpOptions& options) {
  if (auto made = MakeDirectory(); !made) return made;
  auto lock = StateLock::Take(layout_);
  if (!lock) return std::unexpected(lock.error());
  auto state = LoadState(layout_);
  if (!state) return std::unexpected(state.error());

  const size_t present = state->chunkservers();
  if (options.chunkservers != 0 && options.chunkservers < present) {
    return DevFail(kExitConflict, layout_.directory(),
                   fmt::format("this cluster has {} chunkservers; picket dev wipe, then make a smaller one", present));
  }
  state->Grow(options.chunkservers != 0 ? options.chunkservers : present > 0 ? present : kDefaultChunkservers);
  for (const auto& [role, settings] : options.settings) {
    for (const auto& [key, value] : settings) state->settings[role][key] = value;
  }
  if (auto chosen = ChoosePorts(&*state); !chosen) return chosen;
  if (auto saved = SaveState(layout_, *state); !saved) return saved;
  if (auto written = WriteConfigs(*state); !written) return written;
  auto started = StartAll(*state, options.wait_at_most);
  if (!started) StopStarted(*state, &started.error());
  return started;
}

DevResult<> Cluster::StartAll(const State& state, std::chrono::milliseconds wait_at_most) {
  for (const Member& member : state.members) {
    if (StatusOf(member).run == MemberStatus::Run::kRunning) {
      say_(fmt::format("{} runs at {}", member.name, member.address()));
      continue;
    }
    if (auto ready = InitDirectory(state, member); !ready) return ready;
    if (auto started = Start(member); !started) return started;
  }
  return AwaitRegistered(state, wait_at_most);
}

// What a start that failed has begun does not stay behind; what ran before goes on.
void Cluster::StopStarted(const State& state, DevError* error) {
  std::vector<std::string> names;
  for (const Member& member : state.members) {
    if (!started_.contains(member.name)) continue;
    const MemberStatus status = StatusOf(member);
    if (status.run == MemberStatus::Run::kRunning) {
      StopProcesses({status.process}, kStopGrace);
      names.push_back(member.name);
    }
    unlink(layout_.pid_file(member.name).c_str());
  }
  if (!names.empty()) error->text += fmt::format("; stopped again: {}", fmt::join(names, ", "));
}

DevResult<bool> Cluster::Down() {
  const auto state = LoadState(layout_);
  if (!state) return std::unexpected(state.error());
  auto lock = StateLock::Take(layout_);
  if (!lock) return std::unexpected(lock.error());
  bool in_time = true;
  if (auto stopped = StopAll(*state, &in_time); !stopped) return std::unexpected(stopped.error());
  return in_time;
}

DevResult<std::vector<MemberStatus>> Cluster::Status() const {
  const auto state = LoadState(layout_);
  if (!state) return std::unexpected(state.error());
  std::vector<MemberStatus> all;
  for (const Member& member : state->members) all.push_back(StatusOf(member));
  return all;
}

DevResult<> Cluster::Wipe() {
  const auto state = LoadState(layout_);
  if (!state) return std::unexpected(state.error());
  auto lock = StateLock::Take(layout_);
  if (!lock) return std::unexpected(lock.error());
  for (const Member& member : state->members) {
    if (StatusOf(member).run == MemberStatus::Run::kRunning) {
      return DevFail(kExitConflict, layout_.directory(),
                     fmt::format("{} is running; first: picket dev down", member.name));
    }
  }
  std::error_code error;
  for (std::string_view folder : Layout::kFolders) {
    fs::remove_all(layout_.directory() + "/" + std::string(folder), error);
    if (error) return DevFail(kExitFailure, layout_.directory(), error.message());
  }
  // The marker goes last: an interrupted wipe can be repeated.
  for (const std::string& file : {layout_.client_config(), layout_.lock_file(), layout_.state_file()}) {
    fs::remove(file, error);
  }
  // Not ours, not removed.
  if (!fs::is_empty(layout_.directory(), error)) {
    say_(fmt::format("{} holds other files, which were left alone", layout_.directory()));
  } else {
    fs::remove(layout_.directory(), error);
  }
  return {};
}

DevResult<> Cluster::MakeDirectory() {
  std::error_code error;
  fs::create_directories(layout_.directory(), error);
  if (error) return DevFail(kExitFailure, layout_.directory(), error.message());
  const auto state = LoadState(layout_);
  if (!state && state.error().code != kExitNotFound) return std::unexpected(state.error());
  if (!state) {
    State fresh;
    fresh.Grow(0);
    if (auto saved = SaveState(layout_, fresh); !saved) return saved;
  }
  for (std::string_view folder : Layout::kFolders) {
    fs::create_directories(layout_.directory() + "/" + std::string(folder), error);
    if (error) return DevFail(kExitFailure, layout_.directory(), error.message());
  }
  return {};
}

// A member keeps its port. If somebody else has taken the port of one that does not run, it gets another;
// chunkservers that run and look for a master at its old port are stopped, to be started with the new one.
DevResult<> Cluster::ChoosePorts(State* state) {
  std::set<uint16_t> taken;
  for (const Member& member : state->members) taken.insert(member.port);
  bool master_moved = false;
  for (Member& member : state->members) {
    if (StatusOf(member).run == MemberStatus::Run::kRunning) continue;
    if (member.port != 0 && IsPortFree(member.port)) continue;
    const auto port = ChoosePort(taken);
    if (!port) return std::unexpected(port.error());
    master_moved = master_moved || (member.role == "master" && member.port != 0);
    member.port = *port;
    taken.insert(*port);
  }
  bool in_time = true;
  return master_moved ? StopAll(*state, &in_time) : DevResult<>();
}

DevResult<> Cluster::WriteConfigs(const State& state) {
  for (const Member& member : state.members) {
    if (auto written = WriteFile(layout_.config(member.name), ServerConfig(layout_, state, member)); !written) {
      return written;
    }
  }
  return WriteFile(layout_.client_config(), ClientConfig(state));
}

DevResult<> Cluster::InitDirectory(const State& state, const Member& member) {
  std::error_code error;
  if (fs::exists(layout_.data(member.name) + "/picket.toml", error)) return {};
  const auto program = ServerProgram(member.role);
  if (!program) return std::unexpected(program.error());
  say_(fmt::format("{}: making {}", member.name, layout_.data(member.name)));
  const std::string log = layout_.log(member.name);
  const auto status = RunProcess(*program, InitArguments(layout_, state, member), log);
  if (!status) return std::unexpected(status.error());
  if (*status != 0) {
    return DevFail(kExitFailure, member.name, fmt::format("init failed ({}): {}; see {}", *status, LastLine(log), log));
  }
  return {};
}

DevResult<> Cluster::Start(const Member& member) {
  const auto program = ServerProgram(member.role);
  if (!program) return std::unexpected(program.error());
  started_[member.name] = std::chrono::steady_clock::now();
  const auto process = StartProcess(*program, {"--config", layout_.config(member.name)}, layout_.log(member.name));
  if (!process) return std::unexpected(process.error());
  say_(fmt::format("{} starts at {}, pid {}", member.name, member.address(), process->pid));
  return WritePidFile(layout_.pid_file(member.name), *process);
}

DevResult<> Cluster::AwaitRegistered(const State& state, std::chrono::milliseconds at_most) {
  const auto ended = [&]() -> DevResult<> {
    for (const Member& member : state.members) {
      if (StatusOf(member).run == MemberStatus::Run::kRunning) continue;
      const std::string log = layout_.log(member.name);
      return DevFail(kExitFailure, member.name, fmt::format("ended at its start: {}; see {}", LastLine(log), log));
    }
    return {};
  };
  return WaitUntilRegistered(state, started_, at_most, ended);
}

MemberStatus Cluster::StatusOf(const Member& member) const {
  MemberStatus status{.member = member};
  const auto process = ReadPidFile(layout_.pid_file(member.name));
  if (!process) return status;
  status.process = *process;
  status.run = IsRunning(*process) ? MemberStatus::Run::kRunning : MemberStatus::Run::kDead;
  return status;
}

// Chunkservers first, so that none of them sees its master go.
DevResult<> Cluster::StopAll(const State& state, bool* in_time) {
  for (std::string_view role : {"chunkserver", "master"}) {
    std::vector<ProcessId> running;
    for (const Member& member : state.members) {
      const MemberStatus status = StatusOf(member);
      if (member.role != role || status.run != MemberStatus::Run::kRunning) continue;
      say_(fmt::format("{} stops, pid {}", member.name, status.process.pid));
      running.push_back(status.process);
    }
    *in_time = StopProcesses(running, kStopGrace) && *in_time;
  }
  for (const Member& member : state.members) {
    const MemberStatus status = StatusOf(member);
    if (status.run == MemberStatus::Run::kRunning) {
      return DevFail(kExitFailure, member.name, fmt::format("pid {} cannot be stopped", status.process.pid));
    }
    unlink(layout_.pid_file(member.name).c_str());
  }
  return {};
}

}  // namespace picket::cli::dev
