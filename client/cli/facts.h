// The JSON form of what commands print: UTC times, bytes, ids in hex; the keys are stable.
#pragma once

#include "client/cli/output.h"
#include "picket/client.h"

namespace picket::cli {

Json FactsOf(const client::FileStatus& status);
Json FactsOf(const client::ChunkInfo& chunk);
Json FactsOf(const client::ServerInfo& server);
Json FactsOf(const client::ClusterInfo& cluster);
Json FactsOf(const client::Summary& summary);
Json FactsOf(const client::LeaseInfo& lease);
Json FactsOf(const client::QuarantineEntry& entry);
Json FactsOf(const client::AdoptReport& report);

}  // namespace picket::cli
