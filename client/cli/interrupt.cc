#include "client/cli/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace picket::cli {
namespace {

std::atomic<int> deferrals{0};
std::atomic<int> patient_deferrals{0};
std::atomic<int> caught_signal{0};
int wake_pipe[2] = {-1, -1};

void OnSignal(int signal) {
  const bool first = caught_signal.exchange(signal) == 0;
  if (deferrals.load() == 0 || (!first && patient_deferrals.load() == 0)) _exit(128 + signal);
  const int saved_errno = errno;
  // The byte is never read, so the pipe stays readable for every waiter.
  [[maybe_unused]] const ssize_t ignored = write(wake_pipe[1], "!", 1);
  errno = saved_errno;
}

}  // namespace

void InstallSignalHandlers() {
  signal(SIGPIPE, SIG_IGN);
  if (pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0) return;  // default actions stay
  struct sigaction action{};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction inherited{};
    sigaction(signal, nullptr, &inherited);
    // Ignored by the parent (nohup, a background job of sh): it stays ignored.
    if (inherited.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

bool Interrupted() { return caught_signal.load() != 0; }
int InterruptedExitCode() { return 128 + caught_signal.load(); }

Deferral::Deferral(Patience patience) : patience_(patience) {
  if (patience_ == Patience::kAllSignals) patient_deferrals.fetch_add(1);
  deferrals.fetch_add(1);
}
Deferral::~Deferral() {
  deferrals.fetch_sub(1);
  if (patience_ == Patience::kAllSignals) patient_deferrals.fetch_sub(1);
}

Wait WaitReadable(int fd, std::chrono::milliseconds at_most) {
  pollfd waits[2] = {{fd, POLLIN, 0}, {wake_pipe[0], POLLIN, 0}};
  while (!Interrupted()) {
    const int ready = poll(waits, 2, static_cast<int>(at_most.count()));
    if (ready == 0) return Wait::kTimeout;
    // After an error the read says what is wrong.
    if ((ready < 0 && errno != EINTR) || (ready > 0 && waits[0].revents != 0)) return Wait::kReadable;
  }
  return Wait::kInterrupted;
}

bool WaitFor(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  pollfd wait{wake_pipe[0], POLLIN, 0};
  while (!Interrupted()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    poll(&wait, 1, static_cast<int>(left.count()));
  }
  return false;
}

}  // namespace picket::cli
