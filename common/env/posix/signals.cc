#include "common/env/posix/signals.h"

#include <signal.h>
#include <unistd.h>

namespace picket {

SignalWatcher::SignalWatcher(PosixEnv& env, Fn on_stop)
    : env_(env), on_stop_(std::move(on_stop)), signals_(env.io(), SIGTERM, SIGINT) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  Watch();
}

void SignalWatcher::Watch() {
  signals_.async_wait([this](const boost::system::error_code& ec, int signal) {
    if (ec) return;
    if (!on_stop_) ::_exit(128 + signal);
    env_.Log(LogLevel::kInfo, signal == SIGTERM ? "SIGTERM: stopping" : "SIGINT: stopping");
    Fn on_stop = std::move(on_stop_);
    on_stop_ = nullptr;
    Watch();
    on_stop();
  });
}

}  // namespace picket
