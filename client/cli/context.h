// What one run of one command has at hand: its global options, the cluster, the two output streams,
// and the tally that becomes the exit code. Reports may come from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "client/cli/diagnostics.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "picket/client.h"

namespace picket::cli {

struct Command;

struct GlobalOptions {
  std::string master;
  std::string config;
  bool json = false;
  bool verbose = false;
};

class Context {
 public:
  Context(const Command& command, GlobalOptions options);

  const Command& command;
  GlobalOptions options;
  Output out;
  Diagnostics diagnostics;

  // The cluster, connected at the first call. nullptr: it could not be, which has been reported.
  client::Client* Connect();

  // One item is done, was left out, or failed: "picket put: /a: NOT_FOUND: cause; next step".
  void Succeed();
  void Skip(std::string_view object, std::string_view reason);
  void Fail(std::string_view object, const client::Error& error);
  void Fail(std::string_view object, ExitCode code, std::string_view cause);
  void Warn(std::string_view object, std::string_view text);
  // With -v only.
  void Note(std::string_view text);
  // The command line makes no sense: kExitUsage.
  int UsageError(std::string_view text);

  // The exit code of all that was reported. An interruption wins.
  int Finish();

 private:
  void Report(std::string_view object, std::string_view text);

  std::mutex mutex_;
  Outcome outcome_;
  std::unique_ptr<client::Client> client_;
};

}  // namespace picket::cli
