// The life of a file that is being written: create, close, abandon (design §3).
//
// A new name is visible at once, marked open. Over an existing file the new inode stays nameless
// (inode.replaces, replaces_name) until Close swaps it in: the old content is readable until then, and
// goes to the purge queue in the very batch of the swap. Of two such writers the last close wins.
// Runs on the master's executor; every change goes into the caller's batch (namespace.h, 3).
#pragma once

#include "master/namespace.h"
#include "master/purge_queue.h"
#include "master/session_table.h"

namespace picket {

class ChunkTable;

class OpenFiles {
 public:
  OpenFiles(Env& env, Namespace& names, SessionTable& sessions, PurgeQueue& purge, ChunkTable& chunks)
      : env_(env), names_(names), sessions_(sessions), purge_(purge), chunks_(chunks) {}

  struct CreateSpec {
    Path path;
    bool overwrite = false;
    bool parents = false;
    Namespace::Ownership as;
    uint32_t replication = 0;   // checked by the caller
    uint64_t chunk_size = 0;
    ClientId holder;
    int64_t mtime_ns = 0;       // 0 = now
  };
  struct Created {
    Entry entry;
    SessionTable::Session session;
  };
  // kAlreadyExists tells whether the file is open, with holder and generation (mark); kIsDirectory.
  Result<Created> Create(Batch* batch, const CreateSpec& spec);

  // Closes the session and, for a pending overwrite, swaps it in. `entry` is the inode as this batch
  // leaves it (chunk_count and length included); mtime_ns 0 = now. The caller has checked the writer
  // and that every chunk is sealed. kNotFound / kIsDirectory when the name to swap is gone for good.
  Result<Entry> Close(Batch* batch, Entry entry, int64_t mtime_ns);

  // kConflict naming the first chunk that is not sealed.
  Status CheckAllSealed(const Entry& entry) const;

  // Gives the file up. A file that does not exist any more is success.
  Status Abandon(Batch* batch, InodeId inode, Generation generation, ClientId holder);

 private:
  Env& env_;
  Namespace& names_;
  SessionTable& sessions_;
  PurgeQueue& purge_;
  ChunkTable& chunks_;
};

}  // namespace picket
