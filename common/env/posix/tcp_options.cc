#include "common/env/posix/tcp_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/env/posix/fd.h"

namespace picket::posix {
namespace {

constexpr int kKeepAliveIdle_s = 15;
constexpr int kKeepAliveInterval_s = 5;
constexpr int kKeepAliveProbes = 3;
constexpr unsigned kUserTimeout_ms = 30'000;

template <class T>
void Set(int fd, int level, int option, T value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

bool TryCongestionControl(int fd, const std::string& name) {
  return ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

}  // namespace

void SetTcpOptions(int fd) {
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdle_s);
  Set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveInterval_s);
  Set(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
  Set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeout_ms);
}

Status SetCongestionControl(int fd, const std::string& name, bool same_machine) {
  if (name == "system") return {};
  if (name == "auto") {
    if (same_machine && !TryCongestionControl(fd, "cubic")) TryCongestionControl(fd, "reno");
    return {};
  }
  if (!TryCongestionControl(fd, name)) return Fail(ErrnoError(errno, "use congestion control", name));
  return {};
}

}  // namespace picket::posix
