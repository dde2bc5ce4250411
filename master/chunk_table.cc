#include "master/chunk_table.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "master/history.h"
#include "master/keys.h"

namespace picket {
namespace {

Error Dangling(uint64_t inode, uint64_t index) {
  return Error(Code::kCorrupt, "the place " + std::to_string(index) + " of inode " + ToHex(inode) +
                                   " names a chunk that has no record");
}

}  // namespace

ChunkId ChunkTable::NewId() {
  PICKET_CHECK(next_ < std::numeric_limits<uint32_t>::max());
  return ChunkId(uint64_t{store_.epoch().number} << 32 | ++next_);
}

bool ChunkTable::MayBeOurs(ChunkId id) const {
  const auto epoch = static_cast<uint32_t>(id.value >> 32);
  if (epoch == store_.epoch().number) return static_cast<uint32_t>(id.value) <= next_;
  return IsOfHistory(store_.activations(), epoch);
}

Version ChunkTable::NextVersion(const record::Chunk& record) const {
  return Version(std::max(record.minted() + 1, Version(store_.epoch().number, 1).value));
}

Result<std::optional<record::Chunk>> ChunkTable::Get(ChunkId id) const {
  return store_.GetAs<record::Chunk>(keys::Chunk(id));
}

Result<std::optional<ChunkRow>> ChunkTable::At(InodeId inode, uint64_t index) const {
  auto place = store_.Get(keys::FileChunk(inode, index));
  if (!place) return Fail(place.error());
  if (!*place) return std::optional<ChunkRow>();
  const ChunkId id(keys::DecodeU64(**place));
  auto record = Get(id);
  if (!record) return Fail(record.error());
  if (!*record) return Fail(Dangling(inode.value, index));
  return ChunkRow{id, std::move(**record)};
}

// A search by halves, not a walk: below a chunk far behind the end there may be millions of holes.
Result<uint64_t> ChunkTable::CountBelow(InodeId inode, uint64_t end) const {
  uint64_t count = 0;
  while (count < end) {
    const uint64_t middle = count + (end - count - 1) / 2;
    auto next = OfFile(inode, middle, 1);
    if (!next) return Fail(next.error());
    if (next->empty() || (*next)[0].record.index() >= end) {
      end = middle;
    } else {
      count = (*next)[0].record.index() + 1;
    }
  }
  return count;
}

Result<std::vector<ChunkRow>> ChunkTable::OfFile(InodeId inode, uint64_t first_index, size_t limit) const {
  const std::string before = first_index == 0 ? std::string() : keys::FileChunk(inode, first_index - 1);
  auto places = store_.Scan(keys::FileChunks(inode), before, limit);
  if (!places) return Fail(places.error());
  std::vector<ChunkRow> chunks;
  chunks.reserve(places->size());
  for (const MetaRow& place : *places) {
    const ChunkId id(keys::DecodeU64(place.value));
    auto record = Get(id);
    if (!record) return Fail(record.error());
    if (!*record) return Fail(Dangling(inode.value, keys::LastNumber(place.key)));
    chunks.push_back(ChunkRow{id, std::move(**record)});
  }
  return chunks;
}

Result<std::vector<ChunkRow>> ChunkTable::Scan(ChunkId after, size_t limit) const {
  auto rows = store_.Scan(keys::kChunks, keys::Chunk(after), limit);
  if (!rows) return Fail(rows.error());
  std::vector<ChunkRow> chunks;
  chunks.reserve(rows->size());
  for (const MetaRow& row : *rows) {
    ChunkRow chunk{ChunkId(keys::LastNumber(row.key)), {}};
    if (!chunk.record.ParseFromString(row.value)) {
      return Fail(Code::kCorrupt, "the record of chunk " + ToString(chunk.id) + " does not parse");
    }
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

Result<std::vector<ChunkRow>> ChunkTable::Garbage(ChunkId after, size_t limit) const {
  auto rows = store_.Scan(keys::kGarbage, keys::Garbage(after), limit);
  if (!rows) return Fail(rows.error());
  std::vector<ChunkRow> chunks;
  chunks.reserve(rows->size());
  for (const MetaRow& row : *rows) {
    const ChunkId id(keys::LastNumber(row.key));
    auto record = Get(id);
    if (!record) return Fail(record.error());
    if (!*record) return Fail(Code::kCorrupt, "the garbage chunk " + ToString(id) + " has no record");
    chunks.push_back(ChunkRow{id, std::move(**record)});
  }
  return chunks;
}

void ChunkTable::Put(Batch* batch, ChunkId id, const record::Chunk& record) const {
  PICKET_CHECK(record.inode() != 0 && record.minted() >= record.current());
  batch->Put(keys::Chunk(id), record);
  batch->Put(keys::FileChunk(InodeId(record.inode()), record.index()), keys::EncodeU64(id.value));
}

void ChunkTable::Move(Batch* batch, ChunkId id, record::Chunk record, InodeId file, uint64_t base) const {
  batch->Remove(keys::FileChunk(InodeId(record.inode()), record.index()));
  record.set_inode(file.value);
  record.set_index(base + record.index());
  Put(batch, id, record);
}

void ChunkTable::TurnToGarbage(Batch* batch, ChunkId id, record::Chunk record) const {
  if (record.inode() != 0) batch->Remove(keys::FileChunk(InodeId(record.inode()), record.index()));
  record.set_inode(0);
  record.clear_members();
  batch->Put(keys::Chunk(id), record);
  batch->Put(keys::Garbage(id), std::string());
}

void ChunkTable::Forget(Batch* batch, ChunkId id) const {
  batch->Remove(keys::Chunk(id));
  batch->Remove(keys::Garbage(id));
}

}  // namespace picket
