// Inodes that have lost their name and wait to be taken apart by the Reclaimer. The queue is a table:
// a crash loses nothing, and adding a tree of any size is one row.
#pragma once

#include "common/env/sync.h"
#include "master/meta_store.h"
#include "master/namespace.h"
#include "master/session_table.h"

namespace picket {

class PurgeQueue {
 public:
  PurgeQueue(Env& env, Namespace& names, SessionTable& sessions) : names_(names), sessions_(sessions), added_(env) {}

  // Unlinks the entry if it is linked, ends its write session, drops its trash index row, and queues
  // it; all in `batch`. Does not touch the directory it was in.
  void Add(Batch* batch, Entry entry);
  // Signalled by Add, possibly before the batch is staged.
  Signal& added() { return added_; }

 private:
  Namespace& names_;
  SessionTable& sessions_;
  Signal added_;
};

}  // namespace picket
