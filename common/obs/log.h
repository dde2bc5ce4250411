// Formatted logging through the environment, which adds the time and decides where it goes.
//   PICKET_LOG(env, kInfo, "chunk {} sealed at {} bytes", ToString(id), length);
// The format is checked at compile time; arguments are evaluated only when the level is on.
#pragma once

#include <fmt/format.h>

#include "common/env/env.h"

#define PICKET_LOG(env, level, ...)                                                        \
  do {                                                                                     \
    if ((env).LogEnabled(::picket::LogLevel::level))                                       \
      (env).Log(::picket::LogLevel::level, ::fmt::format(__VA_ARGS__));                    \
  } while (0)
