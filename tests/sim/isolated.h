// Runs in processes of their own: a run that aborts or hangs ends only itself, and two runs of a seed
// share no memory layout.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/run.h"

namespace picket::sim {

// What is left of a run that took place elsewhere.
struct Outcome {
  uint64_t seed = 0;
  bool finished = false;      // false: the process died or hung
  uint64_t hash = 0;
  double virtual_seconds = 0;
  std::string workload;
  std::string summary;
  std::string invariant;      // "" = none was broken
  double violation_seconds = 0;
  std::string detail;
};

// One run in a forked child.
Outcome RunForked(const RunOptions& options);

// Runs seeds [first, last] in order in a fresh process of this program (started again after one that dies);
// calls `done` for each. `padding`: bytes added to its environment, which shifts its stack.
void RunRange(const std::string& program, const RunOptions& common, uint64_t first, uint64_t last, size_t padding,
              const std::function<void(const Outcome&)>& done);
// The other end of RunRange: runs the seeds and writes their outcomes to stdout.
void ServeRange(const RunOptions& common, uint64_t first, uint64_t last);

}  // namespace picket::sim
