// The tree of names: inodes and directory entries over MetaStore.
//
// 1. A linked inode has exactly one directory entry, and inode.parent / inode.name say which.
// 2. An inode with parent 0 has no name: a pending overwrite (replaces != 0), or in the purge queue.
// 3. Every change is put into the caller's batch, in one go without a co_await between the first read
//    and MetaStore::Stage; so what was read is what is changed.
// Inode ids are epoch << 32 | n; the root is 1. Runs on the master's executor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "master/meta_store.h"
#include "master/path.h"
#include "proto/client_master.pb.h"
#include "proto/records.pb.h"

namespace picket {

inline constexpr InodeId kRootInode{1};
inline constexpr uint32_t kFileInode = 1;       // record::Inode::type
inline constexpr uint32_t kDirectoryInode = 2;

struct Entry {
  InodeId id;
  record::Inode inode;
  bool is_directory() const { return inode.type() == kDirectoryInode; }
  bool is_file() const { return inode.type() == kFileInode; }
};

// What clients see. `open`: somebody holds a write session, `holder`, if it is known.
proto::FileStatus ToFileStatus(const Entry& entry, bool open, ClientId holder = ClientId());

class Namespace {
 public:
  Namespace(Env& env, MetaStore& store);

  // After MetaStore::Open: makes the root when there is none; durable on return.
  Task<Status> Open();

  // ---- reading; staged changes are seen, so an answer waits for MetaStore::ReadBarrier --------------
  // kNotFound, kNotDirectory (a component on the way is a file).
  Result<Entry> Resolve(const Path& path) const;
  // Nothing when nothing has that name.
  Result<std::optional<Entry>> Find(const Path& path) const;
  Result<std::optional<Entry>> Lookup(InodeId parent, std::string_view name) const;
  // By id; kNotFound.
  Result<Entry> Get(InodeId id) const;
  // Up to `limit` entries of a directory with names > start_after, in byte order.
  Result<std::vector<Entry>> List(InodeId directory, std::string_view start_after, size_t limit) const;
  Result<bool> IsEmpty(InodeId directory) const;
  // The present path, or nothing when an ancestor is not linked (deleted, or pending).
  Result<std::optional<Path>> PathOf(InodeId id) const;
  // Inodes there are: linked, pending and not yet purged.
  uint64_t inode_count() const { return inode_count_; }

  // ---- changes, into `batch` ------------------------------------------------------------------------
  struct Ownership {
    std::string owner;
    std::string group;
    uint32_t mode = 0;
  };
  // Makes a directory. With `parents` the missing ones too, and an existing directory is returned as it is.
  Result<Entry> MakeDirectory(Batch* batch, const Path& path, bool parents, const Ownership& as);
  struct Renamed {
    Entry entry;
    std::optional<Entry> replaced;  // nameless now: the caller puts it in the purge queue, in the same batch
  };
  // `to` is the exact new path; its parent must exist. kInvalidArgument: into itself, onto itself, the root.
  Result<Renamed> Rename(Batch* batch, const Path& from, const Path& to, bool overwrite);

  // Writes a changed inode: its mod_revision becomes the batch's revision.
  void PutInode(Batch* batch, Entry* entry) const;
  // Writes an inode in which nothing changed that users see as its content or attributes (who holds it, say):
  // its mod_revision stays.
  void PutUnchanged(Batch* batch, const Entry& entry) const;
  // A new inode that is not linked yet: the caller links or puts it, and stages the batch.
  Entry NewInode(Batch* batch, uint32_t type, const Ownership& as);
  void RemoveInode(Batch* batch, InodeId id);
  // Links an unlinked inode and writes both rows; does not touch the directory.
  void Link(Batch* batch, InodeId parent, std::string_view name, Entry* entry) const;
  // Removes the directory entry; entry->inode becomes nameless and is not written.
  void Unlink(Batch* batch, Entry* entry) const;
  // The directory's mtime becomes now. `directory` is as this batch leaves it so far.
  void Touch(Batch* batch, Entry* directory) const;

 private:
  Status LoadCount();
  Env& env_;
  MetaStore& store_;
  uint32_t last_inode_ = 0;  // of this epoch
  uint64_t inode_count_ = 0;
};

}  // namespace picket
