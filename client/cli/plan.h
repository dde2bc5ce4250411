// A copy of trees, worked out before the first byte moves: what becomes of each directory and file.
// The same for put, get and cp, which differ in how they make a directory and copy a file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/cli/context.h"
#include "client/cli/progress.h"

namespace picket::cli {

struct PlannedItem {
  std::string source;
  std::string target;
  uint64_t length = 0;  // of a file
  uint32_t mode = 0;
  int64_t mtime_ns = 0;
};

struct Plan {
  std::vector<PlannedItem> directories;  // parents before children
  std::vector<PlannedItem> files;
};

struct PlanSteps {
  std::function<client::Result<>(const PlannedItem&)> make_directory;
  // Runs on several threads at once. Returns how many bytes were copied.
  std::function<client::Result<uint64_t>(Progress&, const PlannedItem&)> copy_file;
  // Whether a failure names the source or the target: that of the two which is in the store.
  bool failures_name_source = false;
  // Optional, once everything below it is there; children before parents.
  std::function<client::Result<>(const PlannedItem&)> finish_directory;
};

// Carries it out with up to `workers` files at once, reports each failure and goes on with the rest;
// what lies below a directory that could not be made is left out. With --json prints what was copied:
// {"copied":[{"source","target","bytes"}]}.
void RunPlan(Context& context, const Plan& plan, const PlanSteps& steps, uint32_t workers);

}  // namespace picket::cli
