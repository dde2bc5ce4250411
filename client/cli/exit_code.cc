#include "client/cli/exit_code.h"

namespace picket::cli {

int ExitCodeOf(client::ErrorKind kind) {
  using enum client::ErrorKind;
  switch (kind) {
    case kInvalidArgument:
      return kExitUsage;
    case kNotFound:
      return kExitNotFound;
    case kPermissionDenied:
      return kExitPermission;
    case kFenced:
      return kExitFenced;
    case kUnavailable:
    case kTimeout:
      return kExitUnavailable;
    case kCorrupt:
      return kExitCorrupt;
    case kAlreadyExists:
    case kNotEmpty:
    case kConflict:
    case kLeaseHeld:
      return kExitConflict;
    case kNotDirectory:
    case kIsDirectory:
    case kNoSpace:
    case kUnsupported:
    case kInternal:
      return kExitFailure;
  }
  return kExitFailure;
}

void Outcome::Failed(int exit_code) {
  if (failed_++ == 0) {
    code_ = exit_code;
  } else if (code_ != exit_code) {
    code_ = kExitFailure;
  }
}

int Outcome::exit_code() const {
  if (failed_ > 0) return succeeded_ + skipped_ > 0 ? kExitPartial : code_;
  return skipped_ > 0 ? kExitPartial : kExitOk;
}

}  // namespace picket::cli
