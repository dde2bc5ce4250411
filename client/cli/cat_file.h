// Writing a file of the store to standard output.
#pragma once

#include <string>

#include "client/cli/context.h"
#include "picket/client.h"

namespace picket::cli {

// Reports its failure or success to the context.
void CatFile(Context& context, client::Client& client, const std::string& path);

}  // namespace picket::cli
