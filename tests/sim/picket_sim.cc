// picket-sim: runs, replays and shrinks simulated clusters. docs/TESTING.md explains the work with it.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "tests/sim/isolated.h"
#include "tests/sim/ledger.h"
#include "tests/sim/run.h"

namespace picket::sim {
namespace {

struct Arguments {
  std::string seeds;
  int64_t seconds = 60;
  std::string workload;
  bool twice = false;
  std::string derive_from;
  std::string ledger;
  std::string commit;
  uint64_t replay = 0;
  std::string script;
  std::string skip;
  bool verbose = false;
  bool debug = false;
  double from = 0;
  std::string output;
};

std::string Self() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : "picket-sim";
}

bool ParseRange(const std::string& text, uint64_t* first, uint64_t* last) {
  const size_t dots = text.find("..");
  char* end = nullptr;
  *first = std::strtoull(text.c_str(), &end, 10);
  *last = dots == std::string::npos ? *first : std::strtoull(text.c_str() + dots + 2, nullptr, 10);
  return end != text.c_str() && *first <= *last;
}

std::set<size_t> ParseList(const std::string& text) {
  std::set<size_t> out;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    uint64_t first = 0;
    uint64_t last = 0;
    if (!ParseRange(item, &first, &last)) continue;
    for (uint64_t i = first; i <= last; ++i) out.insert(i);
  }
  return out;
}

// A number of its own for each text: the first seed of a commit.
uint64_t Hash(const std::string& text) {
  uint64_t h = 14695981039346656037ull;
  for (char c : text) h = (h ^ static_cast<uint8_t>(c)) * 1099511628211ull;
  return h;
}

void PrintViolation(const Outcome& o, const Arguments& args) {
  std::printf("VIOLATION seed=%llu t=%.3fs invariant=%s workload=%s: %s\n  replay: %s --replay %llu --secs %lld%s -v\n",
              static_cast<unsigned long long>(o.seed), o.violation_seconds, o.invariant.c_str(),
              o.workload.empty() ? "?" : o.workload.c_str(), o.detail.c_str(), Self().c_str(),
              static_cast<unsigned long long>(o.seed), static_cast<long long>(args.seconds),
              args.workload.empty() ? "" : (" --workload " + args.workload).c_str());
  std::fflush(stdout);
}

struct SeedsResult {
  uint64_t violations = 0;
  double virtual_seconds = 0;
};

SeedsResult RunSeeds(const Arguments& args, uint64_t first, uint64_t last) {
  RunOptions common;
  common.seconds = args.seconds;
  common.workload = args.workload;
  std::mutex mutex;
  std::map<uint64_t, Outcome> outcomes[2];
  uint64_t violations = 0;
  const auto side = [&](int which) {
    RunRange(Self(), common, first, last, which == 0 ? 0 : 5000, [&](const Outcome& o) {
      const std::lock_guard lock(mutex);
      outcomes[which][o.seed] = o;
      if (which == 0 && args.verbose) {
        std::printf("seed=%llu hash=%016llx virtual=%.0fs %s %s\n", static_cast<unsigned long long>(o.seed),
                    static_cast<unsigned long long>(o.hash), o.virtual_seconds, o.workload.c_str(), o.summary.c_str());
        std::fflush(stdout);
      }
      if (which == 0 && !o.invariant.empty()) {
        ++violations;
        PrintViolation(o, args);
      }
    });
  };
  if (args.twice) {
    std::thread other(side, 1);
    side(0);
    other.join();
  } else {
    side(0);
  }
  uint64_t hash = 0;
  double virtual_seconds = 0;
  for (auto& [seed, o] : outcomes[0]) {
    hash = (hash ^ o.hash) * 1099511628211ull;
    virtual_seconds += o.virtual_seconds;
    if (!args.twice) continue;
    const Outcome& again = outcomes[1][seed];
    if (again.hash == o.hash && again.invariant == o.invariant) continue;
    ++violations;
    Outcome different = o;
    different.invariant = "determinism";
    different.detail = fmt::format("hash {:016x} in one process, {:016x} in another", o.hash, again.hash);
    PrintViolation(different, args);
  }
  std::printf("seeds=%llu..%llu runs=%zu violations=%llu virtual=%.0fs hash=%016llx\n",
              static_cast<unsigned long long>(first), static_cast<unsigned long long>(last),
              outcomes[0].size() + outcomes[1].size(), static_cast<unsigned long long>(violations), virtual_seconds,
              static_cast<unsigned long long>(hash));
  std::fflush(stdout);
  return {violations, virtual_seconds};
}

