#include "tests/sim/isolated.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "common/base/check.h"

namespace picket::sim {
namespace {

constexpr unsigned kHangSeconds = 300;  // of real time, for one run

Outcome ToOutcome(uint64_t seed, const RunResult& r) {
  Outcome o;
  o.seed = seed;
  o.finished = true;
  o.hash = r.hash;
  o.virtual_seconds = static_cast<double>(r.virtual_time.count()) * 1e-9;
  o.workload = r.workload;
  o.summary = r.summary;
  if (r.violation) {
    o.invariant = r.violation->invariant;
    o.violation_seconds = static_cast<double>(r.violation->time.count()) * 1e-9;
    o.detail = r.violation->detail;
  }
  return o;
}

// One line, fields separated by tabs.
std::string Encode(const Outcome& o) {
  std::string detail = o.detail;
  for (char& c : detail) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return fmt::format("{}\t{:016x}\t{}\t{}\t{}\t{}\t{}\t{}\n", o.seed, o.hash, o.virtual_seconds, o.workload, o.summary,
                     o.invariant.empty() ? "-" : o.invariant, o.violation_seconds, detail);
}

Outcome Decode(const std::string& line) {
  std::vector<std::string> f;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) f.push_back(field);
  f.resize(8);
  Outcome o;
  o.finished = true;
  o.seed = std::strtoull(f[0].c_str(), nullptr, 10);
  o.hash = std::strtoull(f[1].c_str(), nullptr, 16);
  o.virtual_seconds = std::strtod(f[2].c_str(), nullptr);
  o.workload = f[3];
  o.summary = f[4];
  if (f[5] != "-") o.invariant = f[5];
  o.violation_seconds = std::strtod(f[6].c_str(), nullptr);
  o.detail = f[7];
  return o;
}

Outcome Died(uint64_t seed, int status) {
  Outcome o;
  o.seed = seed;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    o.invariant = "hang";
    o.detail = fmt::format("the run takes more than {} s of real time", kHangSeconds);
  } else {
    o.invariant = "abort";
    o.detail = WIFSIGNALED(status) ? fmt::format("the process died by signal {}", WTERMSIG(status))
                                   : fmt::format("the process ended with status {}", WEXITSTATUS(status));
  }
  return o;
}

void WriteAll(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

}  // namespace

Outcome RunForked(const RunOptions& options) {
  int ends[2];
  PICKET_CHECK(::pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  PICKET_CHECK(child >= 0);
  if (child == 0) {
    ::close(ends[0]);
    ::alarm(kHangSeconds);
    WriteAll(ends[1], Encode(ToOutcome(options.seed, Run(options))));
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (text.ends_with('\n')) return Decode(text.substr(0, text.size() - 1));
  return Died(options.seed, status);
}

void ServeRange(const RunOptions& common, uint64_t first, uint64_t last) {
  RunOptions options = common;
  for (uint64_t seed = first; seed <= last; ++seed) {
    options.seed = seed;
    ::alarm(kHangSeconds);
    WriteAll(STDOUT_FILENO, Encode(ToOutcome(seed, Run(options))));
  }
}

void RunRange(const std::string& program, const RunOptions& common, uint64_t first, uint64_t last, size_t padding,
              const std::function<void(const Outcome&)>& done) {
  while (first <= last) {
    int ends[2];
    PICKET_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    std::fflush(nullptr);
    const pid_t child = ::fork();
    PICKET_CHECK(child >= 0);
    if (child == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::setenv("PICKET_SIM_PADDING", std::string(padding, 'x').c_str(), 1);
      std::vector<std::string> args = {program,  "serve", "--seeds", fmt::format("{}..{}", first, last),
                                       "--secs", std::to_string(common.seconds)};
      if (!common.workload.empty()) args.insert(args.end(), {"--workload", common.workload});
      std::vector<char*> argv;
      for (auto& a : args) argv.push_back(a.data());
      argv.push_back(nullptr);
      ::execv(program.c_str(), argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    FILE* in = ::fdopen(ends[0], "r");
    char* line = nullptr;
    size_t capacity = 0;
    while (::getline(&line, &capacity, in) > 0) {
      std::string text(line);
      if (!text.ends_with('\n')) break;
      text.pop_back();
      const Outcome o = Decode(text);
      first = o.seed + 1;
      done(o);
    }
    std::free(line);
    std::fclose(in);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (first <= last) done(Died(first++, status));
  }
}

}  // namespace picket::sim
