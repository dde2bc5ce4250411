// Every replica of the directory, by chunk.
//
//   DIR/replicas/<chunk>.data, .meta    DIR/quarantine/    DIR/aside/
//
// 1. Only Create makes a replica, only Delete takes one away, and a tombstone stays (F21).
// 2. Start-up reads slots only, and of unsealed replicas what is not yet durable. What is not a
//    replica of this cluster is named in the log and moved to DIR/aside, never removed; only empty
//    leftovers of an interrupted creation are.
// 3. At most kMaxLoaded idle replicas keep their files open.
// Runs on the chunkserver's executor.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chunkserver/quarantine.h"
#include "chunkserver/replica_file.h"
#include "chunkserver/server_state.h"
#include "proto/chunkserver_master.pb.h"

namespace picket::cs {

// One chunk's place on this server: its lock, its files, and what this boot knows about its version.
// Everything but `chunk` and `lock()` is read and changed with the lock held.
class Replica {
 public:
  Replica(Env& env, ChunkId id) : chunk(id), env_(env) {}

  const ChunkId chunk;
  // The chunk's critical section, FIFO: packets are judged and applied in the order of arrival.
  FifoLock& lock() {
    if (!lock_) lock_ = std::make_unique<FifoLock>(env_);
    return *lock_;
  }
  // Somebody is in the critical section, or waits for it.
  bool busy() const { return lock_ && lock_->waiting() > 0; }
  Marks marks() const {
    if (file) return file->marks();
    Marks none;
    none.chunk = chunk;
    return none;
  }

  // Null: there is no replica, not even a tombstone. Shared: a sync may outlast the lock.
  std::shared_ptr<ReplicaFile> file;

  // Of the marked version, in this boot; forgotten when the mark is raised.
  uint64_t last_serial = 0;
  // The version under which it forwarded a packet that it could not apply itself: the members after it are
  // ahead, and no other packet takes that one's place.
  Version out_of_step;
  std::optional<Mono> answered_at;  // just before the first answer for this version left (F19)
  // What the writer is known to have been acknowledged (F16). Kept over versions: it never shrinks.
  uint64_t known_acked = 0;
  // The version under which the content was last committed, as far as is known here: from it up to the mark
  // readers are served. None: it is not known what was acknowledged, until somebody acts under the mark.
  std::optional<Version> readable_from;

  // The slot bears new marks, by an order. `readable`: what is known to be acknowledged is all here still.
  void MarkRaised(bool readable) {
    last_serial = 0;
    answered_at.reset();
    known_acked = std::min(known_acked, file->length());
    if (!readable) Forget();
  }
  // Somebody acts under the mark: the master has committed it.
  void Committed() { readable_from = file->slot().version; }
  // A restart, or an order that made it whole: of unsealed bytes nothing is known to be acknowledged.
  void Forget() {
    readable_from.reset();
    if (file->slot().state == ReplicaState::kSealed) readable_from = file->slot().version;
  }

 private:
  friend class ReplicaStore;
  Env& env_;
  std::unique_ptr<FifoLock> lock_;
  std::optional<std::list<Replica*>::iterator> place_;  // among the loaded
};

using ReplicaPtr = std::shared_ptr<Replica>;

// An event of the protocol at this replica, with the marks of its slot.
void TraceReplica(Env* env, ServerId server, ProtocolEvent::Kind kind, const Replica& replica, uint64_t length,
                  uint64_t value = 0);

// A chunk's critical section, entered.
struct LockedReplica {
  ReplicaPtr replica;  // null: nothing is known of the chunk, not even a tombstone
  FifoLock::Ticket ticket;
  Marks marks;  // as they were when the lock was got; those of "none here"
};

class ReplicaStore {
 public:
  struct Options {
    std::string dir;  // the chunkserver's
    std::string cluster;
    Nanos quarantined_for = 24h;
    size_t max_loaded = 400;
  };
  ReplicaStore(Env& env, Options options);

  static std::string ReplicasDir(const std::string& dir) { return dir + "/replicas"; }
  static std::string QuarantineDir(const std::string& dir) { return dir + "/quarantine"; }
  static std::string AsideDir(const std::string& dir) { return dir + "/aside"; }
  // Makes the directories; their names are durable once the caller has synced `dir`.
  static Task<Status> Init(Env* env, std::string dir);

  // Reads the directory. Tells `state` the highest revision seen in a slot (F12).
  Task<Status> Open(ServerState* state);

  // Null when nothing is known of the chunk; a tombstone is a Replica.
  ReplicaPtr Find(ChunkId chunk) const;
  // The same with its lock held. The place in the queue is drawn when the task begins.
  Task<LockedReplica> Locked(ChunkId chunk);
  // For a creation: a place that may be empty. ForgetEmpty must follow.
  ReplicaPtr FindOrAdd(ChunkId chunk);
  void ForgetEmpty(const ReplicaPtr& replica);

  // Opens the replica's files for use under its lock. NOT_FOUND without a replica.
  Task<Status> Use(ReplicaPtr replica);
  // Durable on return. REQUIRES: the lock, and no replica or a tombstone.
  Task<Status> Create(ReplicaPtr replica, Slot slot);
  // Leaves a durable tombstone and moves the bytes to quarantine. REQUIRES: the lock.
  Task<Status> Delete(ReplicaPtr replica, Retirement retirement);
  // Takes a tombstone away, durably: from then on nothing is known of the chunk. REQUIRES: the lock.
  Task<Status> ForgetTombstone(ReplicaPtr replica);

  // Brings the entry back under a new instance, durably: old content and marks, unclean unless it is sealed.
  // A crash on the way leaves it in quarantine, or here. REQUIRES: the lock, no replica or a tombstone that
  // the marks are not below (FenceRestore).
  Task<Status> Restore(ReplicaPtr replica, std::string name, Quarantine::Meta meta, InstanceId instance);
  Quarantine& quarantine() { return quarantine_; }
  // Removes an entry for good, under its chunk's lock. Returns its bytes; kNotFound.
  Task<Result<uint64_t>> Purge(std::string name);

  // The tombstones among the next `limit` chunks after `after`, in the order of ids; `after` moves on, and
  // begins anew at the end.
  std::vector<ReplicaPtr> Tombstones(ChunkId* after, size_t limit) const;
  // In the order of chunk ids, without tombstones, beginning after `after`; at most `limit`.
  std::vector<ReplicaPtr> List(ChunkId after, size_t limit) const;
  // The highest generation that a replica of the file has here, tombstones too; none: 0. Looks at every one.
  Generation NewestGeneration(InodeId inode) const;
  proto::ReplicaReport Report(const Replica& replica, Incarnation own) const;

  struct Totals {
    uint64_t replicas = 0;
    uint64_t bytes = 0;
  };
  Totals totals() const;

 private:
  struct Found {
    ChunkId chunk;
    bool data = false;
    bool meta = false;
    bool redo = false;
  };
  Task<> LoadOne(Found found, ServerState* state);
  Task<> SetAside(std::string name, std::string why, Incarnation boot);
  static Task<bool> Worker(ReplicaStore* self, std::shared_ptr<std::vector<Found>> work, std::shared_ptr<size_t> next,
                           ServerState* state);
  void Touch(Replica* replica);
  ReplicaPtr Add(ChunkId chunk);

  static constexpr size_t kScanWorkers = 16;

  Env& env_;
  const Options options_;
  const std::string replicas_dir_;
  Quarantine quarantine_;
  std::map<ChunkId, ReplicaPtr> replicas_;
  std::list<Replica*> loaded_;  // least recently used first
};

}  // namespace picket::cs
