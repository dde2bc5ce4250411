// Where a copy or a move goes, as with cp: into an existing directory under its own name, else to exactly
// that path. Several sources, or a slash at the end, need a directory.
#pragma once

#include <string>
#include <string_view>

#include "picket/client.h"

namespace picket::cli {

struct Destination {
  std::string path;
  bool is_directory = false;  // things go into it
  bool exists = false;

  // Where the source of that name goes.
  std::string For(std::string_view name) const;
};

client::Result<Destination> RemoteDestination(client::Client& client, std::string_view argument, size_t sources);
client::Result<Destination> LocalDestination(std::string_view argument, size_t sources);

// Makes one directory; one that is there already is filled up.
client::Result<> EnsureDirectory(client::Client& client, const std::string& path);

}  // namespace picket::cli
