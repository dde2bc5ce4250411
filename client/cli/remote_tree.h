// Trees of the store in a plan: the source of get and cp, the target of put and cp.
#pragma once

#include <string>

#include "client/cli/context.h"
#include "client/cli/plan.h"
#include "picket/client.h"

namespace picket::cli {

// Directories that cannot be listed are reported and left out.
void AddRemoteTree(Context& context, client::Client& client, const client::FileStatus& source,
                   const std::string& target, Plan* plan);

// Gives a directory in the store the mode and the modification time of its source.
client::Result<> SetAttributes(client::Client& client, const PlannedItem& directory);

}  // namespace picket::cli
