#include "client/cli/dev/registration_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "client/cli/interrupt.h"
#include "picket/client.h"

namespace picket::cli::dev {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLookPeriod = std::chrono::milliseconds(50);
constexpr uint32_t kConnectTimeoutMs = 500;

// Names of the members that are not there yet.
std::string Missing(const State& state, const std::map<std::string, Clock::time_point>& started,
                    const client::ClusterInfo& cluster) {
  std::string missing;
  for (const Member& member : state.members) {
    if (member.role == "master") continue;
    const bool registered = std::ranges::any_of(cluster.servers, [&](const client::ServerInfo& server) {
      if (server.address != member.address() || server.state != "live") return false;
      const auto start = started.find(member.name);
      const auto heard = Clock::now() - std::chrono::milliseconds(server.last_heartbeat_ms_ago);
      return start == started.end() || heard >= start->second;
    });
    if (!registered) missing += (missing.empty() ? "" : ", ") + member.name;
  }
  return missing;
}

}  // namespace

DevResult<> WaitUntilRegistered(const State& state, const std::map<std::string, Clock::time_point>& started,
                                std::chrono::milliseconds at_most, const std::function<DevResult<>()>& ended) {
  const Deferral deferral;
  const auto until = Clock::now() + at_most;
  std::unique_ptr<client::Client> client;
  std::string waiting_for = "master";
  do {
    if (auto alive = ended(); !alive) return alive;
    if (!client) {
      auto connected = client::Client::Connect(
          {.master = state.master().address(), .connect_timeout_ms = kConnectTimeoutMs, .operation_timeout_ms = 5000});
      if (connected) client = std::move(*connected);
    }
    if (client) {
      if (const auto cluster = client->Report()) {
        waiting_for = Missing(state, started, *cluster);
        if (waiting_for.empty()) return {};
      }
    }
    if (Clock::now() > until) {
      return DevFail(kExitUnavailable, waiting_for, "not ready in time; see the logs that picket dev status names");
    }
  } while (WaitFor(kLookPeriod));
  return DevFail(kExitInterrupted, "", "interrupted; the processes go on, picket dev down stops them");
}

}  // namespace picket::cli::dev
