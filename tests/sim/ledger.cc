#include "tests/sim/ledger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace picket::sim {
namespace {

// The ranges in order, those that touch each other as one.
std::vector<SeedRange> Merged(const std::vector<LedgerEntry>& entries) {
  std::vector<SeedRange> ranges;
  for (const LedgerEntry& e : entries) ranges.emplace_back(e.first, e.last);
  std::ranges::sort(ranges);
  std::vector<SeedRange> merged;
  for (const SeedRange& r : ranges) {
    if (!merged.empty() && r.first <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, r.second);
    } else {
      merged.push_back(r);
    }
  }
  return merged;
}

}  // namespace

std::string ToText(const LedgerEntry& e) {
  return fmt::format("{} {} {} {}..{} violations={} virtual={:.0f} wall={:.0f}", e.key.commit,
                     e.key.workload.empty() ? "*" : e.key.workload, e.key.seconds, e.first, e.last, e.violations,
                     e.virtual_seconds, e.wall_seconds);
}

bool ParseLedgerEntry(const std::string& line, LedgerEntry* e) {
  std::istringstream in(line);
  std::string range, violations, virtual_seconds, wall;
  if (!(in >> e->key.commit >> e->key.workload >> e->key.seconds >> range >> violations >> virtual_seconds >> wall)) return false;
  if (e->key.workload == "*") e->key.workload.clear();
  unsigned long long first = 0, last = 0, found = 0;
  if (std::sscanf(range.c_str(), "%llu..%llu", &first, &last) != 2 || first > last) return false;
  if (std::sscanf(violations.c_str(), "violations=%llu", &found) != 1) return false;
  if (std::sscanf(virtual_seconds.c_str(), "virtual=%lf", &e->virtual_seconds) != 1) return false;
  if (std::sscanf(wall.c_str(), "wall=%lf", &e->wall_seconds) != 1) return false;
  e->first = first;
  e->last = last;
  e->violations = found;
  return true;
}

std::vector<LedgerEntry> ReadLedger(const std::string& path, const LedgerKey& key) {
  std::vector<LedgerEntry> entries;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    LedgerEntry entry;
    if (ParseLedgerEntry(line, &entry) && entry.key == key) entries.push_back(entry);
  }
  return entries;
}

bool AppendToLedger(const std::string& path, const LedgerEntry& entry) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const std::string line = ToText(entry) + "\n";
  const bool written = ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && ::fdatasync(fd) == 0;
  ::close(fd);
  return written;
}

std::vector<SeedRange> SeedsLeft(const std::vector<LedgerEntry>& entries, SeedRange wanted, uint64_t step) {
  std::vector<SeedRange> left;
  uint64_t at = wanted.first;
  const auto leave = [&](uint64_t to) {
    for (; at <= to; at += step) left.emplace_back(at, std::min(to, at + step - 1));
  };
  for (const SeedRange& done : Merged(entries)) {
    if (done.second < at) continue;
    if (done.first > wanted.second) break;
    if (done.first > at) leave(done.first - 1);
    at = done.second + 1;
  }
  if (at <= wanted.second) leave(wanted.second);
  return left;
}

LedgerSum Sum(const std::vector<LedgerEntry>& entries) {
  LedgerSum sum;
  for (const SeedRange& r : Merged(entries)) sum.seeds += r.second - r.first + 1;
  for (const LedgerEntry& e : entries) {
    sum.violations += e.violations;
    sum.virtual_seconds += e.virtual_seconds;
    sum.wall_seconds += e.wall_seconds;
  }
  return sum;
}

}  // namespace picket::sim
