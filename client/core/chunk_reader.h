// Verified bytes of a chunk, from whichever readable replica can give them.
//
// One read is a small race: the best replica is asked; when it fails, or has been silent for kHedgeAfter,
// the next one is asked too, and the first good answer wins. Bytes that do not match their checksum are
// never passed on: another replica is read and the first server is told to look at itself (HDFS-1371).
// When no replica served, the locations are asked for again, until kGiveUpAfter has passed; the error then
// names the chunk, the version and what each server said. Shared by the readers of one FileSystem.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/core/location_cache.h"
#include "client/core/master_client.h"
#include "client/core/server_health.h"
#include "common/env/env.h"
#include "common/env/sync.h"
#include "common/rpc/client.h"
#include "proto/data.pb.h"

namespace picket {

struct ChunkBytes {
  Buffer data;
  uint64_t readable = 0;  // of the chunk, at the replica that answered
  bool sealed = false;
};

class ChunkReader {
 public:
  static constexpr Nanos kHedgeAfter = 1s;
  static constexpr Nanos kGiveUpAfter = 9s;
  static constexpr Nanos kReadTimeout = 8s;
  static constexpr Nanos kTrustCacheFor = 4s;   // silence at remembered places: ask where it is now
  static constexpr uint32_t kLocatePage = 64;  // chunks

  ChunkReader(Env& env, std::shared_ptr<MasterClient> master, Nanos master_patience);

  // [offset, offset + size) of chunk `index`; size <= 1 MiB and within one MiB of the chunk. Fewer bytes where
  // the chunk ends and the file does not; who knows that is a sealed replica, or of an open chunk its primary
  // (another one may lag: kShort is a reason to ask the next). None when the file has no such chunk. `least`:
  // so many are known to be there. With size 0: what is readable, no bytes.
  static Task<Result<ChunkBytes>> Read(std::shared_ptr<ChunkReader> self, InodeId inode, uint64_t index,
                                       uint64_t offset, uint64_t size, uint64_t least = 0);

  // Asks the master; what it says is remembered. By path, or by inode when it is empty.
  Task<Result<proto::GetFileResponse>> Locate(std::string path, InodeId inode, uint64_t first_index, uint32_t limit);

 private:
  struct Refusal {
    ReplicaPlace from;
    Error error;
  };
  struct Race {
    explicit Race(Env& env) : news(env) {}
    ChunkPlace place;
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t least = 0;
    Signal news;
    size_t running = 0;
    std::optional<ChunkBytes> won;
    std::vector<Refusal> refusals;
  };

  static Task<Result<ChunkPlace>> Find(std::shared_ptr<ChunkReader> self, InodeId inode, uint64_t index, Mono deadline,
                                       bool* cached);
  static Task<> RunRace(std::shared_ptr<ChunkReader> self, std::shared_ptr<Race> race, Mono end);
  static Task<> Ask(std::shared_ptr<ChunkReader> self, std::shared_ptr<Race> race, ReplicaPlace replica, Nanos timeout);
  static Task<> Complain(std::shared_ptr<ChunkReader> self, std::shared_ptr<Race> race, ReplicaPlace replica);
  Result<ChunkBytes> Judge(const Race& race, ServerId from, Result<RpcReply> reply) const;
  static bool EndsThere(const Race& race, ServerId from, const proto::ReadResponse& answer);
  Error Nobody(const Race& race) const;

  Env& env_;
  const std::shared_ptr<MasterClient> master_;
  const Nanos master_patience_;
  LocationCache cache_;
  ServerHealth health_;
  ChannelPool channels_;
};

}  // namespace picket
