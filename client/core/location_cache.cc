#include "client/core/location_cache.h"

#include <algorithm>

namespace picket {

ChunkPlace PlaceFromProto(const proto::ChunkLocation& from) {
  ChunkPlace place;
  place.chunk = ChunkId(from.chunk());
  place.index = from.index();
  place.version = Version(from.version());
  place.sealed = from.sealed();
  place.length = from.length();
  place.primary = ServerId(from.primary());
  for (const auto& replica : from.replicas()) {
    const auto& hop = replica.hop();
    ReplicaPlace where{ServerId(hop.server()), Endpoint(hop.host(), static_cast<uint16_t>(hop.port()))};
    if (replica.readable()) {
      place.replicas.push_back(std::move(where));
    } else if (replica.state() == proto::CORRUPT) {
      place.corrupt.push_back(std::move(where));
    }
  }
  return place;
}

std::vector<ChunkPlace> PlacesOf(const proto::GetFileResponse& file) {
  std::vector<ChunkPlace> places;
  const uint64_t chunk_size = file.status().chunk_size();
  for (const auto& chunk : file.chunks()) {
    ChunkPlace place = PlaceFromProto(chunk);
    const bool last = &chunk == &file.chunks(file.chunks_size() - 1) && !file.more();
    const uint64_t start = place.index * chunk_size;
    place.extent = last ? std::min(file.status().length() - std::min(start, file.status().length()), chunk_size)
                        : chunk_size;
    places.push_back(std::move(place));
  }
  return places;
}

std::optional<ChunkPlace> LocationCache::Find(InodeId inode, uint64_t index) {
  auto it = entries_.find({inode, index});
  if (it == entries_.end()) return std::nullopt;
  by_use_.splice(by_use_.end(), by_use_, it->second.use);
  return it->second.place;
}

void LocationCache::Put(InodeId inode, ChunkPlace place) {
  const Key key{inode, place.index};
  if (auto it = entries_.find(key); it != entries_.end()) {
    it->second.place = std::move(place);
    by_use_.splice(by_use_.end(), by_use_, it->second.use);
    return;
  }
  if (entries_.size() >= capacity_) {
    entries_.erase(by_use_.front());
    by_use_.pop_front();
  }
  entries_.emplace(key, Entry{std::move(place), by_use_.insert(by_use_.end(), key)});
}

void LocationCache::Forget(InodeId inode, uint64_t index) {
  auto it = entries_.find({inode, index});
  if (it == entries_.end()) return;
  by_use_.erase(it->second.use);
  entries_.erase(it);
}

}  // namespace picket
