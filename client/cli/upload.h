// Writing one file of the store from a stream of bytes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/cli/context.h"
#include "client/cli/progress.h"
#include "picket/client.h"

namespace picket::cli {

struct ByteSource {
  // Up to `size` bytes; 0 at the end.
  std::function<client::Result<size_t>(void* into, size_t size)> read;
  // A pipe or terminal to wait on before each read: while it is silent, what has come is flushed to the
  // readers. -1: read at once.
  int wait_fd = -1;
};

// Creates `path`, writes all bytes, closes. On an error or an interruption a new file is given up again,
// the old content of an overwrite stays. Warnings of the store go to the context.
client::Result<client::FileStatus> Upload(Context& context, client::Client& client, Progress& progress,
                                          const ByteSource& source, const std::string& path,
                                          const client::CreateOptions& options);

// Goes on at the end of `path` with the bytes of the sources, one after the other, and closes. What was
// appended before an error or an interruption stays, and the error says how much. sync: what has come from a
// silent source is made durable, not only shown to readers.
client::Result<client::FileStatus> Append(Context& context, client::Client& client, Progress& progress,
                                          const std::vector<ByteSource>& sources, const std::string& path,
                                          const client::AppendOptions& options, bool sync);

}  // namespace picket::cli
