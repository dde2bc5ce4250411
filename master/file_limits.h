// What requests may ask of a file or directory: the checks that do not depend on what is there. Pure.
#pragma once

#include <cstdint>

#include "common/base/error.h"
#include "master/namespace.h"
#include "master/path.h"

namespace picket {

inline constexpr uint32_t kMaxReplication = 16;
inline constexpr uint64_t kMinChunkSize = 1 << 20;
inline constexpr uint64_t kMaxChunkSize = 1 << 30;
inline constexpr uint32_t kMaxMode = 07777;

// All kInvalidArgument.
Status CheckMode(uint32_t mode);
// Owner and group are names of the file system they came from; kept, not judged.
Status CheckOwner(std::string_view what, std::string_view name);
Status CheckOwnership(const Namespace::Ownership& as);
Status CheckLayout(uint32_t replication, uint64_t chunk_size);
Status CheckOutsideTrash(const Path& path);

}  // namespace picket
