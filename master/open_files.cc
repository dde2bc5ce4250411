#include "master/open_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/mutation.h"
#include "master/chunk_table.h"

namespace picket {
namespace {

Error Exists(const Path& path, const std::optional<SessionTable::Session>& session) {
  if (!session) {
    return Error(Code::kAlreadyExists, fmt::format("the file {} exists", path.Quoted()))
        .WithNextStep("choose another name, or overwrite it (put -f)");
  }
  return Error(Code::kAlreadyExists,
               fmt::format("the file {} exists and is being written by client {} in session {}", path.Quoted(),
                           ToString(session->holder()), session->generation.ToString()))
      .WithTokens(0, session->generation.value)
      .WithHolder(ToString(session->holder()))
      .WithNextStep("choose another name, wait until it is closed, or overwrite it (put -f)");
}

}  // namespace

bool OpenFiles::InChange(InodeId inode) const {
  const auto session = sessions_.Find(inode);
  return session && (session->open_chunk != ChunkId() || session->recovering);
}

proto::FileStatus OpenFiles::StatusOf(const Entry& entry) const {
  const auto session = sessions_.Find(entry.id);
  return ToFileStatus(entry, session.has_value(), session ? session->holder() : ClientId());
}

Result<std::vector<Entry>> OpenFiles::Leftovers(std::string_view writer_id, InodeId directory, std::string_view name,
                                                const std::optional<Entry>& present) const {
  std::vector<Entry> leftovers;
  for (const SessionTable::Session& session : sessions_.OfWriter(writer_id)) {
    if (!session.created) continue;
    if (present && present->id == session.inode) {
      leftovers.push_back(*present);
      continue;
    }
    auto entry = names_.Get(session.inode);
    if (!entry) return Fail(entry.error());
    if (entry->inode.replaces() != directory.value || entry->inode.replaces_name() != name) continue;
    leftovers.push_back(std::move(*entry));
  }
  return leftovers;
}

Result<OpenFiles::Created> OpenFiles::Create(Batch* batch, const CreateSpec& spec) {
  if (spec.path.is_root()) return Fail(Code::kIsDirectory, "/ is a directory");
  const Path above = spec.path.Parent();
  auto parent = names_.Find(above);
  if (!parent) return Fail(parent.error());
  std::optional<Entry> present;
  std::vector<Entry> leftovers;
  if (*parent && (*parent)->is_directory()) {
    auto found = names_.Lookup((*parent)->id, spec.path.name());
    if (!found) return Fail(found.error());
    present = std::move(*found);
    auto left = Leftovers(spec.session.writer_id, (*parent)->id, spec.path.name(), present);
    if (!left) return Fail(left.error());
    leftovers = std::move(*left);
  }
  // What its old self was making is not there for this writer.
  if (present && std::ranges::find(leftovers, present->id, &Entry::id) != leftovers.end()) present.reset();
  PICKET_TRY(CheckConditions(spec.conditions, spec.path, present ? &*present : nullptr,
                             present && InChange(present->id)));
  if (present && present->is_directory()) return Fail(Code::kIsDirectory, fmt::format("{} is a directory", spec.path.Quoted()));
  if (present && !spec.overwrite) return Fail(Exists(spec.path, sessions_.Find(present->id)));
  if (!*parent) {
    Namespace::Ownership directories = spec.as;
    directories.mode = 0755;
    auto made = spec.parents ? names_.MakeDirectory(batch, above, true, directories) : names_.Resolve(above);
    if (!made) return Fail(made.error());
    *parent = std::move(*made);
  }
  Entry& directory = **parent;
  if (!directory.is_directory()) return Fail(Code::kNotDirectory, fmt::format("{} is a file", above.Quoted()));

  // Nothing can fail from here on: the batch and what is in memory change together. What goes first: the
  // last row of a key counts.
  for (Entry& leftover : leftovers) purge_.Add(batch, std::move(leftover));
  Created created;
  created.entry = names_.NewInode(batch, kFileInode, spec.as);
  SessionTable::Spec session = spec.session;
  session.inode = created.entry.id;
  created.session = sessions_.Open(batch, session);
  record::Inode& inode = created.entry.inode;
  inode.set_generation(created.session.generation.value);
  inode.set_replication(spec.replication);
  inode.set_chunk_size(spec.chunk_size);
  if (spec.mtime_ns != 0) inode.set_mtime_ns(spec.mtime_ns);
  if (present) {
    inode.set_replaces(directory.id.value);
    inode.set_replaces_name(std::string(spec.path.name()));
    KeepConditions(spec.conditions, &inode);
    names_.PutInode(batch, &created.entry);
  } else {
    names_.Touch(batch, &directory);
    names_.Link(batch, directory.id, spec.path.name(), &created.entry);
  }
  return created;
}

Status OpenFiles::CheckAlone(InodeId inode) const {
  if (sessions_.Find(inode)->holders.size() <= 1) return {};
  return Fail(Error(Code::kConflict, fmt::format("file {} is held by others too and cannot be closed", ToString(inode)))
                  .WithNextStep("release it: the last holder closes it"));
}

Status OpenFiles::CheckAllSealed(const Entry& entry) const {
  const auto session = sessions_.Find(entry.id);
  if (!session || !session->open_chunk || PICKET_MUTANT(close_checks_sealed)) return {};
  auto open = chunks_.Get(session->open_chunk);
  if (!open) return Fail(open.error());
  const std::string chunk = ToString(session->open_chunk);
  if (!*open) return Fail(Code::kCorrupt, fmt::format("file {} has no record of its chunk {}", ToString(entry.id), chunk));
  // Marks are above the version that its record names: closed like that, no replica of it would count.
  if ((*open)->sealed()) {
    return Fail(Error(Code::kConflict, fmt::format("file {} cannot be closed: the attempt to open its chunk {} ({}) again "
                                                   "has not come to its end",
                                                   ToString(entry.id), (*open)->index(), chunk))
                    .WithTokens((*open)->current(), (*open)->minted())
                    .WithNextStep("ask for the grant again and seal the chunk, or recover the file"));
  }
  return Fail(Error(Code::kConflict, fmt::format("file {} cannot be closed: its chunk {} ({}) is not sealed",
                                                 ToString(entry.id), (*open)->index(), chunk))
                  .WithNextStep("seal the chunk, commit the seal, then close"));
}

Result<Entry> OpenFiles::Close(Batch* batch, Entry entry, int64_t mtime_ns) {
  std::optional<Entry> directory;
  std::optional<Entry> present;
  if (entry.inode.replaces() != 0) {
    const InodeId parent(entry.inode.replaces());
    auto path = names_.PathOf(parent);
    if (!path) return Fail(path.error());
    if (!*path) {
      return Fail(Error(Code::kNotFound, fmt::format("the directory of file {} ({}) was deleted while it was written",
                                                     ToString(entry.id), Quoted(entry.inode.replaces_name())))
                      .WithNextStep("abandon the file and write it elsewhere"));
    }
    auto found = names_.Get(parent);
    if (!found) return Fail(found.error());
    auto old = names_.Lookup(parent, entry.inode.replaces_name());
    if (!old) return Fail(old.error());
    if (*old && (*old)->is_directory()) {
      return Fail(Error(Code::kIsDirectory, fmt::format("the name {} of file {} became a directory while it was written",
                                                        Quoted(entry.inode.replaces_name()), ToString(entry.id)))
                      .WithNextStep("abandon the file and write it elsewhere"));
    }
    if (!PICKET_MUTANT(conditions_swap)) {
      PICKET_TRY(CheckConditions(KeptConditions(entry.inode), (*path)->Child(entry.inode.replaces_name()),
                                 *old ? &**old : nullptr, *old && InChange((*old)->id)));
    }
    directory = std::move(*found);
    present = std::move(*old);
  }

  sessions_.Drop(batch, entry.id);
  entry.inode.set_mtime_ns(mtime_ns != 0 ? mtime_ns : env_.WallNanos());
  if (!directory) {
    names_.PutInode(batch, &entry);
    return entry;
  }
  if (present) purge_.Add(batch, std::move(*present));
  const std::string name = entry.inode.replaces_name();
  entry.inode.clear_replaces();
  entry.inode.clear_replaces_name();
  ForgetConditions(&entry.inode);
  names_.Touch(batch, &*directory);
  names_.Link(batch, directory->id, name, &entry);
  return entry;
}

Status OpenFiles::Abandon(Batch* batch, InodeId inode, Generation generation, ClientId holder) {
  auto entry = names_.Get(inode);
  if (!entry) {
    if (entry.error().code == Code::kNotFound) return {};
    return Fail(entry.error());
  }
  PICKET_TRY(sessions_.CheckWriter(inode, generation, holder));
  if (!sessions_.Find(inode)->created && !PICKET_MUTANT(abandon_created)) {
    return Fail(Error(Code::kInvalidArgument, fmt::format("file {} was there before this write session", ToString(inode)))
                    .WithNextStep("close it, or delete it by its name"));
  }
  if (entry->inode.parent() != 0) {
    auto directory = names_.Get(InodeId(entry->inode.parent()));
    if (!directory) return Fail(directory.error());
    names_.Touch(batch, &*directory);
  }
  purge_.Add(batch, std::move(*entry));
  return {};
}

}  // namespace picket
