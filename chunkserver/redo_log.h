// Overwritten blocks of a replica that are not yet in place: <chunk>.redo. An overwrite of bytes in place
// would leave a torn block behind a crash; a record of the whole new block leaves the old one or the new.
//
// 1. A record counts for one slot only (instance, sequence): the slot that is written when the blocks are
//    in place, durably, makes every record void. Records that count are a prefix of the file.
// 2. Blocks go in place only after Sync, and the file is emptied only after that slot is durable: a crash in
//    between finds the records and places them again.
// 3. The file exists from the first overwrite of a loaded replica until it is sealed, deleted or recovered.
//    A replica without overwrites has none.
//
// Runs on the chunkserver's executor. The caller orders the calls (ReplicaFile's slot lock).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/env.h"

namespace picket::cs {

// The head of a record; the block's bytes follow it. docs/FORMATS.md has the table.
struct RedoHead {
  InstanceId instance;
  uint64_t sequence = 0;  // of the slot it counts for
  uint32_t block = 0;
  uint32_t size = 0;  // the block's extent at that time
  uint32_t crc = 0;   // of the bytes

  bool operator==(const RedoHead&) const = default;
};
inline constexpr size_t kRedoHeadSize = 40;
// Exactly kRedoHeadSize bytes.
std::string EncodeRedoHead(const RedoHead& head);
// Nothing when it is not one, or its checksum is wrong.
std::optional<RedoHead> DecodeRedoHead(std::string_view bytes);

// A block's new content.
struct RedoBlock {
  uint64_t block = 0;
  Buffer bytes;
  uint32_t crc = 0;
};

class RedoLog {
 public:
  struct Entry {
    uint64_t at = 0;  // of the bytes in the file
    uint32_t size = 0;
    uint32_t crc = 0;
  };
  using Entries = std::map<uint64_t, Entry>;  // by block; the newest of each

  RedoLog(Env& env, std::string dir, std::string name) : env_(env), dir_(std::move(dir)), path_(dir_ + "/" + name) {}
  RedoLog(const RedoLog&) = delete;

  const Entries& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  uint64_t size() const { return end_; }
  // Every block was moved into place since the last Add.
  bool placed() const { return placed_; }
  void SetPlaced() { placed_ = true; }

  // Opens the file, empty. Its name is made durable by the first Sync.
  Task<Status> Create();
  // Opens what an earlier process left and finds the records that count. False when there is no file.
  Task<Result<bool>> Open(InstanceId instance, uint64_t sequence);

  // All of the blocks or, after an error, none. On return they survive a crash of the process.
  Task<Status> Add(InstanceId instance, uint64_t sequence, std::vector<RedoBlock> blocks);
  // The bytes of a block that has an entry, verified (kCorrupt).
  Task<Result<Buffer>> Read(uint64_t block);
  // Every record and the file's name are durable on return.
  Task<Status> Sync();
  // REQUIRES: the slot that makes the records void is durable.
  Task<Status> Clear();
  // The same, and the file goes.
  Task<> Remove();

  static constexpr uint64_t kMaxSize = 16 << 20;  // beyond it the blocks are moved into place

 private:
  Env& env_;
  const std::string dir_;
  const std::string path_;
  std::unique_ptr<File> file_;
  bool name_durable_ = false;
  bool placed_ = false;
  uint64_t end_ = 0;
  Entries entries_;
};

}  // namespace picket::cs
