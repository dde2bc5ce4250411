#include "master/purge_queue.h"

#include "master/keys.h"

namespace picket {

void PurgeQueue::Add(Batch* batch, Entry entry) {
  if (entry.inode.parent() != 0) names_.Unlink(batch, &entry);
  sessions_.Drop(batch, entry.id);
  if (entry.inode.trashed()) batch->Remove(keys::Trash(entry.inode.trashed_at_ns(), entry.id));
  entry.inode.clear_trashed();
  entry.inode.clear_trashed_at_ns();
  entry.inode.clear_replaces();
  entry.inode.clear_replaces_name();
  names_.PutInode(batch, &entry);
  batch->Put(keys::Purge(entry.id), std::string());
  added_.NotifyAll();
}

}  // namespace picket
