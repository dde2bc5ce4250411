#include "tests/unit/master/metadata_half.h"

#include "tests/unit/master/metadata_check.h"

namespace picket::test {

void MetadataTest::TearDown() {
  if (node.alive()) CheckMetadata(half());
}

FakeRecoverer::FakeRecoverer(MetadataHalf& half) : half_(half) {}

Task<Result<Entry>> FakeRecoverer::Recover(Recoverer::Ask ask) {
  const InodeId inode = ask.inode;
  const Mono deadline = ask.deadline;
  std::shared_ptr<Job>& job = jobs_[inode];
  if (job == nullptr) {
    ++begun;
    job = std::make_shared<Job>(Job{std::move(ask), std::nullopt});
    half_.env.Spawn(Run(this, job));
  }
  const std::shared_ptr<Job> mine = job;
  while (!mine->result) {
    if (half_.env.Now() >= deadline) co_return Fail(Code::kWaitingFor, "the recovery is not at its end");
    co_await half_.env.Sleep(10ms);
  }
  co_return *mine->result;
}

Task<> FakeRecoverer::Run(FakeRecoverer* self, std::shared_ptr<Job> job) {
  auto result = co_await self->Attend(job);
  job->result = std::move(result);
  self->jobs_.erase(job->ask.inode);
}

Task<Result<Entry>> FakeRecoverer::Attend(std::shared_ptr<Job> job) {
  const InodeId inode = job->ask.inode;
  auto entry = half_.names.Get(inode);
  if (!entry || !half_.sessions.IsOpen(inode)) co_return entry;
  {
    Batch batch;
    const auto session = half_.sessions.BeginRecovery(&batch, inode, job->ask.reason);
    entry->inode.set_generation(session.generation.value);
    half_.names.PutUnchanged(&batch, *entry);
    if (job->ask.fenced) job->ask.fenced(&batch, *entry);
    auto committed = co_await half_.store.Commit(std::move(batch));
    if (!committed) co_return Fail(committed.error());
  }
  while (hold) co_await half_.env.Sleep(10ms);
  entry = half_.names.Get(inode);
  if (!entry) co_return entry;
  Batch batch;
  record::Inode& file = entry->inode;
  if (const auto open = half_.sessions.Find(inode)->open_chunk; open != ChunkId()) {
    record::Chunk record = **half_.chunks.Get(open);
    record.set_sealed(true);
    half_.chunks.Put(&batch, open, record);
  }
  if (file.has_truncate_to()) {
    file.set_length(file.truncate_to());
    file.clear_truncate_to();
    auto chunks = half_.chunks.OfFile(inode, 0, 1000);
    uint64_t stored = 0;
    uint64_t count = 0;
    for (ChunkRow& chunk : *chunks) {
      const uint64_t start = chunk.record.index() * file.chunk_size();
      if (start >= file.length()) {
        half_.chunks.TurnToGarbage(&batch, chunk.id, std::move(chunk.record));
        continue;
      }
      chunk.record.set_length(std::min(chunk.record.length(), file.length() - start));
      half_.chunks.Put(&batch, chunk.id, chunk.record);
      stored += chunk.record.length();
      count = chunk.record.index() + 1;
    }
    file.set_stored_bytes(stored);
    file.set_chunk_count(count);
  }
  half_.sessions.Drop(&batch, inode, true);
  auto closed = half_.files.Close(&batch, std::move(*entry), 0);
  if (!closed) co_return closed;
  if (job->ask.then) EXPECT_TRUE(job->ask.then(&batch, &*closed));
  auto committed = co_await half_.store.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  co_return closed;
}

}  // namespace picket::test
