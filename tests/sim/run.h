// One simulated run: a cluster, a workload, faults, then a quiet phase in which everything must heal.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/fault_script.h"
#include "tests/sim/world.h"

namespace picket::sim {

struct RunOptions {
  uint64_t seed = 1;
  std::string workload;                     // "" = by the seed
  int64_t seconds = 60;                     // of the phase with faults
  std::optional<std::vector<Fault>> faults;  // none: drawn from the seed
  std::set<size_t> skip;                    // indices of faults to leave out
  bool print = false;                       // what happens, to stderr
  LogLevel level = LogLevel::kInfo;
  Nanos print_from{};
};

struct RunResult {
  uint64_t hash = 0;
  Nanos virtual_time{};
  uint64_t steps = 0;
  std::string workload;
  std::string summary;             // of the workload
  std::vector<Fault> faults;       // as they were, skipped ones too
  std::optional<Violation> violation;
  std::vector<std::string> log;    // the last lines
};

RunResult Run(const RunOptions& options);

// The faults that a run of this seed draws.
std::vector<Fault> DrawFor(const RunOptions& options);

// Names that --workload takes.
const std::vector<std::string>& WorkloadNames();

}  // namespace picket::sim
