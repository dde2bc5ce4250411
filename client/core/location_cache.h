// Where chunks of files are, as the master last said: bounded, least recently used goes first. A hint:
// the version in it is judged by the replica, so a wrong entry costs a refusal, never wrong bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/env/net.h"
#include "proto/client_master.pb.h"

namespace picket {

struct ReplicaPlace {
  ServerId server;
  Endpoint endpoint;
};
struct ChunkPlace {
  ChunkId chunk;
  uint64_t index = 0;
  Version version;
  bool sealed = false;
  uint64_t length = 0;                 // when sealed
  uint64_t extent = 0;                 // how far the file reaches into it: what it does not hold is a hole
  ServerId primary;                    // 0: none
  std::vector<ReplicaPlace> replicas;  // readable ones only
  std::vector<ReplicaPlace> corrupt;   // never read: why there may be no other
};
ChunkPlace PlaceFromProto(const proto::ChunkLocation& from);
// Of every chunk in the answer.
std::vector<ChunkPlace> PlacesOf(const proto::GetFileResponse& file);

class LocationCache {
 public:
  static constexpr size_t kDefaultCapacity = 4096;  // chunks
  explicit LocationCache(size_t capacity = kDefaultCapacity) : capacity_(capacity) {}

  std::optional<ChunkPlace> Find(InodeId inode, uint64_t index);
  void Put(InodeId inode, ChunkPlace place);
  void Forget(InodeId inode, uint64_t index);
  size_t size() const { return entries_.size(); }

 private:
  using Key = std::pair<InodeId, uint64_t>;
  struct Entry {
    ChunkPlace place;
    std::list<Key>::iterator use;
  };
  const size_t capacity_;
  std::map<Key, Entry> entries_;
  std::list<Key> by_use_;  // most recent last
};

}  // namespace picket
