#include "tests/sim/fault_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

namespace picket::sim {
namespace {

constexpr std::array<std::string_view, 17> kNames = {
    "kill",        "power",        "power-at",    "pause",     "cut",     "split",       "isolate",   "reset", "slow-disk",
    "read-errors", "write-errors", "sync-errors", "disk-full", "bit-rot", "clock-drift", "wall-jump", "loss"};

Nanos Seconds(double s) { return Nanos(static_cast<int64_t>(std::llround(s * 1e9))); }
double ToSeconds(Nanos t) { return static_cast<double>(t.count()) * 1e-9; }

// Short ones often, long ones seldom: from `low` to `high`, uniform in the exponent.
Nanos Spread(Rng& rng, Nanos low, Nanos high) {
  int64_t span = high / low;
  int64_t scale = 1;
  while (span > 1 && rng.Chance(0.6)) {
    scale *= 2;
    span /= 2;
  }
  return std::min(high, Nanos(rng.Range(low.count() * scale, low.count() * scale * 2)));
}

struct Weighted {
  FaultKind kind;
  uint32_t weight;
};
constexpr std::array<Weighted, 17> kWeights = {{
    {FaultKind::kKill, 6},       {FaultKind::kPower, 4},       {FaultKind::kPowerAt, 4},    {FaultKind::kPause, 4},
    {FaultKind::kCut, 5},        {FaultKind::kSplit, 4},       {FaultKind::kIsolate, 2},    {FaultKind::kReset, 6},
    {FaultKind::kSlowDisk, 2},   {FaultKind::kReadErrors, 1},  {FaultKind::kWriteErrors, 1}, {FaultKind::kSyncErrors, 1},
    {FaultKind::kDiskFull, 2},   {FaultKind::kBitRot, 2},      {FaultKind::kClockDrift, 1}, {FaultKind::kWallJump, 1},
    {FaultKind::kLoss, 1},
}};

}  // namespace

std::string_view FaultName(FaultKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::string ToText(const Fault& f) {
  return fmt::format("{:.3f} {} {} {} {:.3f} {}", ToSeconds(f.at), FaultName(f.kind), f.node.empty() ? "-" : f.node,
                     f.peer.empty() ? "-" : f.peer, ToSeconds(f.lasts), f.argument);
}

Result<Fault> ParseFault(std::string_view line) {
  std::istringstream in{std::string(line)};
  double at = 0;
  double lasts = 0;
  std::string kind;
  Fault fault;
  if (!(in >> at >> kind >> fault.node >> fault.peer >> lasts >> fault.argument)) {
    return Fail(Code::kInvalidArgument, fmt::format("not a fault: \"{}\"", line));
  }
  const auto name = std::ranges::find(kNames, kind);
  if (name == kNames.end()) return Fail(Code::kInvalidArgument, fmt::format("no such fault: \"{}\"", kind));
  fault.kind = static_cast<FaultKind>(name - kNames.begin());
  fault.at = Seconds(at);
  fault.lasts = Seconds(lasts);
  if (fault.node == "-") fault.node.clear();
  if (fault.peer == "-") fault.peer.clear();
  return fault;
}

Result<std::vector<Fault>> ParseFaults(std::string_view text) {
  std::vector<Fault> faults;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    auto fault = ParseFault(line);
    if (!fault) return Fail(fault.error());
    faults.push_back(std::move(*fault));
  }
  return faults;
}

std::vector<Fault> DrawFaults(Rng rng, const FaultPlan& plan) {
  std::vector<Weighted> kinds;
  uint32_t total = 0;
  for (const Weighted& w : kWeights) {
    if (!rng.Chance(0.6)) continue;
    kinds.push_back(w);
    total += w.weight;
  }
  std::vector<Fault> faults;
  if (kinds.empty()) return faults;
  const int64_t mean_gap_ms = rng.Range(400, 6000);
  const std::string damaged = "s" + std::to_string(rng.Below(plan.chunkservers));
  // Either one chunkserver ever loses power, or any may, several at once too.
  const bool one_loses_power = rng.Chance(0.5);
  const std::string powerless = "s" + std::to_string(rng.Below(plan.chunkservers));

  const auto any_server = [&] { return "s" + std::to_string(rng.Below(plan.chunkservers)); };
  const auto any_node = [&]() -> std::string {
    const uint64_t pick = rng.Below(plan.chunkservers + 3);
    if (pick == 0) return "c" + std::to_string(rng.Below(plan.clients));
    return pick <= 2 ? "m0" : any_server();
  };
  for (Nanos at = plan.from;;) {
    at += std::chrono::milliseconds(rng.Range(1, 2 * mean_gap_ms));
    if (at >= plan.to) return faults;
    Fault f;
    f.at = std::chrono::duration_cast<std::chrono::milliseconds>(at);
    uint64_t pick = rng.Below(total);
    for (const Weighted& w : kinds) {
      f.kind = w.kind;
      if (pick < w.weight) break;
      pick -= w.weight;
    }
    f.lasts = Spread(rng, 100ms, 20s);
    f.node = any_node();
    switch (f.kind) {
      case FaultKind::kKill: break;
      case FaultKind::kPower:
      case FaultKind::kPowerAt:
        if (f.node[0] == 's' && one_loses_power) f.node = powerless;
        f.argument = f.kind == FaultKind::kPowerAt ? rng.Range(1, 300) : 0;
        break;
      case FaultKind::kPause: f.lasts = Spread(rng, 10ms, 70s); break;
      case FaultKind::kCut:
      case FaultKind::kSplit:
        do f.peer = any_node();
        while (f.peer == f.node);
        break;
      case FaultKind::kIsolate: f.lasts = Spread(rng, 100ms, 70s); break;
      case FaultKind::kReset: f.argument = rng.Range(1, 4); f.lasts = Nanos(0); break;
      case FaultKind::kSlowDisk: f.argument = rng.Range(20, 2000); break;
      case FaultKind::kReadErrors:
      case FaultKind::kWriteErrors:
      case FaultKind::kSyncErrors:
        if (f.node[0] != 'm') f.node = damaged;
        f.lasts = Spread(rng, 10ms, 5s);
        break;
      case FaultKind::kDiskFull: break;
      case FaultKind::kBitRot: f.node = damaged; f.argument = rng.Range(0, 1 << 30); f.lasts = Nanos(0); break;
      case FaultKind::kClockDrift: f.argument = rng.Range(-200'000, 200'000); f.lasts = Nanos(0); break;
      case FaultKind::kWallJump: f.argument = rng.Range(-86'400, 86'400); f.lasts = Nanos(0); break;
      case FaultKind::kLoss: f.node.clear(); f.argument = rng.Range(1, 100); break;
    }
    f.lasts = std::chrono::duration_cast<std::chrono::milliseconds>(f.lasts);
    faults.push_back(std::move(f));
  }
}

}  // namespace picket::sim
