#include "master/trash.h"

#include <fmt/format.h>

#include <vector>

#include "common/obs/log.h"
#include "master/keys.h"

namespace picket {
namespace {

constexpr std::string_view kTrashName = ".Trash";
constexpr Nanos kExpiryPeriod = 60s;

// Unique, because the inode id is; cut at a character so that it fits.
std::string NameInTrash(std::string_view name, InodeId id) {
  const std::string suffix = "." + ToString(id);
  size_t size = std::min(name.size(), kMaxNameBytes - suffix.size());
  while (size < name.size() && (static_cast<unsigned char>(name[size]) & 0xC0) == 0x80) --size;
  return std::string(name.substr(0, size)) + suffix;
}

}  // namespace

bool Trash::Contains(const Path& path) { return !path.is_root() && path.names().front() == kTrashName; }

Result<Entry> Trash::DirectoryIn(Batch* batch, Entry* parent, std::string_view name, const Namespace::Ownership& as) {
  auto present = names_.Lookup(parent->id, name);
  if (!present) return Fail(present.error());
  if (*present) {
    if ((*present)->is_directory()) return std::move(**present);
    return Fail(Code::kNotDirectory, fmt::format("{} in the trash is a file", Quoted(name)));
  }
  Entry made = names_.NewInode(batch, kDirectoryInode, as);
  names_.Touch(batch, parent);
  names_.Link(batch, parent->id, name, &made);
  return made;
}

Result<Path> Trash::Move(Batch* batch, Entry entry, std::string_view user) {
  auto source = names_.Get(InodeId(entry.inode.parent()));
  if (!source) return Fail(source.error());
  auto root = names_.Get(kRootInode);
  if (!root) return Fail(root.error());
  auto all = DirectoryIn(batch, &*root, kTrashName, Namespace::Ownership{"", "", 01777});
  if (!all) return Fail(all.error());
  auto mine = DirectoryIn(batch, &*all, user, Namespace::Ownership{std::string(user), "", 0700});
  if (!mine) return Fail(mine.error());

  const std::string name = NameInTrash(entry.inode.name(), entry.id);
  names_.Touch(batch, &*source);
  names_.Touch(batch, &*mine);
  names_.Unlink(batch, &entry);
  entry.inode.set_trashed(true);
  entry.inode.set_trashed_at_ns(env_.WallNanos());
  batch->Put(keys::Trash(entry.inode.trashed_at_ns(), entry.id), std::string());
  names_.Link(batch, mine->id, name, &entry);
  return Path::Join({std::string(kTrashName), std::string(user), name});
}

void Trash::Restored(Batch* batch, Entry* entry) const {
  if (!entry->inode.trashed()) return;
  batch->Remove(keys::Trash(entry->inode.trashed_at_ns(), entry->id));
  entry->inode.clear_trashed();
  entry->inode.clear_trashed_at_ns();
  names_.PutInode(batch, entry);
}

Task<> Trash::ExpireLoop() {
  for (;;) {
    co_await env_.Sleep(kExpiryPeriod);
    for (;;) {
      if (store_.failed() || !serving_.Check()) co_return;
      auto expired = co_await ExpireSome();
      if (!expired) PICKET_LOG(env_, kWarning, "emptying the trash: {}", expired.error().ToString());
      if (!expired || *expired < kMaxExpiredAtOnce) break;
    }
  }
}

Task<Result<size_t>> Trash::ExpireSome() {
  const int64_t retention_ns = static_cast<int64_t>(options_.retention_ms) * 1'000'000;
  const int64_t now_ns = env_.WallNanos();
  auto rows = store_.Scan(keys::kTrash, "", kMaxExpiredAtOnce);
  if (!rows) co_return Fail(rows.error());
  PICKET_CO_TRY(store_.CheckWritable());
  Batch batch;
  size_t count = 0;
  std::vector<Entry> expired;  // handed over when nothing can fail any more
  for (const MetaRow& row : *rows) {
    const auto trashed_at_ns = static_cast<int64_t>(keys::NumberBeforeLast(row.key));
    if (trashed_at_ns + retention_ns > now_ns) break;
    auto entry = names_.Get(InodeId(keys::LastNumber(row.key)));
    if (!entry && entry.error().code != Code::kNotFound) co_return Fail(entry.error());
    ++count;
    if (entry && entry->inode.trashed() && entry->inode.trashed_at_ns() == trashed_at_ns) {
      expired.push_back(std::move(*entry));
    } else {
      batch.Remove(row.key);
    }
  }
  if (count == 0) co_return size_t{0};
  for (Entry& entry : expired) purge_.Add(&batch, std::move(entry));
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  co_return count;
}

}  // namespace picket
