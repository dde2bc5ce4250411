// A command run as a child of this process: its environment, the signals that are passed on to it, its end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace picket::cli {

// While one lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT are kept for it, in this thread and those it starts.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  int fd() const { return fd_; }
  // 0: none has come. `from_terminal`: its whole foreground group has got it.
  int Take(bool* from_terminal);

 private:
  int fd_ = -1;
};

class Child {
 public:
  // In this process's group; with `variables` added to its environment. It gets a SIGTERM if this process
  // dies. The error: errno of the exec.
  static std::expected<Child, int> Start(const std::vector<std::string>& command,
                                         const std::vector<std::pair<std::string, std::string>>& variables);
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)), fd_(std::exchange(other.fd_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child();

  // Waits until it has ended, a held signal has come, or the time is over.
  enum class Wait { kEnded, kSignal, kTimeout };
  Wait Await(const HeldSignals& signals, std::chrono::milliseconds at_most) const;
  void Signal(int signal) const;
  // The exit status, or 128 + signal. REQUIRES: it has ended, or will.
  int Reap();

 private:
  Child(pid_t pid, int fd) : pid_(pid), fd_(fd) {}

  pid_t pid_ = 0;
  int fd_ = -1;  // of the process
};

}  // namespace picket::cli
