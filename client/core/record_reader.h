// The records of a record-append file, in the order of their offsets: padding is skipped, and what a recovery
// left of a record that nobody was told is there. Every record returned matches its checksum.
//
// Of a file that is being written, records up to the known-acknowledged length; Next may be asked again later.
// Bytes come from any counted replica (chunk_reader.h), one piece of 1 MiB ahead. One caller at a time; runs
// on one executor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "client/core/chunk_reader.h"
#include "common/base/record_frame.h"
#include "common/env/one_shot.h"

namespace picket {

class RecordReader {
 public:
  // `file` is the master's answer for chunks [0, …).
  RecordReader(Env& env, std::shared_ptr<ChunkReader> chunks, const proto::GetFileResponse& file);
  RecordReader(const RecordReader&) = delete;

  struct Record {
    uint64_t offset = 0;  // of the frame in the file
    ClientId client;
    uint64_t sequence = 0;
    Buffer bytes;
  };
  // None: there are no more, or not yet. kCorrupt names the offset of the frame that is not one, or whose
  // bytes do not match; asked again, the same.
  Task<Result<std::optional<Record>>> Next();
  // Goes on at the frame that begins there.
  void Seek(uint64_t offset);

  const proto::FileStatus& status() const { return status_; }

  static constexpr uint64_t kPieceSize = 1 << 20;

 private:
  struct Piece {
    Piece(Env& env, uint64_t s, uint64_t e) : arrived(env), start(s), end(e) {}
    OneShot<Result<Buffer>> arrived;
    uint64_t start;
    uint64_t end;
  };
  enum class Step { kFrame, kNextChunk, kEnd };

  // Learns how long the present chunk is by now. kEnd: there is none.
  Task<Result<Step>> LookAgain();
  // What begins at position_; kFrame: a whole frame does, `header` is its.
  Task<Result<Step>> FindFrame(RecordHeader* header);
  // Bytes of the present chunk; `at` never falls but by Seek.
  Task<Result<Buffer>> Bytes(uint64_t at, uint64_t size);
  Task<Status> NeedPiece(uint64_t at, uint64_t end);
  std::shared_ptr<Piece> Begin(uint64_t start);
  static Task<> Fetch(std::shared_ptr<ChunkReader> chunks, std::shared_ptr<Piece> piece, InodeId inode, uint64_t index);
  Error Corrupt(std::string why) const;

  Env& env_;
  const std::shared_ptr<ChunkReader> chunks_;
  const proto::FileStatus status_;
  uint64_t index_ = 0;     // of the present chunk
  uint64_t position_ = 0;  // in it
  uint64_t length_ = 0;    // of it: readable, as far as known
  bool sealed_ = false;
  Buffer piece_;  // bytes of it, at piece_start_
  uint64_t piece_start_ = 0;
  std::shared_ptr<Piece> ahead_;
};

}  // namespace picket
