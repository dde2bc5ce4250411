#include "master/chunk_table.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/coding.h"

namespace picket {
namespace {

constexpr std::string_view kChunks = "chunk/";
constexpr std::string_view kPlaces = "file_chunk/";
constexpr std::string_view kGarbage = "garbage/";

std::string IdKey(std::string_view family, uint64_t id) {
  std::string key(family);
  PutBigEndian64(&key, id);
  return key;
}

std::string PlaceKey(uint64_t inode, uint64_t index) {
  std::string key = IdKey(kPlaces, inode);
  PutBigEndian64(&key, index);
  return key;
}

// The key that sorts directly before `id`'s: "start after" it yields id itself first. "" when id is the first.
std::string Before(std::string_view family, uint64_t id) { return id == 0 ? std::string() : IdKey(family, id - 1); }

uint64_t LastNumber(std::string_view key) { return LoadBigEndian64(key.data() + key.size() - 8); }

Error Dangling(uint64_t inode, uint64_t index) {
  return Error(Code::kCorrupt, "the place " + std::to_string(index) + " of inode " + ToHex(inode) +
                                   " names a chunk that has no record");
}

}  // namespace

ChunkId ChunkTable::NewId() {
  PICKET_CHECK(next_ < std::numeric_limits<uint32_t>::max());
  return ChunkId(uint64_t{store_.epoch().number} << 32 | ++next_);
}

Version ChunkTable::NextVersion(const record::Chunk& record) const {
  return Version(std::max(record.minted() + 1, Version(store_.epoch().number, 1).value));
}

Result<std::optional<record::Chunk>> ChunkTable::Get(ChunkId id) const {
  return store_.GetAs<record::Chunk>(IdKey(kChunks, id.value));
}

Result<std::optional<ChunkRow>> ChunkTable::At(InodeId inode, uint64_t index) const {
  auto place = store_.Get(PlaceKey(inode.value, index));
  if (!place) return Fail(place.error());
  if (!*place) return std::optional<ChunkRow>();
  const ChunkId id(LastNumber(**place));
  auto record = Get(id);
  if (!record) return Fail(record.error());
  if (!*record) return Fail(Dangling(inode.value, index));
  return ChunkRow{id, std::move(**record)};
}

Result<std::vector<ChunkRow>> ChunkTable::OfFile(InodeId inode, uint64_t first_index, size_t limit) const {
  const std::string prefix = IdKey(kPlaces, inode.value);
  auto places = store_.Scan(prefix, first_index == 0 ? std::string() : PlaceKey(inode.value, first_index - 1), limit);
  if (!places) return Fail(places.error());
  std::vector<ChunkRow> chunks;
  chunks.reserve(places->size());
  for (const MetaRow& place : *places) {
    const ChunkId id(LastNumber(place.value));
    auto record = Get(id);
    if (!record) return Fail(record.error());
    if (!*record) return Fail(Dangling(inode.value, LastNumber(place.key)));
    chunks.push_back(ChunkRow{id, std::move(**record)});
  }
  return chunks;
}

Result<std::vector<ChunkRow>> ChunkTable::Scan(ChunkId after, size_t limit) const {
  auto rows = store_.Scan(kChunks, Before(kChunks, after.value + 1), limit);
  if (!rows) return Fail(rows.error());
  std::vector<ChunkRow> chunks;
  chunks.reserve(rows->size());
  for (const MetaRow& row : *rows) {
    ChunkRow chunk{ChunkId(LastNumber(row.key)), {}};
    if (!chunk.record.ParseFromString(row.value)) {
      return Fail(Code::kCorrupt, "the record of chunk " + ToString(chunk.id) + " does not parse");
    }
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

Result<std::vector<ChunkRow>> ChunkTable::Garbage(ChunkId after, size_t limit) const {
  auto rows = store_.Scan(kGarbage, Before(kGarbage, after.value + 1), limit);
  if (!rows) return Fail(rows.error());
  std::vector<ChunkRow> chunks;
  chunks.reserve(rows->size());
  for (const MetaRow& row : *rows) {
    const ChunkId id(LastNumber(row.key));
    auto record = Get(id);
    if (!record) return Fail(record.error());
    if (!*record) return Fail(Code::kCorrupt, "the garbage chunk " + ToString(id) + " has no record");
    chunks.push_back(ChunkRow{id, std::move(**record)});
  }
  return chunks;
}

void ChunkTable::Put(Batch* batch, ChunkId id, const record::Chunk& record) const {
  PICKET_CHECK(record.inode() != 0 && record.minted() >= record.current());
  std::string place;
  PutBigEndian64(&place, id.value);
  batch->Put(IdKey(kChunks, id.value), record);
  batch->Put(PlaceKey(record.inode(), record.index()), std::move(place));
}

void ChunkTable::TurnToGarbage(Batch* batch, ChunkId id, record::Chunk record) const {
  if (record.inode() != 0) batch->Remove(PlaceKey(record.inode(), record.index()));
  record.set_inode(0);
  record.clear_members();
  batch->Put(IdKey(kChunks, id.value), record);
  batch->Put(IdKey(kGarbage, id.value), std::string());
}

void ChunkTable::Forget(Batch* batch, ChunkId id) const {
  batch->Remove(IdKey(kChunks, id.value));
  batch->Remove(IdKey(kGarbage, id.value));
}

}  // namespace picket
