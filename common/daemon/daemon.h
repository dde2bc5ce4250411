// The main program that both servers share: flags, configuration file, logging, signals, exit codes.
//
//   NAME [--config F] [--<key> VALUE …] [--log-level L] [--log-format text|json]
//   NAME --check-config | --sample-config | --version | --help
//   NAME init [--<init key> VALUE …]
//
// SIGTERM and SIGINT stop the server in order; a second one ends the process at once.
// Exit codes: 0 fine, 1 failed, 2 usage or configuration.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/env/env.h"
#include "common/obs/config.h"

namespace picket {

// A server. Destroyed after every task of its Env, before the Env itself.
class Daemon {
 public:
  virtual ~Daemon() = default;
  // Success: it serves.
  virtual Task<Status> Start() = 0;
  // Refuses new work, ends the old, makes durable what should be.
  virtual Task<> Stop() = 0;
};

struct DaemonSpec {
  std::string name;                // "picket-master"
  std::string summary;             // one line for --help
  Config* config = nullptr;        // bound to the role's settings
  const Endpoint* listen = nullptr;  // the bound setting: an address beyond loopback is warned about
  // Called once the configuration is complete.
  std::function<std::unique_ptr<Daemon>(Env&)> make;

  // The subcommand `init`: its own keys, and what it does; the answer is printed on standard output.
  Config* init_config = nullptr;
  std::function<Task<Result<std::string>>(Env&)> init;
};

int RunDaemon(int argc, char** argv, const DaemonSpec& spec);

}  // namespace picket
