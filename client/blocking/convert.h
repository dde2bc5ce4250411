// The master's answers as the public library's structures. Pure.
#pragma once

#include <string>
#include <string_view>

#include "picket/client.h"
#include "proto/client_master.pb.h"

namespace picket::client {

FileStatus Public(const proto::FileStatus& from, std::string path);
ChunkInfo Public(const proto::ChunkLocation& from, std::string path);
ClusterInfo Public(const proto::ClusterReportResponse& from, std::string master);

// "/a" + "b" → "/a/b"; "/" + "b" → "/b".
std::string Join(std::string_view directory, std::string_view name);

}  // namespace picket::client
