// What a recovery comes to, in the master's tables: the batch that closes the file (recovery.h).
#include <fmt/format.h>

#include <algorithm>

#include "common/base/mutation.h"
#include "common/obs/log.h"
#include "master/recovery.h"

namespace picket {
namespace {

constexpr size_t kChunksPage = 1000;

}  // namespace

Task<Result<Entry>> Recoverer::Commit(std::shared_ptr<Job> job, std::optional<RecoveryPlan> plan) {
  const InodeId inode = job->ask.inode;
  // From here to Stage without a wait (F8).
  if (plan) {
    auto record = attempts_.Check(job->round->attempt);
    if (!record && !PICKET_MUTANT(recovery_commit_checks)) co_return Fail(record.error());
  } else {
    PICKET_CO_TRY(sessions_.CheckWriter(inode, job->generation, kRecoveryHolder));
  }
  auto entry = names_.Get(inode);
  if (!entry) co_return Fail(entry.error());
  const auto session = sessions_.Find(inode);
  Batch batch;
  if (plan) PICKET_CO_TRY(SealChunk(&batch, &*entry, *job->round, *plan));
  PICKET_CO_TRY(Truncate(&batch, &*entry));
  // From here on what is in memory changes with the batch: nothing fails.
  sessions_.Drop(&batch, inode, true);
  const bool written = plan || !session || (!session->lock && session->mode != proto::SHARED_LOCK);
  Result<Entry> closed = std::move(*entry);
  if (written) {
    closed = files_.Close(&batch, std::move(*closed), 0);
    if (!closed) co_return Fail(closed.error());
  } else {
    names_.PutUnchanged(&batch, *closed);
  }
  if (job->ask.then) job->then = job->ask.then(&batch, &*closed);
  const std::shared_ptr<RecoveryRound> round = plan ? job->round : nullptr;
  if (round) round->committed = env_.Now();  // the participants see the batch from now on, not the attempt
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) {
    if (round) round->over = true;
    co_return Fail(committed.error());
  }

  if (round) NoteSealed(*round, *plan);
  PICKET_LOG(env_, kInfo, "file {}: recovered and closed at {} bytes", ToString(inode), closed->inode.length());
  co_return closed;
}

Status Recoverer::SealChunk(Batch* batch, Entry* entry, const RecoveryRound& round, const RecoveryPlan& plan) {
  const ChunkId chunk = round.attempt.writer.chunk;
  if (plan.step == RecoveryPlan::Step::kDrop) {
    auto count = chunks_.CountBelow(entry->id, round.record.index());
    if (!count) return Fail(count.error());
    chunks_.TurnToGarbage(batch, chunk, round.record);
    if (round.record.index() + 1 >= entry->inode.chunk_count()) entry->inode.set_chunk_count(*count);
    return {};
  }
  record::Chunk sealed = round.record;
  sealed.set_sealed(true);
  sealed.set_current(round.attempt.to.value);
  sealed.set_length(plan.length);
  sealed.set_digest(plan.digest);
  sealed.clear_members();
  chunks_.Put(batch, chunk, sealed);
  NoteSealedLength(&entry->inode, round.record, plan.length);
  return {};
}

Status Recoverer::Truncate(Batch* batch, Entry* entry) {
  record::Inode& file = entry->inode;
  if (!file.has_truncate_to()) return {};
  const uint64_t first_gone = (file.truncate_to() + file.chunk_size() - 1) / file.chunk_size();
  for (uint64_t from = first_gone;;) {
    auto page = chunks_.OfFile(entry->id, from, kChunksPage);
    if (!page) return Fail(page.error());
    for (ChunkRow& chunk : *page) {
      file.set_stored_bytes(file.stored_bytes() - chunk.record.length());
      from = chunk.record.index() + 1;
      chunks_.TurnToGarbage(batch, chunk.id, std::move(chunk.record));
    }
    if (page->size() < kChunksPage) break;
  }
  auto count = chunks_.CountBelow(entry->id, std::min(first_gone, file.chunk_count()));
  if (!count) return Fail(count.error());
  file.set_chunk_count(*count);
  file.set_length(std::min(file.length(), file.truncate_to()));
  file.clear_truncate_to();
  return {};
}

Task<Result<Entry>> Recoverer::Abandon(std::shared_ptr<Job> job) {
  const InodeId inode = job->ask.inode;
  auto entry = names_.Get(inode);
  if (!entry) co_return Fail(entry.error());
  Batch batch;
  PICKET_CO_TRY(files_.Abandon(&batch, inode, job->generation, kRecoveryHolder));
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  PICKET_LOG(env_, kInfo, "file {}: the overwrite of {} is abandoned", ToString(inode),
             Quoted(entry->inode.replaces_name()));
  co_return entry;
}

void Recoverer::NoteSealed(const RecoveryRound& round, const RecoveryPlan& plan) {
  const ChunkId chunk = round.attempt.writer.chunk;
  leases_.Void(chunk);
  if (plan.step == RecoveryPlan::Step::kDrop) return;
  record::Chunk sealed = round.record;
  sealed.set_current(round.attempt.to.value);
  sealed.set_length(plan.length);
  TraceChunk(env_, ProtocolEvent::Kind::kVersionCommitted, chunk, sealed, round.finished());
  TraceChunk(env_, ProtocolEvent::Kind::kChunkSealed, chunk, sealed, plan.digest);
  // The servers say it themselves with their next heartbeats; readers need not wait for that.
  for (const RecoverySeat& seat : round.seats) {
    const Server* server = servers_.Find(seat.answer.server);
    if (!seat.finished || server == nullptr || server->incarnation != seat.incarnation) continue;
    Replica replica;
    replica.server = server->id;
    replica.session = server->session;
    replica.version = round.attempt.to;
    replica.generation = round.attempt.writer.generation;
    replica.state = proto::SEALED;
    replica.length = plan.length;
    replica.digest = plan.digest;
    replica.instance = seat.instance;
    locations_.Update(chunk, replica);
  }
}

Task<Status> Recoverer::Stop(const RecoveryRound& round, std::string why) {
  const ChunkId chunk = round.attempt.writer.chunk;
  auto record = attempts_.Check(round.attempt);
  if (!record) co_return Fail(record.error());
  record->set_integrity(true);
  Batch batch;
  chunks_.Put(&batch, chunk, *record);
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  PICKET_LOG(env_, kError, "INTEGRITY: chunk {} is stopped: {}", ToString(chunk), why);
  co_return Fail(Error(Code::kIntegrity, fmt::format("chunk {}: {}", ToString(chunk), why))
                     .WithNextStep("keep every replica and inspect them with 'picket chunk show'"));
}

}  // namespace picket
