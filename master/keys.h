// The keys of the master's metadata: one letter for the table, then fields whose byte order is their
// order (big-endian integers, names in UTF-8 bytes). The values are messages of proto/records.proto
// unless said otherwise. docs/FORMATS.md describes every table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/coding.h"
#include "common/base/ids.h"

namespace picket::keys {

// Table prefixes; no two tables share a first byte.
inline constexpr std::string_view kAnswers = "a";      // client, sequence → Answer
inline constexpr std::string_view kChunks = "c";       // chunk → Chunk
inline constexpr std::string_view kDentries = "d";     // parent, name → Dentry
inline constexpr std::string_view kActivations = "e";  // epoch → Activation
inline constexpr std::string_view kFileChunks = "f";   // inode, index → chunk id (EncodeU64)
inline constexpr std::string_view kGarbage = "g";      // chunk whose record has inode 0 → empty
inline constexpr std::string_view kInodes = "i";       // inode → Inode
inline constexpr std::string_view kTokenKeys = "k";    // key → TokenKey
inline constexpr std::string_view kLog = "l";          // revision → LogEntry
inline constexpr std::string_view kCounters = "n";     // name → EncodeU64
inline constexpr std::string_view kPurge = "p";        // unlinked inode to take apart → empty
inline constexpr std::string_view kSessions = "s";     // inode → Session
inline constexpr std::string_view kTrash = "t";        // trashed_at_ns, inode → empty
inline constexpr std::string_view kLockDelays = "w";   // inode → LockDelay

// In the table of counters: an operator adopted, and the next activation has this number.
inline constexpr std::string_view kAdoptedEpoch = "adopted_epoch";

namespace internal {
inline std::string Key(std::string_view table, uint64_t a) {
  std::string k(table);
  PutBigEndian64(&k, a);
  return k;
}
inline std::string Key(std::string_view table, uint64_t a, uint64_t b) {
  std::string k = Key(table, a);
  PutBigEndian64(&k, b);
  return k;
}
}  // namespace internal

inline std::string Inode(InodeId id) { return internal::Key(kInodes, id.value); }
// With an empty name: the prefix of all entries of `parent`.
inline std::string Dentry(InodeId parent, std::string_view name) {
  return internal::Key(kDentries, parent.value).append(name);
}
inline std::string_view DentryName(std::string_view key) { return key.substr(kDentries.size() + 8); }

inline std::string Chunk(ChunkId id) { return internal::Key(kChunks, id.value); }
inline std::string FileChunk(InodeId file, uint64_t index) { return internal::Key(kFileChunks, file.value, index); }
inline std::string FileChunks(InodeId file) { return internal::Key(kFileChunks, file.value); }  // prefix
inline std::string Garbage(ChunkId id) { return internal::Key(kGarbage, id.value); }

inline std::string Session(InodeId file) { return internal::Key(kSessions, file.value); }
inline std::string TokenKey(uint64_t id) { return internal::Key(kTokenKeys, id); }
inline std::string LockDelay(InodeId file) { return internal::Key(kLockDelays, file.value); }
inline std::string Purge(InodeId id) { return internal::Key(kPurge, id.value); }
inline std::string Trash(int64_t trashed_at_ns, InodeId id) {
  return internal::Key(kTrash, static_cast<uint64_t>(trashed_at_ns), id.value);
}

// Sequence 0 is the client's mark: answers below it are forgotten (its value is EncodeU64).
inline std::string Answer(uint64_t client, uint64_t sequence) { return internal::Key(kAnswers, client, sequence); }
inline std::string Answers(uint64_t client) { return internal::Key(kAnswers, client); }  // prefix

inline std::string Activation(uint32_t epoch) { return internal::Key(kActivations, epoch); }
inline std::string Log(uint64_t revision) { return internal::Key(kLog, revision); }
inline std::string Counter(std::string_view name) { return std::string(kCounters).append(name); }

// The last / second-to-last 8 bytes of a key whose last fields are numbers. REQUIRES: long enough.
inline uint64_t LastNumber(std::string_view key) { return LoadBigEndian64(key.data() + key.size() - 8); }
inline uint64_t NumberBeforeLast(std::string_view key) { return LoadBigEndian64(key.data() + key.size() - 16); }

inline std::string EncodeU64(uint64_t v) {
  std::string s;
  PutFixed(&s, v);
  return s;
}
// 0 for a value that is not one.
inline uint64_t DecodeU64(std::string_view value) { return value.size() == 8 ? LoadFixed<uint64_t>(value.data()) : 0; }

}  // namespace picket::keys
