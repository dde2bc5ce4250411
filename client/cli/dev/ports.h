// Free TCP ports of the loopback interface.
#pragma once

#include <cstdint>
#include <set>

#include "client/cli/dev/result.h"

namespace picket::cli::dev {

bool IsPortFree(uint16_t port);
// One that is free and not in `taken`, outside of the range from which the system takes ports for
// outgoing connections: it is still free when the server is started again another day.
DevResult<uint16_t> ChoosePort(const std::set<uint16_t>& taken);

}  // namespace picket::cli::dev
