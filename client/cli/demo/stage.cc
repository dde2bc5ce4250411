#include "client/cli/demo/stage.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "client/cli/interrupt.h"

namespace picket::cli::demo {
namespace {

constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::milliseconds kStopGrace{10'000};

dev::UpOptions Settings() {
  dev::UpOptions up{.chunkservers = 3};
  const auto ms = [](std::chrono::milliseconds time) { return fmt::format("{}ms", time.count()); };
  up.settings["master"] = {{"soft_limit", ms(kSoftLimit)},
                           {"lease", ms(kPrimaryLease)},
                           {"dead_after", ms(kDeadAfter)},
                           {"suspect_after", "1s"},
                           {"heartbeat", "200ms"}};
  return up;
}

}  // namespace

Error NotAsTold(std::string what) { return Error(Code::kInternal, std::move(what)); }

Error Of(const client::Error& error) { return Error(Code::kInternal, error.ToString()); }

Error Of(const dev::DevError& error) {
  return Error(Code::kInternal, error.object.empty() ? error.text : error.object + ": " + error.text);
}

Status Until(std::string_view what, const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kConditionTimeout;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end)
      return Fail(Code::kDeadlineExceeded, fmt::format("waited in vain until {}", what));
    if (!WaitFor(kLook)) return Fail(NotAsTold("interrupted"));
  }
  return {};
}

Stage::Stage(std::string directory, bool keep, std::function<void(std::string_view)> say)
    : keep_(keep), cluster_(dev::Layout(std::move(directory)), std::move(say)) {}

Result<std::unique_ptr<Stage>> Stage::Build(bool keep, std::function<void(std::string_view)> say) {
  std::error_code error;
  std::string pattern = (std::filesystem::temp_directory_path(error) / "picket-demo-XXXXXX").string();
  if (error) return Fail(NotAsTold("no directory for temporary files: " + error.message()));
  if (mkdtemp(pattern.data()) == nullptr) return Fail(NotAsTold(fmt::format("{}: {}", pattern, strerror(errno))));
  std::unique_ptr<Stage> stage(new Stage(pattern, keep, std::move(say)));
  PICKET_TRY(stage->Start());
  return stage;
}

Status Stage::Start() {
  if (auto up = cluster_.Up(Settings()); !up) return Fail(Of(up.error()));
  const auto members = cluster_.Status();
  if (!members) return Fail(Of(members.error()));
  master_ = Endpoint("127.0.0.1", members->front().member.port);
  auto client = client::Client::Connect({.master = master_.ToString(), .operation_timeout_ms = 20'000});
  if (!client) return Fail(Of(client.error()));
  client_ = std::move(*client);
  wire_ = std::make_unique<Wire>();
  return {};
}

Stage::~Stage() {
  client_.reset();
  wire_.reset();
  for (const Endpoint& server : paused_) (void)SignalTo(server, SIGCONT);
  (void)cluster_.Down();
  if (!keep_) {
    (void)cluster_.Wipe();
    // What an interrupted start left before there was a marker.
    rmdir(directory().c_str());
  }
}

Result<dev::MemberStatus> Stage::Find(const Endpoint& server) const {
  const auto members = cluster_.Status();
  if (!members) return Fail(Of(members.error()));
  for (const dev::MemberStatus& status : *members) {
    if (status.member.port == server.port) return status;
  }
  return Fail(NotAsTold(server.ToString() + " is no process of this cluster"));
}

std::string Stage::NameOf(const Endpoint& server) const {
  const auto found = Find(server);
  return found ? found->member.name : server.ToString();
}

Status Stage::SignalTo(const Endpoint& server, int signal) const {
  const auto found = Find(server);
  if (!found) return Fail(found.error());
  if (found->run != dev::MemberStatus::Run::kRunning || kill(found->process.pid, signal) != 0) {
    return Fail(NotAsTold(found->member.name + " does not run"));
  }
  return {};
}

Status Stage::Pause(const Endpoint& server) {
  paused_.insert(server);
  return SignalTo(server, SIGSTOP);
}

Status Stage::Resume(const Endpoint& server) {
  paused_.erase(server);
  return SignalTo(server, SIGCONT);
}

Status Stage::RestartMaster() {
  const auto found = Find(master_);
  if (!found) return Fail(found.error());
  if (!dev::StopProcesses({found->process}, kStopGrace)) return Fail(NotAsTold("the master did not stop in time"));
  if (auto up = cluster_.Up({}); !up) return Fail(Of(up.error()));
  return {};
}

}  // namespace picket::cli::demo
