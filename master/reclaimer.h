// Takes the trees of the purge queue apart, in the background and in bounded steps: a directory hands
// its children over, a file turns its chunks to garbage, and what is empty goes. Each step is one
// durable batch, so a crash anywhere goes on from there.
#pragma once

#include <vector>

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
  // What one step takes of one inode. Read first, all of it; changed after, when nothing can fail.
  struct Part {
    Entry entry;
    std::vector<ChunkRow> chunks;
    std::vector<Entry> children;
    bool last = false;  // nothing is left of it
  };
  Result<Part> Read(Entry entry, size_t limit) const;
  void Take(Batch* batch, Part part);

  Env& env_;
  MetaStore& store_;
  const Serving& serving_;
  Namespace& names_;
  SessionTable& sessions_;
  PurgeQueue& purge_;
  ChunkTable& chunks_;
};

}  // namespace picket
