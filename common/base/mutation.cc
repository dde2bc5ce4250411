#include "common/base/mutation.h"

#ifdef PICKET_MUTANTS
#include <cstdlib>
#include <cstring>

namespace picket {

bool MutantActive(const char* name) {
  static const char* const active = std::getenv("PICKET_MUTANT");
  return active != nullptr && std::strcmp(active, name) == 0;
}

}  // namespace picket
#endif
