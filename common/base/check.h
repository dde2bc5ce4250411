// Assertions that stay on in release. They guard our bugs, never the network's or the user's input.
#pragma once

namespace picket {
[[noreturn]] void CheckFailed(const char* expr, const char* file, int line);
}  // namespace picket

#define PICKET_CHECK(expr) \
  (static_cast<bool>(expr) ? void(0) : ::picket::CheckFailed(#expr, __FILE__, __LINE__))
