// A list of faults: drawn from a seed, or read from a file. Each is addressed by its index, so that a
// run can be repeated without some of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/rng.h"
#include "common/env/task.h"

namespace picket::sim {

enum class FaultKind : uint8_t {
  kKill,          // the process; restarted when it is over
  kPower,         // the machine loses power; switched on when it is over
  kPowerAt,       // the machine loses power at its disk's argument-th change
  kPause,         // SIGSTOP
  kCut,           // what node sends does not reach peer
  kSplit,         // node and peer do not reach each other
  kIsolate,       // node reaches nobody
  kReset,         // argument connections of the node break
  kSlowDisk,      // argument ms more for every operation
  kReadErrors,    // EIO
  kWriteErrors,
  kSyncErrors,
  kDiskFull,
  kBitRot,        // one bit of a replica's data, chosen by argument
  kClockDrift,    // argument ppb fast (signed)
  kWallJump,      // argument seconds (signed)
  kLoss,          // the whole network loses argument of 1000 packets
};

struct Fault {
  Nanos at{};
  FaultKind kind = FaultKind::kKill;
  std::string node;       // "m0" master, "s2" chunkserver, "c1" client; "" for the network
  std::string peer;
  Nanos lasts{};
  int64_t argument = 0;
};

std::string_view FaultName(FaultKind kind);
// "12.345 cut s2 m0 3.200 0": seconds, kind, node, peer, seconds, argument; "-" for none.
std::string ToText(const Fault& fault);
Result<Fault> ParseFault(std::string_view line);
// One fault a line; empty lines and lines that begin with '#' do not count.
Result<std::vector<Fault>> ParseFaults(std::string_view text);

struct FaultPlan {
  size_t chunkservers = 0;
  size_t clients = 0;
  Nanos from{};
  Nanos to{};
};
// A random subset of the kinds, at a random rate. The budget: only one chunkserver's disk is ever
// damaged (errors, rot), since nothing but other replicas can make up for that.
std::vector<Fault> DrawFaults(Rng rng, const FaultPlan& plan);

}  // namespace picket::sim
