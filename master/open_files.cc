#include "master/open_files.h"

#include <fmt/format.h>

#include "common/base/mutation.h"
#include "master/chunk_table.h"

namespace picket {
namespace {

Error Exists(const Path& path, const Entry& present, const std::optional<SessionTable::Session>& session) {
  if (!session) {
    return Error(Code::kAlreadyExists, fmt::format("the file {} exists", path.Quoted()))
        .WithTokens(0, present.inode.generation())
        .WithNextStep("choose another name, or overwrite it");
  }
  return Error(Code::kAlreadyExists,
               fmt::format("the file {} exists and is being written by client {} in session {}", path.Quoted(),
                           ToString(session->holder()), session->generation.ToString()))
      .WithTokens(0, session->generation.value)
      .WithHolder(ToString(session->holder()))
      .WithNextStep("choose another name, wait until it is closed, or overwrite it");
}

}  // namespace

Result<OpenFiles::Created> OpenFiles::Create(Batch* batch, const CreateSpec& spec) {
  if (spec.path.is_root()) return Fail(Code::kIsDirectory, "/ is a directory");
  const Path above = spec.path.Parent();
  Namespace::Ownership directories = spec.as;
  directories.mode = 0755;
  auto parent = spec.parents ? names_.MakeDirectory(batch, above, true, directories) : names_.Resolve(above);
  if (!parent) return Fail(parent.error());
  if (!parent->is_directory()) return Fail(Code::kNotDirectory, fmt::format("{} is a file", above.Quoted()));
  auto present = names_.Lookup(parent->id, spec.path.name());
  if (!present) return Fail(present.error());
  if (*present) {
    if ((*present)->is_directory()) {
      return Fail(Code::kIsDirectory, fmt::format("{} is a directory", spec.path.Quoted()));
    }
    if (!spec.overwrite) return Fail(Exists(spec.path, **present, sessions_.Find((*present)->id)));
  }

  // Nothing can fail from here on: the batch and what is in memory change together.
  Created created;
  created.entry = names_.NewInode(batch, kFileInode, spec.as);
  SessionTable::Spec session;
  session.inode = created.entry.id;
  session.holder = spec.holder;
  created.session = sessions_.Open(batch, session);
  record::Inode& inode = created.entry.inode;
  inode.set_generation(created.session.generation.value);
  inode.set_replication(spec.replication);
  inode.set_chunk_size(spec.chunk_size);
  if (spec.mtime_ns != 0) inode.set_mtime_ns(spec.mtime_ns);
  if (*present) {
    inode.set_replaces(parent->id.value);
    inode.set_replaces_name(std::string(spec.path.name()));
    names_.PutInode(batch, &created.entry);
  } else {
    names_.Touch(batch, &*parent);
    names_.Link(batch, parent->id, spec.path.name(), &created.entry);
  }
  return created;
}

Status OpenFiles::CheckAllSealed(const Entry& entry) const {
  // A chunk is added only after those before it were sealed, so the last one speaks for all.
  if (entry.inode.chunk_count() == 0) return {};
  auto last = chunks_.At(entry.id, entry.inode.chunk_count() - 1);
  if (!last) return Fail(last.error());
  if (!*last) {
    return Fail(Code::kCorrupt, fmt::format("file {} has no record of its chunk {}", ToString(entry.id),
                                            entry.inode.chunk_count() - 1));
  }
  if ((*last)->record.sealed() || PICKET_MUTANT(close_checks_sealed)) return {};
  return Fail(Error(Code::kConflict, fmt::format("file {} cannot be closed: its chunk {} ({}) is not sealed",
                                                 ToString(entry.id), entry.inode.chunk_count() - 1,
                                                 ToString((*last)->id)))
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
  if (entry->inode.parent() != 0) {
    auto directory = names_.Get(InodeId(entry->inode.parent()));
    if (!directory) return Fail(directory.error());
    names_.Touch(batch, &*directory);
  }
  purge_.Add(batch, std::move(*entry));
  return {};
}

}  // namespace picket
