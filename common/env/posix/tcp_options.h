// Socket options of every connection.
#pragma once

#include <string>

#include "common/base/error.h"

namespace picket::posix {

// No delay for small frames, and a silent peer is given up: idle after keep-alive probes, with data
// on the way after 30 s (TCP_USER_TIMEOUT). Buffer sizes stay the kernel's: fixing them turns its
// tuning off. Best effort.
void SetTcpOptions(int fd);

// `name` as in the configuration: "auto", "system", or what the kernel calls it. "auto" leaves the
// system's choice for real networks, and takes cubic (or reno, where cubic is not permitted) between
// processes of one machine, where a pacing default such as bbr halves the throughput.
// Fails only for a name that the kernel refuses.
Status SetCongestionControl(int fd, const std::string& name, bool same_machine);

}  // namespace picket::posix
