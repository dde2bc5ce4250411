// The processes of a local cluster: started in sessions of their own, found again by a pid file that
// holds more than a number. A pid alone may mean another process by now; a pid, its start time and the
// machine's boot id together may not.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/dev/result.h"

namespace picket::cli::dev {

struct ProcessId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // since boot
  std::string boot_id;
};

// nullopt: no such file, or not one of ours.
std::optional<ProcessId> ReadPidFile(const std::string& path);
DevResult<> WritePidFile(const std::string& path, const ProcessId& id);

// This very process runs (a zombie does not).
bool IsRunning(const ProcessId& id);

// Starts a program in the background: standard input from /dev/null, both outputs appended to `log`,
// nothing else inherited.
DevResult<ProcessId> StartProcess(const std::string& program, const std::vector<std::string>& args,
                                  const std::string& log);
// Starts it, waits for its end; the exit status, or 128 + signal.
DevResult<int> RunProcess(const std::string& program, const std::vector<std::string>& args, const std::string& log);

// SIGTERM to all; to those left after `grace` SIGKILL. True: none had to be killed.
bool StopProcesses(const std::vector<ProcessId>& ids, std::chrono::milliseconds grace);

// The last line of a log, for a message; "" if there is none.
std::string LastLine(const std::string& log);

// Next to this program, or in the build tree it was built in. nullopt: not there.
std::optional<std::string> FindServerProgram(const std::string& role);

}  // namespace picket::cli::dev
