// The life of a file that is being written: create, close, abandon (design §3).
//
// 1. A new name is visible at once, marked open. Over an existing file the new inode stays nameless
//    (inode.replaces, replaces_name) until Close swaps it in: the old content is readable until then, and
//    goes to the purge queue in the very batch of the swap. Of two such writers the last close wins, unless
//    the conditions it was created under do not hold any more (conditions.h).
// 2. A logical writer that comes back gives up what its old self was making under the same name, in the
//    batch of the new Create: the old self finds its file gone.
// 3. Only the session that made a file may abandon it.
// Runs on the master's executor; every change goes into the caller's batch (namespace.h, 3).
#pragma once

#include <vector>

#include "master/conditions.h"
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
    int64_t mtime_ns = 0;       // 0 = now
    proto::Conditions conditions;
    SessionTable::Spec session;  // checked by the caller; `inode` is filled in
  };
  struct Created {
    Entry entry;
    SessionTable::Session session;
  };
  // kConflict: a condition. kAlreadyExists tells whether the file is open, with holder and generation (mark);
  // kIsDirectory.
  Result<Created> Create(Batch* batch, const CreateSpec& spec);

  // Closes the session and, for a pending overwrite, swaps it in. `entry` is the inode as this batch
  // leaves it (chunk_count and length included); mtime_ns 0 = now. The caller has checked the writer
  // and that every chunk is sealed. kNotFound / kIsDirectory when the name to swap is gone for good;
  // kConflict when a condition does not hold any more.
  Result<Entry> Close(Batch* batch, Entry entry, int64_t mtime_ns);

  // kConflict when others hold the session too: one of them does not end it for all. REQUIRES: open.
  Status CheckAlone(InodeId inode) const;
  // kConflict naming the chunk that is open, or that an attempt to open it again left between two sets.
  Status CheckAllSealed(const Entry& entry) const;

  // Gives the file up. A file that does not exist any more is success; kInvalidArgument: the file was there
  // before the session.
  Status Abandon(Batch* batch, InodeId inode, Generation generation, ClientId holder);

  // A chunk of it is open, or it is being recovered: its content changes without a number of its own.
  bool InChange(InodeId inode) const;
  // As clients see it.
  proto::FileStatus StatusOf(const Entry& entry) const;

 private:
  // What an old self of that writer was making as `name` of `directory`; `present` is what has the name.
  Result<std::vector<Entry>> Leftovers(std::string_view writer_id, InodeId directory, std::string_view name,
                                       const std::optional<Entry>& present) const;

  Env& env_;
  Namespace& names_;
  SessionTable& sessions_;
  PurgeQueue& purge_;
  ChunkTable& chunks_;
};

}  // namespace picket
