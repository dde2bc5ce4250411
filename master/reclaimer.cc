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
  auto queued = store_.Scan(keys::kPurge, "", kMaxPartsPerStep);
  if (!queued) co_return Fail(queued.error());
  if (queued->empty()) co_return false;
  Batch batch;
  size_t left = kMaxPartsPerStep;
  for (const MetaRow& row : *queued) {
    if (left == 0) break;
    auto entry = names_.Get(InodeId(keys::LastNumber(row.key)));
    if (!entry) {
      if (entry.error().code != Code::kNotFound) co_return Fail(entry.error());
      batch.Remove(row.key);
      continue;
    }
    auto taken = entry->is_directory() ? TakeDirectory(&batch, *entry, left) : TakeFile(&batch, *entry, left);
    if (!taken) co_return Fail(taken.error());
    left -= *taken;
  }
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  co_return true;
}

Result<size_t> Reclaimer::TakeFile(Batch* batch, const Entry& file, size_t limit) {
  auto chunks = chunks_.OfFile(file.id, 0, limit);
  if (!chunks) return Fail(chunks.error());
  sessions_.Drop(batch, file.id);
  const size_t count = chunks->size();
  for (ChunkRow& chunk : *chunks) chunks_.TurnToGarbage(batch, chunk.id, std::move(chunk.record));
  if (count == limit) return limit;
  Finish(batch, file.id);
  return count + 1;
}

Result<size_t> Reclaimer::TakeDirectory(Batch* batch, const Entry& directory, size_t limit) {
  auto children = names_.List(directory.id, "", limit);
  if (!children) return Fail(children.error());
  const size_t count = children->size();
  for (Entry& child : *children) purge_.Add(batch, std::move(child));
  if (count == limit) return limit;
  Finish(batch, directory.id);
  return count + 1;
}

void Reclaimer::Finish(Batch* batch, InodeId id) {
  names_.RemoveInode(batch, id);
  batch->Remove(keys::Purge(id));
}

}  // namespace picket
