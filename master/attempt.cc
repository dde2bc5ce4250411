#include "master/attempt.h"

#include "common/base/mutation.h"

namespace picket {

Result<record::Chunk> Attempts::AdmitAny(const ChunkWriter& writer) const {
  PICKET_TRY(serving_.Check());
  PICKET_TRY(store_.CheckWritable());
  PICKET_TRY(sessions_.CheckWriter(writer.inode, writer.generation, writer.holder));
  auto found = chunks_.Get(writer.chunk);
  if (!found) return Fail(found.error());
  const std::string name = "chunk " + ToString(writer.chunk);
  if (!*found || (*found)->inode() != writer.inode.value) {
    return Fail(Code::kNotFound, name + " does not belong to inode " + ToString(writer.inode));
  }
  if ((*found)->integrity()) {
    return Fail(Error(Code::kIntegrity, name + " is stopped: its replicas contradict what was acknowledged")
                    .WithNextStep("keep every replica and inspect them with 'picket chunk show'"));
  }
  return std::move(**found);
}

Result<record::Chunk> Attempts::Admit(const ChunkWriter& writer) const {
  auto record = AdmitAny(writer);
  if (!record) return record;
  const std::string name = "chunk " + ToString(writer.chunk);
  if (record->sealed() && sessions_.Find(writer.inode)->open_chunk != writer.chunk) {
    return Fail(Error(Code::kConflict, name + " is sealed already")
                    .WithNextStep("ask for a grant that reopens it, or write a new chunk"));
  }
  if (record->generation() != writer.generation.value) {
    return Fail(Error(Code::kStaleGeneration, name + " belongs to another write session")
                    .WithTokens(writer.generation.value, record->generation()));
  }
  return record;
}

Result<record::Chunk> Attempts::AdmitReopen(const ChunkWriter& writer) const {
  auto record = AdmitAny(writer);
  if (!record) return record;
  if (!record->sealed()) return Admit(writer);
  const ChunkId open = sessions_.Find(writer.inode)->open_chunk;
  if (open && open != writer.chunk) {
    return Fail(Error(Code::kConflict, "chunk " + ToString(writer.chunk) + " cannot be opened while chunk " +
                                           ToString(open) + " of the same file is")
                    .WithNextStep("seal that one first"));
  }
  return record;
}

Result<record::Chunk> Attempts::Check(const Attempt& attempt) const {
  auto record = Admit(attempt.writer);
  if (!record) return record;
  if (record->minted() != attempt.to.value && !PICKET_MUTANT(commit_checks_attempt)) {
    return Fail(Error(Code::kSuperseded, "chunk " + ToString(attempt.writer.chunk) + ": a newer attempt took over")
                    .WithTokens(attempt.to.value, record->minted())
                    .WithNextStep("ask again"));
  }
  return record;
}

Task<Result<Attempt>> Attempts::Begin(ChunkWriter writer, bool reopen) {
  auto record = reopen ? AdmitReopen(writer) : Admit(writer);
  if (!record) co_return Fail(record.error());
  Attempt attempt;
  attempt.id = orders_.NewAttempt();
  attempt.writer = writer;
  auto minted = co_await Mint(attempt, std::move(*record), reopen);
  co_return minted;
}

Attempt Attempts::Fence(Batch* batch, const ChunkWriter& writer, record::Chunk* record) {
  Attempt attempt;
  attempt.id = orders_.NewAttempt();
  attempt.writer = writer;
  attempt.to = chunks_.NextVersion(*record);
  record->set_minted(attempt.to.value);
  record->set_generation(writer.generation.value);
  chunks_.Put(batch, writer.chunk, *record);
  sessions_.SetOpenChunk(batch, writer.inode, writer.chunk);
  return attempt;
}

Task<Result<Attempt>> Attempts::Next(Attempt attempt) {
  auto record = Check(attempt);
  if (!record) co_return Fail(record.error());
  auto minted = co_await Mint(attempt, std::move(*record), false);
  co_return minted;
}

Task<Result<Attempt>> Attempts::Mint(Attempt attempt, record::Chunk record, bool reopen) {
  attempt.to = chunks_.NextVersion(record);
  record.set_minted(attempt.to.value);
  Batch batch;
  if (reopen && record.sealed()) {
    record.set_generation(attempt.writer.generation.value);
    sessions_.SetOpenChunk(&batch, attempt.writer.inode, attempt.writer.chunk);
  }
  chunks_.Put(&batch, attempt.writer.chunk, record);
  auto staged = store_.Stage(std::move(batch));
  if (!staged) co_return Fail(staged.error());
  if (!PICKET_MUTANT(mint_before_use)) PICKET_CO_TRY(co_await store_.Durable(*staged));
  record.set_current(attempt.to.value);
  TraceChunk(env_, ProtocolEvent::Kind::kVersionMinted, attempt.writer.chunk, record);
  auto still = Check(attempt);
  if (!still) co_return Fail(still.error());
  co_return attempt;
}

void TraceChunk(Env& env, ProtocolEvent::Kind kind, ChunkId chunk, const record::Chunk& record, uint64_t value,
                ServerId server) {
  ProtocolEvent event;
  event.kind = kind;
  event.server = server;
  event.chunk = chunk;
  event.version = Version(record.current());
  event.generation = Generation(record.generation());
  event.length = record.length();
  event.value = value;
  env.Trace(event);
}

}  // namespace picket
