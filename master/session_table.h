// Write sessions: who may write which file, under which generation (design §3).
//
// 1. A session row is durable and holds generation, holder and limits; the time of the last renewal is
//    in memory only. After an activation every session counts as just renewed (D11, HDFS-2812).
// 2. Only the holder renews, closes or abandons. The generation is the credential; a session's age
//    alone fences nobody.
// 3. Generations are epoch << 32 | n: the synced epoch row reserves them all.
// 4. What is in memory is what is staged; when the store fails, it is read anew (HDFS-17861).
// Runs on the master's executor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "master/meta_store.h"

namespace picket {

class SessionTable {
 public:
  struct Options {
    uint32_t soft_limit_ms = 60'000;     // another client may claim the file after it
    uint32_t hard_limit_ms = 1'200'000;  // the master recovers the file by itself after it
  };
  SessionTable(Env& env, MetaStore& store, Options options);

  // After MetaStore::Open: reads every session.
  Status Load();

  struct Session {
    InodeId inode;
    Generation generation;
    ClientId holder;
    Nanos soft_limit{};
    Nanos hard_limit{};
    Mono renewed;
  };
  // The session open on a file, if any.
  std::optional<Session> Find(InodeId inode) const;
  bool IsOpen(InodeId inode) const { return sessions_.contains(inode); }
  size_t open_count() const { return sessions_.size(); }

  // A session of a new generation, into `batch`; the caller stores the generation in the inode in the
  // same batch, and stages it. REQUIRES: none is open.
  Session Open(Batch* batch, InodeId inode, ClientId holder);
  // Ends the session, if any.
  void Drop(Batch* batch, InodeId inode);

  // The fence of every step that only the file's writer may take (AddChunk, Grant, CommitSeal, Close,
  // Abandon). kNotFound: no such file; kStaleGeneration: a newer session fenced this one;
  // kNotLeaseHolder: somebody else's session, or none (closed). With token, mark, holder, next step.
  Status CheckWriter(InodeId inode, Generation generation, ClientId holder) const;

  // False: this holder does not have that session any more.
  bool Renew(InodeId inode, Generation generation, ClientId holder);

  // Sessions not renewed for their soft / hard limit, oldest first, at most `limit`.
  enum class Limit { kSoft, kHard };
  std::vector<Session> Expired(Limit which, size_t limit) const;

  const Options& options() const { return options_; }

 private:
  Env& env_;
  MetaStore& store_;
  Options options_;
  uint32_t last_generation_ = 0;  // of this epoch
  std::map<InodeId, Session> sessions_;
};

}  // namespace picket
