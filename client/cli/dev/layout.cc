#include "client/cli/dev/layout.h"

#include <cstdlib>
#include <filesystem>

namespace picket::cli::dev {

std::string DefaultDirectory() {
  if (const char* set = getenv("PICKET_DEV_DIR"); set != nullptr && *set != '\0') {
    return std::filesystem::absolute(set).lexically_normal().string();
  }
  const char* home = getenv("HOME");
  return std::string(home != nullptr ? home : "/tmp") + "/.local/share/picket/dev";
}

}  // namespace picket::cli::dev
