// Takes the trees of the purge queue apart, in the background and in bounded steps: a directory hands
// its children over, a file turns its chunks to garbage, and what is empty goes. Each step is one
// durable batch, so a crash anywhere goes on from there.
#pragma once

#include "master/chunk_table.h"
#include "master/namespace.h"
#include "master/purge_queue.h"
#include "master/serving.h"
#include "master/session_table.h"

namespace picket {

class Reclaimer {
 public:
  Reclaimer(Env& env, MetaStore& store, const Serving& serving, Namespace& names, SessionTable& sessions,
            PurgeQueue& purge, ChunkTable& chunks)
      : env_(env), store_(store), serving_(serving), names_(names), sessions_(sessions), purge_(purge), chunks_(chunks) {}

  // Runs as long as the master may delete and its store is well.
  Task<> Run();
  // One step; false when the queue is empty. Durable on return.
  Task<Result<bool>> Step();

  // Children, chunks and inodes of one step.
  static constexpr size_t kMaxPartsPerStep = 512;

 private:
  // Takes up to `limit` parts off; returns how many.
  Result<size_t> TakeFile(Batch* batch, const Entry& file, size_t limit);
  Result<size_t> TakeDirectory(Batch* batch, const Entry& directory, size_t limit);
  void Finish(Batch* batch, InodeId id);

  Env& env_;
  MetaStore& store_;
  const Serving& serving_;
  Namespace& names_;
  SessionTable& sessions_;
  PurgeQueue& purge_;
  ChunkTable& chunks_;
};

}  // namespace picket
