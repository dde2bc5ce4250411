#include "client/cli/context.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "client/cli/commands.h"
#include "client/cli/dev/layout.h"
#include "client/cli/interrupt.h"

namespace picket::cli {
namespace {

// So that a master that cannot be reached is reported within five seconds, whatever else is going on.
constexpr uint32_t kConnectTimeoutMs = 3000;

bool IsSet(const char* variable) {
  const char* value = getenv(variable);
  return value != nullptr && *value != '\0';
}

// The library looks at $PICKET_MASTER, $PICKET_CONFIG and ~/.config/picket/client.toml; where none of
// them says anything, a local cluster of `picket dev up` is the only one there can be.
std::string DevConfigFile() {
  if (IsSet("PICKET_MASTER") || IsSet("PICKET_CONFIG")) return "";
  std::error_code ignored;
  if (const char* home = getenv("HOME");
      home != nullptr && std::filesystem::exists(std::string(home) + "/.config/picket/client.toml", ignored)) {
    return "";
  }
  const std::string file = dev::Layout(dev::DefaultDirectory()).client_config();
  return std::filesystem::exists(file, ignored) ? file : "";
}

}  // namespace

Context::Context(const Command& command_in, GlobalOptions options_in)
    : command(command_in), options(std::move(options_in)) {}

client::Client* Context::Connect() {
  if (client_) return client_.get();
  client::Options connect;
  connect.master = options.master;
  connect.config_file = options.config;
  connect.connect_timeout_ms = kConnectTimeoutMs;
  if (connect.master.empty() && connect.config_file.empty()) connect.config_file = DevConfigFile();
  auto client = client::Client::Connect(connect);
  if (!client) {
    Fail("", client.error());
    return nullptr;
  }
  client_ = std::move(*client);
  Note(fmt::format("master {}, user {}", client_->master(), client_->user()));
  return client_.get();
}

void Context::Succeed() {
  std::lock_guard lock(mutex_);
  outcome_.Succeeded();
}

void Context::Skip(std::string_view object, std::string_view reason) {
  Report(object, fmt::format("skipped: {}", reason));
  std::lock_guard lock(mutex_);
  outcome_.Skipped();
}

void Context::Fail(std::string_view object, const client::Error& error) {
  client::Error shown = error;
  // The object is named once, by the command.
  if (!object.empty() && shown.message.starts_with(fmt::format("{}: ", object))) {
    shown.message.erase(0, object.size() + 2);
  }
  Report(object, shown.ToString());
  std::lock_guard lock(mutex_);
  outcome_.Failed(ExitCodeOf(error.kind));
}

void Context::Fail(std::string_view object, ExitCode code, std::string_view cause) {
  Report(object, cause);
  std::lock_guard lock(mutex_);
  outcome_.Failed(code);
}

void Context::Warn(std::string_view object, std::string_view text) { Report(object, fmt::format("warning: {}", text)); }

void Context::Note(std::string_view text) {
  if (options.verbose) Report("", text);
}

int Context::UsageError(std::string_view text) {
  Report("", fmt::format("{}; see: picket help {}", text, command.name));
  return kExitUsage;
}

int Context::Finish() {
  out.Flush();
  if (Interrupted()) return InterruptedExitCode();
  return outcome_.exit_code();
}

void Context::Report(std::string_view object, std::string_view text) {
  out.Flush();
  diagnostics.Line(object.empty() ? fmt::format("picket {}: {}", command.name, text)
                                  : fmt::format("picket {}: {}: {}", command.name, object, text));
}

}  // namespace picket::cli
