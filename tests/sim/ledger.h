// The ledger of a campaign: which seeds have run for a commit, and what they found. Text, one line for each
// finished stretch, appended whole and synced, so that a campaign that ends at any moment goes on where it was, and
// several processes can share one file:
//
//   COMMIT WORKLOAD SECONDS FIRST..LAST violations=N virtual=S wall=S
//
// WORKLOAD is "*" for the one that each seed picks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace picket::sim {

struct LedgerKey {
  std::string commit;
  std::string workload;
  int64_t seconds = 0;
  bool operator==(const LedgerKey&) const = default;
};

struct LedgerEntry {
  LedgerKey key;
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t violations = 0;
  double virtual_seconds = 0;
  double wall_seconds = 0;
};

using SeedRange = std::pair<uint64_t, uint64_t>;  // both included

std::string ToText(const LedgerEntry& entry);
// False for a line that is none; such lines are left alone.
bool ParseLedgerEntry(const std::string& line, LedgerEntry* entry);

// The entries of one campaign; empty when there is no file.
std::vector<LedgerEntry> ReadLedger(const std::string& path, const LedgerKey& key);
// Durable on return. False: the file cannot be written.
bool AppendToLedger(const std::string& path, const LedgerEntry& entry);

// What of first..last no entry covers, in order, in stretches of at most `step` seeds.
std::vector<SeedRange> SeedsLeft(const std::vector<LedgerEntry>& entries, SeedRange wanted, uint64_t step);

struct LedgerSum {
  uint64_t seeds = 0;  // each counted once
  uint64_t violations = 0;
  double virtual_seconds = 0;
  double wall_seconds = 0;
};
LedgerSum Sum(const std::vector<LedgerEntry>& entries);

}  // namespace picket::sim