// Runs what the ledger does not have yet of these seeds, and says what it has then.
int RunCampaign(const Arguments& args, uint64_t first, uint64_t last) {
  constexpr uint64_t kStretch = 50;
  const LedgerKey key{args.commit, args.workload, args.seconds};
  for (const SeedRange& range : SeedsLeft(ReadLedger(args.ledger, key), {first, last}, kStretch)) {
    const auto begun = std::chrono::steady_clock::now();
    const SeedsResult result = RunSeeds(args, range.first, range.second);
    LedgerEntry entry{key, range.first, range.second, result.violations, result.virtual_seconds, 0};
    entry.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (!AppendToLedger(args.ledger, entry)) {
      std::fprintf(stderr, "%s cannot be written\n", args.ledger.c_str());
      return 2;
    }
  }
  const LedgerSum sum = Sum(ReadLedger(args.ledger, key));
  std::printf("ledger commit=%s seeds=%llu violations=%llu virtual=%.0fs wall=%.0fs\n", args.commit.c_str(),
              static_cast<unsigned long long>(sum.seeds), static_cast<unsigned long long>(sum.violations),
              sum.virtual_seconds, sum.wall_seconds);
  return sum.violations == 0 ? 0 : 1;
}

// A script: a line "run SEED WORKLOAD SECONDS", then faults.
bool LoadScript(const std::string& path, RunOptions* options) {
  std::ifstream in(path);
  std::string rest;
  bool head = false;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("run ")) {
      rest += line + "\n";
      continue;
    }
    std::istringstream fields(line.substr(4));
    head = static_cast<bool>(fields >> options->seed >> options->workload >> options->seconds);
  }
  auto faults = ParseFaults(rest);
  if (!head || !faults) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(),
                 head ? faults.error().message.c_str() : "no line \"run SEED WORKLOAD SECONDS\"");
    return false;
  }
  options->faults = std::move(*faults);
  return true;
}

std::string ToScript(const RunOptions& options, const std::string& comment) {
  std::string text = "# " + comment + "\n" +
                     fmt::format("run {} {} {}\n", options.seed, options.workload, options.seconds);
  for (const Fault& f : *options.faults) text += ToText(f) + "\n";
  return text;
}

int Replay(const Arguments& args) {
  RunOptions options;
  options.seed = args.replay;
  options.seconds = args.seconds;
  options.workload = args.workload;
  options.skip = ParseList(args.skip);
  options.print = args.verbose;
  options.level = args.debug ? LogLevel::kDebug : LogLevel::kInfo;
  options.print_from = Nanos(static_cast<int64_t>(args.from * 1e9));
  if (!args.script.empty() && !LoadScript(args.script, &options)) return 2;
  const RunResult r = Run(options);
  for (size_t i = 0; i < r.faults.size(); ++i) {
    if (args.verbose) std::printf("fault %zu%s: %s\n", i, options.skip.contains(i) ? " (skipped)" : "", ToText(r.faults[i]).c_str());
  }
  std::printf("seed=%llu hash=%016llx virtual=%.0fs steps=%llu %s %s\n", static_cast<unsigned long long>(options.seed),
              static_cast<unsigned long long>(r.hash), static_cast<double>(r.virtual_time.count()) * 1e-9,
              static_cast<unsigned long long>(r.steps), r.workload.c_str(), r.summary.c_str());
  if (!r.violation) return 0;
  std::printf("VIOLATION seed=%llu t=%.3fs invariant=%s workload=%s: %s\n",
              static_cast<unsigned long long>(options.seed), static_cast<double>(r.violation->time.count()) * 1e-9,
              r.violation->invariant.c_str(), r.workload.c_str(), r.violation->detail.c_str());
  return 1;
}

