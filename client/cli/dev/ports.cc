#include "client/cli/dev/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <random>

#include "client/cli/local_file.h"

namespace picket::cli::dev {
namespace {

constexpr uint16_t kFirstPort = 10000;
constexpr uint16_t kLastPort = 32000;  // Linux takes outgoing ports from 32768 on
constexpr int kTries = 1000;

}  // namespace

bool IsPortFree(uint16_t port) {
  const LocalFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return false;
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && listen(fd.get(), 1) == 0;
}

DevResult<uint16_t> ChoosePort(const std::set<uint16_t>& taken) {
  // At random: two clusters that are started at the same moment hardly ever meet.
  std::random_device device;
  std::uniform_int_distribution<int> any(kFirstPort, kLastPort);
  for (int i = 0; i < kTries; ++i) {
    const auto port = static_cast<uint16_t>(any(device));
    if (!taken.contains(port) && IsPortFree(port)) return port;
  }
  return DevFail(kExitUnavailable, "127.0.0.1", "no free port was found between 10000 and 32000");
}

}  // namespace picket::cli::dev
