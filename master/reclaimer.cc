#include "master/reclaimer.h"

#include "common/obs/log.h"
#include "master/keys.h"

namespace picket {
namespace {
constexpr Nanos kPauseAfterError = 10s;
}  // namespace

Task<> Reclaimer::Run() {
  while (!store_.failed() && serving_.Check()) {
    auto stepped = co_await Step();
    if (!stepped) {
      PICKET_LOG(env_, kWarning, "reclaiming deleted files: {}", stepped.error().ToString());
      co_await env_.Sleep(kPauseAfterError);
    } else if (!*stepped) {
      // Nothing ran between the look at the queue and here, so no addition is missed.
      co_await purge_.added().Wait();
    }
  }
}

Task<Result<bool>> Reclaimer::Step() {
  PICKET_CO_TRY(store_.CheckWritable());
  auto queued = store_.Scan(keys::kPurge, "", kMaxPartsPerStep);
  if (!queued) co_return Fail(queued.error());
  if (queued->empty()) co_return false;
  Batch batch;
  std::vector<Part> parts;
  size_t left = kMaxPartsPerStep;
  for (const MetaRow& row : *queued) {
    if (left == 0) break;
    auto entry = names_.Get(InodeId(keys::LastNumber(row.key)));
    if (!entry) {
      if (entry.error().code != Code::kNotFound) co_return Fail(entry.error());
      batch.Remove(row.key);
      continue;
    }
    auto part = Read(std::move(*entry), left);
    if (!part) co_return Fail(part.error());
    left -= part->chunks.size() + part->children.size() + (part->last ? 1 : 0);
    parts.push_back(std::move(*part));
  }
  for (Part& part : parts) Take(&batch, std::move(part));
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  co_return true;
}

Result<Reclaimer::Part> Reclaimer::Read(Entry entry, size_t limit) const {
  Part part;
  if (entry.is_directory()) {
    auto children = names_.List(entry.id, "", limit);
    if (!children) return Fail(children.error());
    part.children = std::move(*children);
  } else {
    auto chunks = chunks_.OfFile(entry.id, 0, limit);
    if (!chunks) return Fail(chunks.error());
    part.chunks = std::move(*chunks);
  }
  part.last = part.chunks.size() + part.children.size() < limit;
  part.entry = std::move(entry);
  return part;
}

void Reclaimer::Take(Batch* batch, Part part) {
  for (Entry& child : part.children) purge_.Add(batch, std::move(child));
  for (ChunkRow& chunk : part.chunks) chunks_.TurnToGarbage(batch, chunk.id, std::move(chunk.record));
  if (!part.last) {
    sessions_.Drop(batch, part.entry.id);
    return;
  }
  sessions_.Forget(batch, part.entry.id);
  names_.RemoveInode(batch, part.entry.id);
  batch->Remove(keys::Purge(part.entry.id));
}

}  // namespace picket
