// The master's answers as the public library's structures, and its options as the core's. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/core/file_system.h"
#include "picket/client.h"
#include "proto/client_master.pb.h"

namespace picket::client {

FileStatus Public(const proto::FileStatus& from, std::string path);
ChunkInfo Public(const proto::ChunkLocation& from, std::string path);
ClusterInfo Public(const proto::ClusterReportResponse& from, std::string master);
LeaseInfo Public(const proto::LeaseInfo& from);
std::vector<QuarantineEntry> Public(const proto::QuarantineResponse& from);
AdoptReport Public(const proto::AdoptResponse& from);

proto::Conditions ToProto(const Conditions& from);
SessionOptions SessionOf(const Conditions& conditions, std::string writer_id, uint32_t soft_limit_ms,
                         uint32_t hard_limit_ms);
CreateFileOptions ToCore(const CreateOptions& from);
AppendFileOptions ToCore(const AppendOptions& from);

// "/a" + "b" → "/a/b"; "/" + "b" → "/b".
std::string Join(std::string_view directory, std::string_view name);

}  // namespace picket::client
