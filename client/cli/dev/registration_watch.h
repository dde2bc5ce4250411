// Waiting until a local cluster can be used.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "client/cli/dev/result.h"
#include "client/cli/dev/state.h"

namespace picket::cli::dev {

// Returns when the master answers and lists every chunkserver of `state` as live, each with a heartbeat
// since its start in `started` if it is there (an older one may be of its former process). `ended` is
// asked at each look, and its error ends the wait.
DevResult<> WaitUntilRegistered(const State& state,
                                const std::map<std::string, std::chrono::steady_clock::time_point>& started,
                                std::chrono::milliseconds at_most, const std::function<DevResult<>()>& ended);

}  // namespace picket::cli::dev
