// Where the master is and who asks: from the options, the process's environment, the configuration file
// and the operating system, in this order.
#pragma once

#include "client/core/file_system.h"
#include "common/base/error.h"
#include "picket/client.h"

namespace picket::client {

inline constexpr uint16_t kDefaultMasterPort = 7400;

// kInvalidArgument, with what to do, when no master is named anywhere, its address or the file is not
// well formed, or a file that was asked for is not there.
picket::Result<FileSystemOptions> ResolveSettings(const Options& options);

}  // namespace picket::client
