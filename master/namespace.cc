#include "master/namespace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/obs/log.h"
#include "master/keys.h"

namespace picket {
namespace {

constexpr std::string_view kInodeCounter = "inodes";

Error NoSuch(const Path& path) {
  return Error(Code::kNotFound, fmt::format("{} does not exist", path.Quoted()));
}

}  // namespace

proto::FileStatus ToFileStatus(const Entry& entry, bool open, ClientId holder) {
  const record::Inode& inode = entry.inode;
  proto::FileStatus s;
  s.set_inode(entry.id.value);
  s.set_type(entry.is_directory() ? proto::DIRECTORY : proto::REGULAR);
  s.set_name(inode.replaces() != 0 ? inode.replaces_name() : inode.name());
  s.set_mode(inode.mode());
  s.set_owner(inode.owner());
  s.set_group(inode.group());
  s.set_mtime_ns(inode.mtime_ns());
  s.set_length(inode.length());
  s.set_replication(inode.replication());
  s.set_chunk_size(inode.chunk_size());
  s.set_open(open);
  s.set_generation(inode.generation());
  s.set_chunk_count(inode.chunk_count());
  s.set_create_revision(inode.create_revision());
  s.set_mod_revision(inode.mod_revision());
  s.set_stored_bytes(inode.stored_bytes());
  if (open && holder != ClientId()) s.set_holder(ToString(holder));
  return s;
}

Namespace::Namespace(Env& env, MetaStore& store) : env_(env), store_(store) {
  store_.OnFailure([this] {
    if (auto loaded = LoadCount(); !loaded) PICKET_LOG(env_, kError, "inodes: {}", loaded.error().ToString());
  });
}

Status Namespace::LoadCount() {
  auto count = store_.Get(keys::Counter(kInodeCounter));
  if (!count) return Fail(count.error());
  inode_count_ = *count ? keys::DecodeU64(**count) : 0;
  return {};
}

Task<Status> Namespace::Open() {
  PICKET_CO_TRY(LoadCount());
  auto root = Get(kRootInode);
  if (root) co_return Status();
  if (root.error().code != Code::kNotFound) co_return Fail(root.error());
  if (inode_count_ != 0) co_return Fail(Code::kCorrupt, "the metadata has inodes, but no root directory");
  Entry made;
  made.id = kRootInode;
  made.inode.set_type(kDirectoryInode);
  made.inode.set_mode(0755);
  made.inode.set_mtime_ns(env_.WallNanos());
  made.inode.set_create_revision(store_.next_revision());
  Batch batch;
  PutInode(&batch, &made);
  batch.Put(keys::Counter(kInodeCounter), keys::EncodeU64(++inode_count_));
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  co_return Status();
}

Result<Entry> Namespace::Get(InodeId id) const {
  auto inode = store_.GetAs<record::Inode>(keys::Inode(id));
  if (!inode) return Fail(inode.error());
  if (!*inode) return Fail(Code::kNotFound, fmt::format("inode {} does not exist", ToString(id)));
  return Entry{id, std::move(**inode)};
}

Result<std::optional<Entry>> Namespace::Lookup(InodeId parent, std::string_view name) const {
  auto dentry = store_.GetAs<record::Dentry>(keys::Dentry(parent, name));
  if (!dentry) return Fail(dentry.error());
  if (!*dentry) return std::optional<Entry>();
  auto entry = Get(InodeId((*dentry)->inode()));
  if (!entry) {
    if (entry.error().code != Code::kNotFound) return Fail(entry.error());
    return Fail(Code::kCorrupt, fmt::format("the name {} in directory {} means inode {}, which does not exist",
                                            Quoted(name), ToString(parent), ToHex((*dentry)->inode())));
  }
  return std::optional<Entry>(std::move(*entry));
}

Result<Entry> Namespace::Resolve(const Path& path) const {
  // Only entries are read on the way down; the inode is needed at the end.
  InodeId at = kRootInode;
  uint32_t type = kDirectoryInode;
  for (const std::string& name : path.names()) {
    if (type != kDirectoryInode) {
      return Fail(Code::kNotDirectory, fmt::format("a directory on the way to {} is a file", path.Quoted()));
    }
    auto dentry = store_.GetAs<record::Dentry>(keys::Dentry(at, name));
    if (!dentry) return Fail(dentry.error());
    if (!*dentry) return Fail(NoSuch(path));
    at = InodeId((*dentry)->inode());
    type = (*dentry)->type();
  }
  return Get(at);
}

Result<std::optional<Entry>> Namespace::Find(const Path& path) const {
  auto entry = Resolve(path);
  if (entry) return std::optional<Entry>(std::move(*entry));
  if (entry.error().code == Code::kNotFound || entry.error().code == Code::kNotDirectory) return std::optional<Entry>();
  return Fail(entry.error());
}

Result<std::vector<Entry>> Namespace::List(InodeId directory, std::string_view start_after, size_t limit) const {
  const std::string prefix = keys::Dentry(directory, "");
  auto rows = store_.Scan(prefix, start_after.empty() ? std::string() : keys::Dentry(directory, start_after), limit);
  if (!rows) return Fail(rows.error());
  std::vector<Entry> entries;
  entries.reserve(rows->size());
  for (const MetaRow& row : *rows) {
    record::Dentry dentry;
    if (!dentry.ParseFromString(row.value)) {
      return Fail(Code::kCorrupt, fmt::format("an entry of directory {} does not parse", ToString(directory)));
    }
    auto entry = Get(InodeId(dentry.inode()));
    if (!entry) return Fail(entry.error());
    entries.push_back(std::move(*entry));
  }
  return entries;
}

Result<bool> Namespace::IsEmpty(InodeId directory) const {
  auto rows = store_.Scan(keys::Dentry(directory, ""), "", 1);
  if (!rows) return Fail(rows.error());
  return rows->empty();
}

Result<std::optional<Path>> Namespace::PathOf(InodeId id) const {
  std::vector<std::string> names;
  while (id != kRootInode) {
    auto entry = Get(id);
    if (!entry) {
      if (entry.error().code == Code::kNotFound) return std::optional<Path>();
      return Fail(entry.error());
    }
    if (entry->inode.parent() == 0) return std::optional<Path>();
    names.push_back(entry->inode.name());
    id = InodeId(entry->inode.parent());
  }
  std::ranges::reverse(names);
  return std::optional<Path>(Path::Join(std::move(names)));
}

Result<Entry> Namespace::MakeDirectory(Batch* batch, const Path& path, bool parents, const Ownership& as) {
  auto root = Get(kRootInode);
  if (!root) return Fail(root.error());
  Entry at = std::move(*root);
  size_t depth = 0;
  // Down to the deepest directory that exists.
  for (; depth < path.names().size(); ++depth) {
    auto next = Lookup(at.id, path.names()[depth]);
    if (!next) return Fail(next.error());
    if (!*next) break;
    if (!(*next)->is_directory()) {
      if (depth + 1 == path.names().size()) {
        return Fail(Code::kAlreadyExists, fmt::format("{} exists and is a file", path.Quoted()));
      }
      return Fail(Code::kNotDirectory, fmt::format("a directory on the way to {} is a file", path.Quoted()));
    }
    at = std::move(**next);
  }
  const size_t missing = path.names().size() - depth;
  if (missing == 0) {
    if (!parents) return Fail(Code::kAlreadyExists, fmt::format("the directory {} exists", path.Quoted()));
    return at;
  }
  if (missing > 1 && !parents) {
    return Fail(Error(NoSuch(path.Parent())).WithNextStep("make the missing directories too (mkdir -p)"));
  }
  Touch(batch, &at);
  for (; depth < path.names().size(); ++depth) {
    Ownership ownership = as;
    // What is made on the way must let its owner go on.
    if (depth + 1 < path.names().size()) ownership.mode |= 0300;
    Entry made = NewInode(batch, kDirectoryInode, ownership);
    Link(batch, at.id, path.names()[depth], &made);
    at = std::move(made);
  }
  return at;
}

Result<Namespace::Renamed> Namespace::Rename(Batch* batch, const Path& from, const Path& to, bool overwrite) {
  if (from.is_root() || to.is_root()) {
    return Fail(Code::kInvalidArgument, "the root directory is neither renamed nor replaced");
  }
  auto source = Resolve(from);
  if (!source) return Fail(source.error());
  if (to == from) return Fail(Code::kInvalidArgument, fmt::format("{} cannot be renamed to itself", from.Quoted()));
  if (to.IsWithin(from)) {
    if (source->is_file()) return Fail(Code::kNotDirectory, fmt::format("{} is a file", from.Quoted()));
    return Fail(Code::kInvalidArgument, fmt::format("the directory {} cannot be moved into its own subdirectory {}",
                                                    from.Quoted(), to.Quoted()));
  }
  auto directory = Resolve(to.Parent());
  if (!directory) return Fail(directory.error());
  if (!directory->is_directory()) {
    return Fail(Code::kNotDirectory, fmt::format("{} is a file", to.Parent().Quoted()));
  }
  auto present = Lookup(directory->id, to.name());
  if (!present) return Fail(present.error());
  Renamed renamed;
  if (*present) {
    if ((*present)->is_directory()) {
      return Fail(Code::kAlreadyExists, fmt::format("{} exists and is a directory", to.Quoted()));
    }
    if (!overwrite) return Fail(Code::kAlreadyExists, fmt::format("the file {} exists", to.Quoted()));
    if (source->is_directory()) {
      return Fail(Code::kNotDirectory, fmt::format("the file {} cannot be replaced by a directory", to.Quoted()));
    }
    renamed.replaced = std::move(*present);
  }
  auto left = Get(InodeId(source->inode.parent()));
  if (!left) return Fail(left.error());
  Touch(batch, &*left);
  Touch(batch, &*directory);
  // Before the new entry: the last row of a key counts.
  if (renamed.replaced) Unlink(batch, &*renamed.replaced);
  Unlink(batch, &*source);
  Link(batch, directory->id, to.name(), &*source);
  renamed.entry = std::move(*source);
  return renamed;
}

void Namespace::PutInode(Batch* batch, Entry* entry) const {
  entry->inode.set_mod_revision(store_.next_revision());
  batch->Put(keys::Inode(entry->id), entry->inode);
}

void Namespace::PutUnchanged(Batch* batch, const Entry& entry) const { batch->Put(keys::Inode(entry.id), entry.inode); }

Entry Namespace::NewInode(Batch* batch, uint32_t type, const Ownership& as) {
  PICKET_CHECK(last_inode_ < std::numeric_limits<uint32_t>::max());  // the next start has a new epoch
  Entry entry;
  entry.id = InodeId(uint64_t{store_.epoch().number} << 32 | ++last_inode_);
  entry.inode.set_type(type);
  entry.inode.set_mode(as.mode);
  entry.inode.set_owner(as.owner);
  entry.inode.set_group(as.group);
  entry.inode.set_mtime_ns(env_.WallNanos());
  entry.inode.set_create_revision(store_.next_revision());
  entry.inode.set_mod_revision(store_.next_revision());
  batch->Put(keys::Counter(kInodeCounter), keys::EncodeU64(++inode_count_));
  return entry;
}

void Namespace::RemoveInode(Batch* batch, InodeId id) {
  PICKET_CHECK(inode_count_ > 0);
  batch->Remove(keys::Inode(id));
  batch->Put(keys::Counter(kInodeCounter), keys::EncodeU64(--inode_count_));
}

void Namespace::Link(Batch* batch, InodeId parent, std::string_view name, Entry* entry) const {
  PICKET_CHECK(entry->inode.parent() == 0);
  entry->inode.set_parent(parent.value);
  entry->inode.set_name(std::string(name));
  record::Dentry dentry;
  dentry.set_inode(entry->id.value);
  dentry.set_type(entry->inode.type());
  batch->Put(keys::Dentry(parent, name), dentry);
  PutInode(batch, entry);
}

void Namespace::Unlink(Batch* batch, Entry* entry) const {
  PICKET_CHECK(entry->inode.parent() != 0);
  batch->Remove(keys::Dentry(InodeId(entry->inode.parent()), entry->inode.name()));
  entry->inode.clear_parent();
  entry->inode.clear_name();
}

void Namespace::Touch(Batch* batch, Entry* directory) const {
  directory->inode.set_mtime_ns(env_.WallNanos());
  PutInode(batch, directory);
}

}  // namespace picket
