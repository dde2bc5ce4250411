// Where deleted names go for three days: /.Trash/<user>/<name>.<inode>. Moving one back is a rename.
//
// A trashed root bears trashed_at and has a row in the trash index, ordered by that time (wall clock),
// by which the expiry finds it. Only Move puts something in here; everything else under /.Trash may
// be looked at, moved out, or deleted for good.
#pragma once

#include <string>
#include <string_view>

#include "master/namespace.h"
#include "master/purge_queue.h"
#include "master/serving.h"

namespace picket {

class Trash {
 public:
  struct Options {
    uint64_t retention_ms = uint64_t{3} * 24 * 3600 * 1000;
  };
  Trash(Env& env, MetaStore& store, const Serving& serving, Namespace& names, PurgeQueue& purge, Options options)
      : env_(env), store_(store), serving_(serving), names_(names), purge_(purge), options_(options) {}

  // True for /.Trash and everything below it.
  static bool Contains(const Path& path);

  // Moves a linked entry into the trash of `user` (a valid name), and returns its path there.
  Result<Path> Move(Batch* batch, Entry entry, std::string_view user);
  // For an entry that a rename took out of the trash: it no longer expires. Writes the inode.
  void Restored(Batch* batch, Entry* entry) const;

  // Runs as long as the master may delete and its store is well.
  Task<> ExpireLoop();
  // Hands what is over its time to the purge queue, at most kMaxExpiredAtOnce; how many. Durable on return.
  Task<Result<size_t>> ExpireSome();

  static constexpr size_t kMaxExpiredAtOnce = 64;

 private:
  Result<Entry> DirectoryIn(Batch* batch, Entry* parent, std::string_view name, const Namespace::Ownership& as);
  Env& env_;
  MetaStore& store_;
  const Serving& serving_;
  Namespace& names_;
  PurgeQueue& purge_;
  Options options_;
};

}  // namespace picket
