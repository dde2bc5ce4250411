#include "client/cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace picket::cli {
namespace {

constexpr int kHeld[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

sigset_t HeldSet() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kHeld) sigaddset(&set, signal);
  return set;
}

// Between fork and exec: only what is safe there.
[[noreturn]] void Become(char* const* argv, char* const* envp, pid_t parent, int report) {
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(128 + SIGTERM);
  execvpe(argv[0], argv, envp);
  const int why = errno;
  [[maybe_unused]] const ssize_t ignored = write(report, &why, sizeof why);
  _exit(127);
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

HeldSignals::HeldSignals() {
  const sigset_t set = HeldSet();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

HeldSignals::~HeldSignals() {
  if (fd_ >= 0) close(fd_);
  const sigset_t set = HeldSet();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

int HeldSignals::Take(bool* from_terminal) {
  signalfd_siginfo info{};
  if (read(fd_, &info, sizeof info) != sizeof info) return 0;
  *from_terminal = info.ssi_code == SI_KERNEL;
  return static_cast<int>(info.ssi_signo);
}

std::expected<Child, int> Child::Start(const std::vector<std::string>& command,
                                       const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> args = command;
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : variables) replaced |= text.starts_with(name + "=");
    if (!replaced) environment.emplace_back(text);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  const std::vector<char*> argv = Pointers(args);
  const std::vector<char*> envp = Pointers(environment);

  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return std::unexpected(errno);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Become(argv.data(), envp.data(), parent, report[1]);
  const int fork_error = errno;
  close(report[1]);
  int why = 0;
  // The pipe closes when the command runs.
  const bool failed = pid > 0 && read(report[0], &why, sizeof why) == sizeof why;
  close(report[0]);
  if (pid < 0) return std::unexpected(fork_error);
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  Child child(pid, fd);
  if (failed) {
    child.Reap();
    return std::unexpected(why);
  }
  return child;
}

Child::~Child() {
  if (fd_ >= 0) close(fd_);
}

Child::Wait Child::Await(const HeldSignals& signals, std::chrono::milliseconds at_most) const {
  pollfd waits[2] = {{fd_, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
  poll(waits, 2, static_cast<int>(at_most.count()));
  // Asked for itself: where the kernel gives no descriptor of a process, only this tells.
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_) {
    return Wait::kEnded;
  }
  return waits[1].revents != 0 ? Wait::kSignal : Wait::kTimeout;
}

void Child::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

int Child::Reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace picket::cli