// Leaves out faults as long as the same invariant breaks: first halves of what is left, then one by one.
int Shrink(const Arguments& args) {
  RunOptions options;
  options.seed = args.replay;
  options.seconds = args.seconds;
  options.workload = args.workload;
  if (!args.script.empty() && !LoadScript(args.script, &options)) return 2;
  const Outcome whole = RunForked(options);
  if (whole.invariant.empty()) {
    std::printf("seed %llu breaks nothing\n", static_cast<unsigned long long>(options.seed));
    return 2;
  }
  if (!options.faults) {
    RunOptions again = options;
    again.skip.clear();
    options.workload = whole.workload.empty() ? options.workload : whole.workload;
    options.faults = DrawFor(again);
  }
  int runs = 1;
  size_t step = std::max<size_t>(1, options.faults->size() / 2);
  while (true) {
    bool removed = false;
    for (size_t at = options.faults->size(); at > 0;) {
      const size_t from = at > step ? at - step : 0;
      RunOptions candidate = options;
      candidate.faults->erase(candidate.faults->begin() + static_cast<ptrdiff_t>(from),
                              candidate.faults->begin() + static_cast<ptrdiff_t>(at));
      ++runs;
      if (RunForked(candidate).invariant == whole.invariant) {
        options = std::move(candidate);
        removed = true;
        std::printf("%zu faults left\n", options.faults->size());
        std::fflush(stdout);
      }
      at = from;
    }
    if (!removed && step == 1) break;
    if (!removed) step /= 2;
  }
  const Outcome last = RunForked(options);
  const std::string script = ToScript(options, whole.invariant + ": " + last.detail);
  std::printf("%s after %d runs:\n%s", whole.invariant.c_str(), runs, script.c_str());
  if (!args.output.empty()) std::ofstream(args.output) << script;
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Runs a simulated Picket cluster under faults. The same seed and build give the same run.", "picket-sim");
  Arguments args;
  app.add_option("--seeds", args.seeds, "run the seeds A..B, each in turn");
  app.add_option("--secs", args.seconds, "virtual seconds with faults")->capture_default_str()->check(CLI::Range(1, 100000));
  app.add_option("--workload", args.workload, "instead of the one that the seed picks")
      ->check(CLI::IsMember(WorkloadNames()));
  app.add_flag("--twice", args.twice, "run every seed in two processes and compare their hashes");
  app.add_option("--derive", args.derive_from, "add a number derived from this text (a commit) to the seeds");
  auto* commit = app.add_option("--commit", args.commit, "what the ledger's lines are of: git rev-parse HEAD");
  app.add_option("--ledger", args.ledger, "with --seeds: run those that this file does not have, and note them in it")
      ->needs(commit);
  auto* replay = app.add_option("--replay", args.replay, "run this seed here");
  app.add_option("--script", args.script, "run this file of faults here")->check(CLI::ExistingFile);
  app.add_option("--skip-faults", args.skip, "with --replay: leave these out, as in 0,3..7");
  app.add_flag("-v,--verbose", args.verbose, "what happens, on stderr; with --seeds: a line for each seed");
  app.add_flag("--debug", args.debug, "with -v: every protocol event too");
  app.add_option("--from", args.from, "with -v: print from this virtual second on");
  auto* shrink = app.add_subcommand("shrink", "leave out faults of a seed while it breaks the same invariant");
  shrink->add_option("seed", args.replay, "the seed");
  shrink->add_option("--script", args.script, "start from this file of faults")->check(CLI::ExistingFile);
  shrink->add_option("--secs", args.seconds)->capture_default_str();
  shrink->add_option("--workload", args.workload)->check(CLI::IsMember(WorkloadNames()));
  shrink->add_option("-o,--output", args.output, "write the faults that are left to this file");
  auto* serve = app.add_subcommand("serve", "")->group("");
  serve->add_option("--seeds", args.seeds);
  serve->add_option("--secs", args.seconds);
  serve->add_option("--workload", args.workload);
  CLI11_PARSE(app, argc, argv);

  if (shrink->parsed()) return Shrink(args);
  if (args.seeds.empty() && replay->count() == 0 && args.script.empty()) {
    std::fprintf(stderr, "say --seeds A..B, --replay SEED or --script FILE (--help for more)\n");
    return 2;
  }
  if (args.seeds.empty()) return Replay(args);
  uint64_t first = 0;
  uint64_t last = 0;
  if (!ParseRange(args.seeds, &first, &last)) {
    std::fprintf(stderr, "--seeds wants A..B\n");
    return 2;
  }
  if (!args.derive_from.empty()) {
    const uint64_t base = 1'000'000 + Hash(args.derive_from) % 1'000'000'000 * 1000;
    first += base;
    last += base;
  }
  if (serve->parsed()) {
    RunOptions common;
    common.seconds = args.seconds;
    common.workload = args.workload;
    ServeRange(common, first, last);
    return 0;
  }
  if (!args.ledger.empty()) return RunCampaign(args, first, last);
  return RunSeeds(args, first, last).violations == 0 ? 0 : 1;
}

}  // namespace
}  // namespace picket::sim

int main(int argc, char** argv) { return picket::sim::Main(argc, argv); }
