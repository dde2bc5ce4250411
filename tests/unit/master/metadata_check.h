// What must hold of the metadata's tables at any time (namespace.h, session_table.h, chunk_table.h).
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "master/keys.h"
#include "tests/unit/master/metadata_half.h"

namespace picket::test {

inline std::vector<MetaRow> AllRows(MetaStore& store, std::string_view table) {
  auto rows = store.Scan(table, "", 10'000'000);
  EXPECT_TRUE(rows);
  return rows ? std::move(*rows) : std::vector<MetaRow>();
}

inline void CheckMetadata(MetadataHalf& m) {
  std::map<InodeId, record::Inode> inodes;
  for (const MetaRow& row : AllRows(m.store, keys::kInodes)) {
    ASSERT_TRUE(inodes[InodeId(keys::LastNumber(row.key))].ParseFromString(row.value));
  }
  EXPECT_EQ(m.names.inode_count(), inodes.size());
  EXPECT_TRUE(inodes.contains(kRootInode));

  std::set<InodeId> linked;
  for (const MetaRow& row : AllRows(m.store, keys::kDentries)) {
    record::Dentry dentry;
    ASSERT_TRUE(dentry.ParseFromString(row.value));
    const InodeId id(dentry.inode());
    const InodeId parent(LoadBigEndian64(row.key.data() + 1));
    ASSERT_TRUE(inodes.contains(id)) << "a name means inode " << ToString(id) << ", which does not exist";
    EXPECT_EQ(inodes[id].parent(), parent.value);
    EXPECT_EQ(inodes[id].name(), keys::DentryName(row.key));
    EXPECT_EQ(inodes[id].type(), dentry.type());
    EXPECT_TRUE(inodes.contains(parent) && inodes[parent].type() == kDirectoryInode);
    EXPECT_TRUE(linked.insert(id).second) << "inode " << ToString(id) << " has two names";
  }

  std::set<InodeId> purged;
  for (const MetaRow& row : AllRows(m.store, keys::kPurge)) purged.insert(InodeId(keys::LastNumber(row.key)));
  std::set<InodeId> open;
  for (const MetaRow& row : AllRows(m.store, keys::kSessions)) {
    record::Session session;
    ASSERT_TRUE(session.ParseFromString(row.value));
    const InodeId id(keys::LastNumber(row.key));
    open.insert(id);
    ASSERT_TRUE(inodes.contains(id)) << "a session of inode " << ToString(id) << ", which does not exist";
    EXPECT_EQ(inodes[id].generation(), session.generation());
    EXPECT_TRUE(m.sessions.IsOpen(id));
  }
  EXPECT_EQ(m.sessions.open_count(), open.size());

  std::set<std::string> trash_index;
  for (const MetaRow& row : AllRows(m.store, keys::kTrash)) trash_index.insert(row.key);
  for (const auto& [id, inode] : inodes) {
    if (id == kRootInode) continue;
    const bool pending = inode.replaces() != 0 && open.contains(id);
    EXPECT_EQ(int{linked.contains(id)} + int{pending} + int{purged.contains(id)}, 1)
        << "inode " << ToString(id) << " must be linked, pending or in the purge queue";
    EXPECT_EQ(inode.parent() != 0, linked.contains(id));
    EXPECT_EQ(trash_index.erase(keys::Trash(inode.trashed_at_ns(), id)) == 1, inode.trashed()) << ToString(id);
    if (purged.contains(id)) continue;
    uint64_t stored = 0;
    uint64_t end = 0;
    for (const MetaRow& row : AllRows(m.store, keys::FileChunks(id))) {
      auto chunk = m.chunks.Get(ChunkId(keys::DecodeU64(row.value)));
      ASSERT_TRUE(chunk && *chunk);
      EXPECT_EQ((*chunk)->inode(), id.value);
      EXPECT_EQ((*chunk)->index(), keys::LastNumber(row.key));
      stored += (*chunk)->length();
      end = (*chunk)->index() + 1;
    }
    EXPECT_EQ(inode.chunk_count(), end) << ToString(id);
    EXPECT_EQ(inode.stored_bytes(), stored) << ToString(id);
  }
  EXPECT_TRUE(trash_index.empty());
  for (InodeId id : purged) EXPECT_TRUE(inodes.contains(id)) << ToString(id);
}

}  // namespace picket::test
