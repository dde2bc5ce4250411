// What a FileReader reads: the file's known length, pieces in flight, and the read-ahead of its
// sequential position. Its tasks keep it alive. Runs on one executor.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "client/core/chunk_reader.h"
#include "client/core/file_reader.h"
#include "common/env/env.h"
#include "common/env/one_shot.h"
#include "common/env/sync.h"

namespace picket {

class OpenFile {
 public:
  static constexpr uint64_t kPieceSize = 1 << 20;

  // `file` is the master's answer for chunks [0, …).
  OpenFile(Env& env, std::shared_ptr<ChunkReader> chunks, const proto::GetFileResponse& file);

  static Task<Result<Buffer>> ReadAt(std::shared_ptr<OpenFile> self, uint64_t offset, size_t size);
  static Task<Result<Buffer>> ReadNext(std::shared_ptr<OpenFile> self);
  static Task<Result<uint64_t>> Length(std::shared_ptr<OpenFile> self);
  void Seek(uint64_t offset);
  const proto::FileStatus& status() const { return status_; }

 private:
  // A piece of the read-ahead, being fetched.
  struct Ahead {
    Ahead(Env& env, uint64_t s) : arrived(env), size(s) {}
    OneShot<Result<Buffer>> arrived;
    uint64_t size;
  };

  // Where the piece that begins at `offset` ends: at a multiple of kPieceSize, of the chunk size, or `end`.
  uint64_t PieceEnd(uint64_t offset, uint64_t end) const;
  // Learns how much is readable by now, while the file is being written.
  static Task<Status> LookAgain(std::shared_ptr<OpenFile> self);
  static Task<Result<Buffer>> ReadPiece(std::shared_ptr<OpenFile> self, uint64_t offset, uint64_t size);
  static Task<> Fetch(std::shared_ptr<OpenFile> self, std::shared_ptr<Ahead> piece, uint64_t offset);
  static void FillAhead(const std::shared_ptr<OpenFile>& self);

  Env& env_;
  const std::shared_ptr<ChunkReader> chunks_;
  const proto::FileStatus status_;
  bool growing_;
  uint64_t length_;             // readable, as far as known; never falls
  uint64_t open_end_ = 0;       // how far the newest open chunk was seen to be readable
  size_t in_flight_ = 0;
  Signal slot_free_;

  uint64_t position_ = 0;       // of the next Read
  uint64_t ahead_end_ = 0;      // what is fetched or being fetched: [position_, ahead_end_)
  std::deque<std::shared_ptr<Ahead>> ahead_;
  size_t ahead_pieces_ = 1;     // grows while reading stays sequential
};

}  // namespace picket
