// The exit codes of `picket`, documented in picket(1). They never change their meaning.
#pragma once

#include "picket/status.h"

namespace picket::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,
  kExitUsage = 2,
  kExitNotFound = 3,
  kExitPermission = 4,
  kExitFenced = 5,
  kExitUnavailable = 6,
  kExitCorrupt = 7,
  kExitPartial = 8,   // some items done, some failed or skipped; or a cluster of which a part is down
  kExitConflict = 9,  // exists, not empty, held by somebody else
  kExitInterrupted = 130,
};

int ExitCodeOf(client::ErrorKind kind);

// What became of the items of one command, and the exit code that says it: of failures alone their
// common code (or kExitFailure), of failures beside successes, or of skipped items, kExitPartial.
class Outcome {
 public:
  void Succeeded() { ++succeeded_; }
  void Skipped() { ++skipped_; }
  void Failed(int exit_code);
  int exit_code() const;

 private:
  int succeeded_ = 0;
  int skipped_ = 0;
  int failed_ = 0;
  int code_ = kExitOk;
};

}  // namespace picket::cli
