#include "master/file_limits.h"

#include <fmt/format.h>

#include <bit>

#include "master/trash.h"

namespace picket {

Status CheckMode(uint32_t mode) {
  if (mode <= kMaxMode) return {};
  return Fail(Code::kInvalidArgument, fmt::format("the mode {:o} is not made of permission bits", mode));
}

Status CheckOwner(std::string_view what, std::string_view name) {
  if (name.size() <= kMaxNameBytes) return {};
  return Fail(Code::kInvalidArgument,
              fmt::format("the {} has {} bytes; the limit is {}", what, name.size(), kMaxNameBytes));
}

Status CheckOwnership(const Namespace::Ownership& as) {
  PICKET_TRY(CheckMode(as.mode));
  PICKET_TRY(CheckOwner("owner", as.owner));
  return CheckOwner("group", as.group);
}

Status CheckLayout(uint32_t replication, uint64_t chunk_size) {
  if (replication == 0 || replication > kMaxReplication) {
    return Fail(Code::kInvalidArgument,
                fmt::format("the replication {} is not between 1 and {}", replication, kMaxReplication));
  }
  if (std::has_single_bit(chunk_size) && chunk_size >= kMinChunkSize && chunk_size <= kMaxChunkSize) return {};
  return Fail(Code::kInvalidArgument, fmt::format("the chunk size {} is not a power of two from {} to {}", chunk_size,
                                                  kMinChunkSize, kMaxChunkSize));
}

Status CheckOutsideTrash(const Path& path) {
  if (!Trash::Contains(path)) return {};
  return Fail(Error(Code::kInvalidArgument, fmt::format("{} is in the trash, where only a delete puts things",
                                                        path.Quoted()))
                  .WithNextStep("choose a path outside /.Trash"));
}

}  // namespace picket
