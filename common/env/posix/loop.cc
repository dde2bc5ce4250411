#include "common/env/posix/loop.h"

namespace picket::posix {

bool Loop::RunOnce(Nanos at_most) {
  if (dead_) return false;
  io_.run_one_for(at_most);
  io_.poll();
  return !io_.stopped();
}

void Loop::Kill(const std::function<void()>& abandon) {
  dead_ = true;
  timers_.Clear();
  do {
    abandon();
    io_.restart();
  } while (io_.poll() > 0);  // a destroyed frame's destructors may post more
}

TimerId Loop::At(Mono when, Fn fn) {
  if (dead_) return 0;
  const TimerId id = timers_.Add(when, std::move(fn));
  Arm();
  return id;
}

void Loop::Arm() {
  // A timer that is cancelled leaves the alarm set: an idle wake-up costs less than moving it each time.
  const auto next = timers_.Next();
  if (!next || *next >= armed_) return;
  armed_ = *next;
  timer_.expires_at(std::chrono::steady_clock::time_point(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(armed_.time_since_epoch())));
  timer_.async_wait([this](const boost::system::error_code& ec) {
    if (ec || dead_) return;
    armed_ = Mono::max();
    Fire();
  });
}

void Loop::Fire() {
  const Mono now = Now();
  const uint64_t end = timers_.sequence();
  while (Fn fn = timers_.PopDue(now, end)) fn();
  Arm();
}

}  // namespace picket::posix
