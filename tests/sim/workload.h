// What clients do in a run, and what must come out of it. The workload lives outside of the world's
// nodes: it survives the crashes of the clients that do its work.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "client/core/file_system.h"
#include "common/env/env.h"
#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace picket::sim {

// The chunkservers that have lost something for good, so far.
struct Harm {
  std::set<ServerId> damaged;    // disk errors, rot
  std::set<ServerId> powerless;  // un-synced bytes
  // All replicas of something written so may be gone. A set of replicas never shrinks below two.
  bool MayLose(uint32_t replication, bool synced) const {
    std::set<ServerId> servers = damaged;
    if (!synced) servers.insert(powerless.begin(), powerless.end());
    return servers.size() >= std::min<size_t>(replication, 2);
  }
};

// What a workload may know about the world it works in.
struct Surroundings {
  World* world = nullptr;
  size_t clients = 0;
  const Harm* harm = nullptr;
};

class Workload {
 public:
  virtual ~Workload() = default;
  // The work of client number `client`, from now to the end of its process; ends soon after Stop.
  // `fs` lives as long as the process.
  virtual Task<> Work(Env* env, FileSystem* fs, size_t client) = 0;
  // Operations under way end, no new ones begin.
  void Stop() { stopping_ = true; }
  bool stopping() const { return stopping_; }
  // After everything healed: compares what there is with what there must be. Fails the run.
  virtual Task<> Verify(Env* env, FileSystem* fs) = 0;
  // Figures for a line of output.
  virtual std::string Summary() const = 0;

 private:
  bool stopping_ = false;
};

std::unique_ptr<Workload> MakeWriteRead(const Surroundings& surroundings);
std::unique_ptr<Workload> MakeNamespaceMix(const Surroundings& surroundings);
std::unique_ptr<Workload> MakeContest(const Surroundings& surroundings);
std::unique_ptr<Workload> MakeRecordAppend(const Surroundings& surroundings);

// An answer that faults alone explain, once the client's patience is over. Of a change it says nothing:
// it may have happened, and may even happen later.
bool FaultsExplain(Code code);

}  // namespace picket::sim
