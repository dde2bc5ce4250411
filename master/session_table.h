// Write sessions: who may write which file, under which generation (design §3).
//
// 1. A session row is durable and holds generation, mode, holders and limits; the time of the last renewal
//    is in memory only. After an activation every session counts as just renewed (D11, HDFS-2812).
// 2. Only a holder renews, closes, releases or abandons. The generation is the credential; a session's age
//    alone fences nobody.
// 3. Generations are epoch << 32 | n: the synced epoch row reserves them all. Each session has a new one,
//    and each attempt at recovering it; the caller stores it in the inode in the same batch.
// 4. Sessions of one shared mode have several holders under one generation; every other pair excludes
//    each other (D20).
// 5. While the master recovers the file it is the holder itself, durably (HDFS-1149).
// 6. At most one chunk of a session is unsealed or between two committed sets: `open_chunk`.
// 7. What is in memory is what is staged; when the store fails, it is read anew (HDFS-17861).
// Runs on the master's executor.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/env.h"
#include "master/meta_store.h"
#include "proto/common.pb.h"

namespace picket {

// The holder of a session that the master is recovering. No client draws it.
inline constexpr ClientId kRecoveryHolder{1};

class SessionTable {
 public:
  struct Options {
    uint32_t soft_limit_ms = 60'000;     // another client may claim the file after it
    uint32_t hard_limit_ms = 1'200'000;  // the master recovers the file by itself after it
    uint32_t lock_delay_ms = 60'000;
  };
  SessionTable(Env& env, MetaStore& store, Options options);

  // After MetaStore::Open: reads every session and lock-delay.
  Status Load();

  struct Holder {
    ClientId client;
    std::string writer_id;  // of the logical writer, "" = none given
    Mono renewed;
  };
  struct Session {
    InodeId inode;
    Generation generation;
    proto::SessionMode mode = proto::EXCLUSIVE;
    std::vector<Holder> holders;  // one, unless the mode is shared
    Nanos soft_limit{};
    Nanos hard_limit{};
    bool lock = false;
    Nanos lock_delay{};
    ChunkId open_chunk;
    bool recovering = false;      // the one holder is kRecoveryHolder
    ClientId stalled_holder;      // before the recovery
    std::string reason;           // of the recovery
    bool created = false;         // this session made the file: abandoning it takes the file away

    ClientId holder() const { return holders.empty() ? ClientId() : holders[0].client; }
    Mono renewed() const;         // the newest of all holders
    bool Holds(ClientId client) const;
    bool shared() const { return mode != proto::EXCLUSIVE; }
    // Every holder is that logical writer. False for "".
    bool IsOf(std::string_view writer_id) const;
  };
  // The session open on a file, if any.
  std::optional<Session> Find(InodeId inode) const;
  bool IsOpen(InodeId inode) const { return sessions_.contains(inode); }
  size_t open_count() const { return sessions_.size(); }
  // Sessions of inodes above `after`, in their order, at most `limit`.
  std::vector<Session> List(InodeId after, size_t limit) const;

  struct Spec {
    InodeId inode;
    ClientId holder;
    std::string writer_id;
    proto::SessionMode mode = proto::EXCLUSIVE;
    proto::SessionLimits limits;  // 0 = the table's
    bool lock = false;
    uint32_t lock_delay_ms = 0;   // 0 = the table's
    bool created = false;
  };
  // What a request asks for: kInvalidArgument without a holder, or with a limit, writer id or lock-delay that
  // makes no sense.
  Status CheckSpec(const Spec& spec) const;
  // A session of a new generation, into `batch`; the caller stores the generation in the inode in the
  // same batch, and stages it. REQUIRES: none is open; CheckSpec.
  Session Open(Batch* batch, const Spec& spec);
  // One more holder of a shared session, or the same one again. REQUIRES: open, that mode, not recovering.
  Session Join(Batch* batch, const Spec& spec);
  // One holder less; the last one's leaving ends the session. False: nobody of that name was there.
  // Of a lock that was not released: `delayed` begins its lock-delay, also when others still share it.
  bool Leave(Batch* batch, InodeId inode, ClientId holder, bool delayed = false);
  // The master takes the session over, under a new generation; again at each repeat. REQUIRES: open.
  Session BeginRecovery(Batch* batch, InodeId inode, std::string reason);
  // The chunk that is open from now on; none: ChunkId(). REQUIRES: open.
  void SetOpenChunk(Batch* batch, InodeId inode, ChunkId chunk);
  // Ends the session, if any. Of a lock that was not released: `delayed` begins its lock-delay.
  void Drop(Batch* batch, InodeId inode, bool delayed = false);

  // What is left of a lock-delay; 0 = none. Opening a session of another kind does not end it.
  Nanos LockDelayLeft(InodeId inode) const;
  // The file is gone for good: nothing of it is kept.
  void Forget(Batch* batch, InodeId inode);
  // Sessions of that logical writer alone, in the order of inodes.
  std::vector<Session> OfWriter(std::string_view writer_id) const;

  static constexpr uint32_t kMinLimitMs = 1000;
  static constexpr uint32_t kMaxLimitMs = 24 * 3600 * 1000;
  static constexpr uint32_t kMaxLockDelayMs = 3600 * 1000;
  static constexpr size_t kMaxWriterIdBytes = 256;
  static constexpr size_t kMaxHolders = 1024;  // of one shared session

  // The fence of every step that only the file's writer may take (AddChunk, Grant, CommitSeal, Close,
  // Abandon). kNotFound: no such file; kStaleGeneration: a newer session fenced this one;
  // kNotLeaseHolder: somebody else's session, or none (closed). With token, mark, holder, next step.
  Status CheckWriter(InodeId inode, Generation generation, ClientId holder) const;

  // False: this holder does not have that session any more.
  bool Renew(InodeId inode, Generation generation, ClientId holder);

  // Sessions that no holder has renewed for their soft / hard limit, oldest first, at most `limit`.
  enum class Limit { kSoft, kHard };
  std::vector<Session> Expired(Limit which, size_t limit) const;
  bool PastSoftLimit(const Session& session) const { return env_.Now() - session.renewed() >= session.soft_limit; }

  const Options& options() const { return options_; }

 private:
  struct Delayed {
    Nanos delay{};
    Mono begun;
  };
  Generation NewGeneration(InodeId inode);
  proto::SessionLimits LimitsOf(const proto::SessionLimits& asked) const;
  void Put(Batch* batch, const Session& session);
  void Keep(const Session& session);
  void Erase(InodeId inode);
  void Delay(Batch* batch, const Session& session);

  Env& env_;
  MetaStore& store_;
  Options options_;
  uint32_t last_generation_ = 0;  // of this epoch
  std::map<InodeId, Session> sessions_;
  std::map<std::string, std::set<InodeId>, std::less<>> of_writer_;  // sessions of one logical writer alone
  std::map<InodeId, Delayed> delays_;
};

}  // namespace picket
