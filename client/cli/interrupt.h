// Ctrl-C. Without anything to tidy up the process ends at once with 130 (or 128 + the signal).
// While a Deferral lives, the first signal only sets a flag and wakes waiters, and a second one ends
// the process, unless a patient Deferral lives. SIGPIPE is ignored, so that a closed socket or pipe is an error value.
#pragma once

#include <chrono>

namespace picket::cli {

void InstallSignalHandlers();

// SIGINT, SIGTERM or SIGHUP has come.
bool Interrupted();
// 130 after SIGINT, 128 + signal after another one.
int InterruptedExitCode();

// While one lives, its owner promises to look at Interrupted() soon and to tidy up. A patient one is for what
// would leave processes behind: it lets no number of signals end this process before it has tidied up.
class Deferral {
 public:
  enum class Patience { kOneSignal, kAllSignals };
  explicit Deferral(Patience patience = Patience::kOneSignal);
  ~Deferral();
  Deferral(const Deferral&) = delete;
  Deferral& operator=(const Deferral&) = delete;

 private:
  const Patience patience_;
};

// Waits until `fd` can be read (or is at its end); a negative time: without limit. Needs a Deferral.
enum class Wait { kReadable, kTimeout, kInterrupted };
Wait WaitReadable(int fd, std::chrono::milliseconds at_most);
// Waits for the time to pass. False: interrupted. Needs a Deferral.
bool WaitFor(std::chrono::milliseconds time);

}  // namespace picket::cli
