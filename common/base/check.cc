#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace picket {

void CheckFailed(const char* expr, const char* file, int line) {
  std::fprintf(stderr, "picket: internal check failed: %s (%s:%d)\n", expr, file, line);
  std::abort();
}

}  // namespace picket
