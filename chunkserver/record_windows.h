// The dedup windows of the chunks that are appended to or asked about, each read from the replica's frames
// when it is first needed and extended at each append.
//
// 1. A window counts only for the bytes it was read from: another lineage of the replica (a raised mark, a
//    cut, a new copy) and it is read anew. So nothing survives that a fail-over took away (F15 b), and after a
//    restart the answers are the same.
// 2. It costs bounded reads of kScanStep, with the chunk's lock held.
// 3. At most kMaxRemembered records in all: the window that was used longest ago goes.
// Runs on the chunkserver's executor.
#pragma once

#include <list>
#include <map>
#include <memory>

#include "chunkserver/change_log.h"
#include "chunkserver/record_window.h"
#include "chunkserver/replica_store.h"

namespace picket::cs {

class RecordWindows {
 public:
  RecordWindows(ChangeLog& changes) : changes_(changes) {}

  struct Records {
    RecordWindow window;
    bool torn = false;  // the bytes from window.end() on are the rest of a frame that was cut off
  };
  // The records in all the bytes the replica holds now. kConflict: they are not frames; kCorrupt: and do not
  // match their checksums either. REQUIRES: the chunk's lock, held while the result is used; the replica is
  // ready for use.
  Task<Result<std::shared_ptr<Records>>> Of(ReplicaPtr replica);

  static constexpr size_t kMaxRemembered = 1 << 20;
  static constexpr uint64_t kScanStep = 256 << 10;

 private:
  struct Kept {
    ChunkId chunk;
    std::weak_ptr<ReplicaFile> file;
    uint64_t lineage = 0;
    std::shared_ptr<Records> records;
  };
  Task<Status> Read(std::shared_ptr<ReplicaFile> file, Records* records);
  Task<Status> NoFrame(std::shared_ptr<ReplicaFile> file, uint64_t at);
  std::shared_ptr<Records> Known(const Replica& replica);
  void Keep(const Replica& replica, std::shared_ptr<Records> records);

  ChangeLog& changes_;
  std::list<Kept> kept_;  // least recently used first
  std::map<ChunkId, std::list<Kept>::iterator> by_chunk_;
};

}  // namespace picket::cs
