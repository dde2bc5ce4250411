// Errors of the local cluster's commands: a line, and the exit code that fits.
#pragma once

#include <expected>
#include <string>

#include "client/cli/exit_code.h"

namespace picket::cli::dev {

struct DevError {
  ExitCode code = kExitFailure;
  std::string object;  // a path or the name of a process
  std::string text;
};

template <class T = void>
using DevResult = std::expected<T, DevError>;

inline std::unexpected<DevError> DevFail(ExitCode code, std::string object, std::string text) {
  return std::unexpected(DevError{code, std::move(object), std::move(text)});
}

}  // namespace picket::cli::dev
