// The configuration files and the init arguments of a local cluster's processes.
#pragma once

#include <string>
#include <vector>

#include "client/cli/dev/layout.h"
#include "client/cli/dev/state.h"

namespace picket::cli::dev {

std::string ServerConfig(const Layout& layout, const State& state, const Member& member);
// For the server's `init`, which makes its data directory.
std::vector<std::string> InitArguments(const Layout& layout, const State& state, const Member& member);
std::string ClientConfig(const State& state);

}  // namespace picket::cli::dev
