// One attempt per chunk (F8): the only valid one is the one whose `to` equals the record's `minted`.
//
// After every wait, before every message that changes a replica, and inside the commit's batch, whoever
// runs an attempt calls Check; when it fails the attempt ends without another effect. Runs on the
// master's executor.
#pragma once

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/env.h"
#include "master/chunk_table.h"
#include "master/meta_store.h"
#include "master/orders.h"
#include "master/serving.h"
#include "master/session_table.h"

namespace picket {

// For whom: the writer of a chunk, or the master that recovers it (kRecoveryHolder).
struct ChunkWriter {
  ChunkId chunk;
  InodeId inode;
  Generation generation;
  ClientId holder;
};

struct Attempt {
  AttemptId id;
  ChunkWriter writer;
  Version to;
};

class Attempts {
 public:
  Attempts(Env& env, MetaStore& store, ChunkTable& chunks, SessionTable& sessions, Orders& orders, Serving& serving)
      : env_(env), store_(store), chunks_(chunks), sessions_(sessions), orders_(orders), serving_(serving) {}

  // The chunk's record, if this writer may have it granted: its session is the file's, the chunk is the
  // file's, not stopped, and open or on its way there (sealed, and the session's open_chunk). Else the refusal.
  Result<record::Chunk> Admit(const ChunkWriter& writer) const;
  // The same for a sealed chunk that the session may open again: no other chunk of it is open.
  Result<record::Chunk> AdmitReopen(const ChunkWriter& writer) const;
  // Mints a number for a new attempt, which ends every earlier one. Durable on return. `reopen`: of a sealed
  // chunk too, which becomes the session's open_chunk and bears its generation from the same batch on.
  Task<Result<Attempt>> Begin(ChunkWriter writer, bool reopen = false);
  // Of a recovery, whose number is minted in the caller's batch, with the new generation: the attempt to go on
  // with when that batch is durable. `record` as the batch leaves it. REQUIRES: the session is in recovery.
  Attempt Fence(Batch* batch, const ChunkWriter& writer, record::Chunk* record);
  // The same attempt goes on under a number of its own (F2). Durable on return.
  Task<Result<Attempt>> Next(Attempt attempt);
  // The record, if the attempt is still valid; kSuperseded, or the refusal of Admit.
  Result<record::Chunk> Check(const Attempt& attempt) const;

 private:
  Result<record::Chunk> AdmitAny(const ChunkWriter& writer) const;
  Task<Result<Attempt>> Mint(Attempt attempt, record::Chunk record, bool reopen);

  Env& env_;
  MetaStore& store_;
  ChunkTable& chunks_;
  SessionTable& sessions_;
  Orders& orders_;
  Serving& serving_;
};

// Tells the watchers of the protocol (Env::Trace).
void TraceChunk(Env& env, ProtocolEvent::Kind kind, ChunkId chunk, const record::Chunk& record, uint64_t value = 0,
                ServerId server = {});

}  // namespace picket
