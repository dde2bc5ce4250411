// Reading one file of the store into a local file.
#pragma once

#include <string>

#include "client/cli/context.h"
#include "client/cli/progress.h"
#include "picket/client.h"

namespace picket::cli {

struct DownloadOptions {
  bool replace = false;
  bool preserve = false;  // mode and modification time
  uint32_t streams = 1;   // ranges of the file read at once
};

// The local file appears when it is complete. Returns its length.
client::Result<uint64_t> Download(client::Client& client, Progress& progress, const std::string& path,
                                  const std::string& local_path, const DownloadOptions& options);

}  // namespace picket::cli
