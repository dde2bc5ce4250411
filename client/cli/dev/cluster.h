// A local cluster of real processes under one directory: what `picket dev` does.
//
// 1. Nothing is written to, or removed from, a directory that has no marker of ours (an empty or missing
//    one gets it first).
// 2. Only processes named by a pid file of the directory, with matching start time and boot id, are
//    ever signalled.
// 3. `Up` may be repeated at any time: it starts what does not run and waits until every chunkserver
//    that should be there has registered.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/dev/layout.h"
#include "client/cli/dev/process.h"
#include "client/cli/dev/result.h"
#include "client/cli/dev/state.h"

namespace picket::cli::dev {

struct UpOptions {
  uint32_t chunkservers = 0;  // 0: as many as there are, of a new cluster 3
  // role → key → value, to be kept
  std::map<std::string, std::map<std::string, std::string>> settings;
  std::chrono::milliseconds wait_at_most = std::chrono::seconds(60);
};

struct MemberStatus {
  Member member;
  enum class Run { kRunning, kDead, kStopped } run = Run::kStopped;  // dead: ended without `down`
  ProcessId process;                                                 // unless stopped
};
std::string_view RunName(MemberStatus::Run run);

class Cluster {
 public:
  // `say` gets a line for each step.
  Cluster(Layout layout, std::function<void(std::string_view)> say)
      : layout_(std::move(layout)), say_(std::move(say)) {}

  DevResult<> Up(const UpOptions& options);
  // Stops what runs; false: something did not stop in time and was killed.
  DevResult<bool> Down();
  DevResult<std::vector<MemberStatus>> Status() const;
  // Removes everything. kExitConflict while something runs.
  DevResult<> Wipe();

  const Layout& layout() const { return layout_; }

 private:
  DevResult<> MakeDirectory();
  DevResult<> ChoosePorts(State* state);
  DevResult<> WriteConfigs(const State& state);
  DevResult<> InitDirectory(const State& state, const Member& member);
  DevResult<> Start(const Member& member);
  DevResult<> StartAll(const State& state, std::chrono::milliseconds wait_at_most);
  void StopStarted(const State& state, DevError* error);
  DevResult<> AwaitRegistered(const State& state, std::chrono::milliseconds at_most);
  MemberStatus StatusOf(const Member& member) const;
  DevResult<> StopAll(const State& state, bool* in_time);

  const Layout layout_;
  const std::function<void(std::string_view)> say_;
  // When each process that this command started was started.
  std::map<std::string, std::chrono::steady_clock::time_point> started_;
};

}  // namespace picket::cli::dev
