#include "client/cli/dev/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/cli/local_file.h"

namespace picket::cli::dev {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string BootId() { return FirstLine("/proc/sys/kernel/random/boot_id"); }

struct ProcStat {
  char state = '?';
  uint64_t start_ticks = 0;
};

std::optional<ProcStat> ReadProcStat(pid_t pid) {
  const std::string line = FirstLine(fmt::format("/proc/{}/stat", pid));
  // The name in parentheses may hold anything, also blanks and parentheses.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  ProcStat stat;
  fields >> stat.state;
  constexpr int kFieldsBetween = 18;  // state is field 3, the start time field 22
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> stat.start_ticks;
  if (!fields) return std::nullopt;
  return stat;
}

class SpawnAttributes {
 public:
  SpawnAttributes(const std::string& log) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes);
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnAttributes() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

DevResult<pid_t> Spawn(const std::string& program, const std::vector<std::string>& args, const std::string& log) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  const SpawnAttributes spawn(log);
  pid_t pid = 0;
  if (int error = posix_spawn(&pid, program.c_str(), &spawn.actions, &spawn.attributes, argv.data(), environ);
      error != 0) {
    return DevFail(kExitFailure, program, fmt::format("could not be started: {}", strerror(error)));
  }
  return pid;
}

// A handle of the process `id` names, if it still is that one.
LocalFd OpenPidFd(const ProcessId& id) {
  LocalFd fd(static_cast<int>(syscall(SYS_pidfd_open, id.pid, 0)));
  // Checked while the handle holds on to it: the number cannot have been reused in between.
  if (fd && !IsRunning(id)) return LocalFd();
  return fd;
}

// Ends of processes are events of their handles. False: the time is over.
bool AwaitEnds(const std::vector<LocalFd>& handles, std::chrono::milliseconds at_most) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  for (const LocalFd& handle : handles) {
    pollfd wait{handle.get(), POLLIN, 0};
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      const int ready = poll(&wait, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
      if (ready > 0) break;
      if (ready == 0) return false;
      if (errno != EINTR) return false;
    }
  }
  return true;
}

void Signal(const std::vector<LocalFd>& handles, int signal) {
  for (const LocalFd& handle : handles) syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
}

}  // namespace

std::optional<ProcessId> ReadPidFile(const std::string& path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("pid") || !json["pid"].is_number_integer()) return std::nullopt;
  ProcessId id;
  id.pid = json["pid"].get<pid_t>();
  id.start_ticks = json.value("start_ticks", uint64_t{0});
  id.boot_id = json.value("boot_id", "");
  return id;
}

DevResult<> WritePidFile(const std::string& path, const ProcessId& id) {
  const nlohmann::ordered_json json{{"pid", id.pid}, {"start_ticks", id.start_ticks}, {"boot_id", id.boot_id}};
  std::ofstream file(path, std::ios::trunc);
  file << json.dump() << "\n";
  file.close();
  if (!file) return DevFail(kExitFailure, path, "could not be written");
  return {};
}

bool IsRunning(const ProcessId& id) {
  if (id.pid <= 1 || id.boot_id != BootId()) return false;
  const auto stat = ReadProcStat(id.pid);
  return stat && stat->start_ticks == id.start_ticks && stat->state != 'Z' && stat->state != 'X';
}

DevResult<ProcessId> StartProcess(const std::string& program, const std::vector<std::string>& args,
                                  const std::string& log) {
  const auto pid = Spawn(program, args, log);
  if (!pid) return std::unexpected(pid.error());
  // Our child: even if it has ended, its entry stays until we do.
  const auto stat = ReadProcStat(*pid);
  if (!stat) return DevFail(kExitFailure, program, "cannot be seen in /proc");
  return ProcessId{*pid, stat->start_ticks, BootId()};
}

DevResult<int> RunProcess(const std::string& program, const std::vector<std::string>& args, const std::string& log) {
  const auto pid = Spawn(program, args, log);
  if (!pid) return std::unexpected(pid.error());
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0) {
    if (errno != EINTR) return DevFail(kExitFailure, program, strerror(errno));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool StopProcesses(const std::vector<ProcessId>& ids, std::chrono::milliseconds grace) {
  std::vector<LocalFd> handles;
  for (const ProcessId& id : ids) {
    if (LocalFd handle = OpenPidFd(id)) handles.push_back(std::move(handle));
  }
  Signal(handles, SIGTERM);
  if (AwaitEnds(handles, grace)) return true;
  Signal(handles, SIGKILL);
  AwaitEnds(handles, grace);
  return false;
}

std::string LastLine(const std::string& log) {
  std::ifstream file(log);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

std::optional<std::string> FindServerProgram(const std::string& role) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::string name = "picket-" + role;
  const std::filesystem::path candidates[] = {
      here / name, here / "../sbin" / name,
      here / "../.." / role / name,  // the build tree
  };
  for (const auto& candidate : candidates) {
    if (access(candidate.c_str(), X_OK) == 0) return candidate.lexically_normal().string();
  }
  return std::nullopt;
}

}  // namespace picket::cli::dev
