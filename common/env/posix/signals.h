// What a server's process does with signals: SIGTERM and SIGINT ask it to stop, SIGHUP and SIGPIPE are
// ignored. For the main of a program; a library leaves its host's signals alone.
#pragma once

#include <boost/asio/signal_set.hpp>

#include "common/env/posix/posix_env.h"
#include "common/env/task.h"

namespace picket {

class SignalWatcher {
 public:
  // Runs `on_stop` on the loop at the first SIGTERM or SIGINT. The second ends the process at once,
  // with 128 + its number.
  SignalWatcher(PosixEnv& env, Fn on_stop);

 private:
  void Watch();

  PosixEnv& env_;
  Fn on_stop_;
  asio::signal_set signals_;
};

}  // namespace picket
