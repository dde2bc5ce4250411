#include "client/core/record_reader.h"

#include <algorithm>
#include <cstring>

#include "common/base/crc32c.h"
#include "common/base/mutation.h"

namespace picket {

RecordReader::RecordReader(Env& env, std::shared_ptr<ChunkReader> chunks, const proto::GetFileResponse& file)
    : env_(env), chunks_(std::move(chunks)), status_(file.status()) {}

void RecordReader::Seek(uint64_t offset) {
  index_ = offset / status_.chunk_size();
  position_ = offset % status_.chunk_size();
  length_ = 0;
  sealed_ = false;
  piece_ = Buffer();
  ahead_.reset();
}

Error RecordReader::Corrupt(std::string why) const {
  return Error(Code::kCorrupt, "at byte " + std::to_string(index_ * status_.chunk_size() + position_) + ": " + why)
      .WithNextStep("only files made by record append have records; read the bytes with 'picket cat'");
}

Task<Result<RecordReader::Step>> RecordReader::LookAgain() {
  const InodeId inode(status_.inode());
  auto file = co_await chunks_->Locate("", inode, index_, 1);
  if (!file) co_return Fail(std::move(file).error());
  if (file->chunks().empty()) co_return Step::kEnd;
  const proto::ChunkLocation& chunk = file->chunks(0);
  if (chunk.index() != index_) {
    index_ = chunk.index();
    position_ = 0;
  }
  sealed_ = chunk.sealed();
  if (sealed_) {
    length_ = chunk.length();
    co_return Step::kFrame;
  }
  auto probe = co_await ChunkReader::Read(chunks_, inode, index_, 0, 0);
  if (!probe) co_return Fail(std::move(probe).error());
  length_ = std::max(length_, probe->readable);
  co_return Step::kFrame;
}

Task<Result<RecordReader::Step>> RecordReader::FindFrame(RecordHeader* header) {
  const uint64_t left = length_ - position_;
  if (left < kRecordHeaderSize) {
    if (left == 0 || length_ == status_.chunk_size()) co_return Step::kNextChunk;
    auto rest = co_await Bytes(position_, left);
    if (!rest) co_return Fail(std::move(rest).error());
    if (!MayBeginRecord(rest->view())) co_return Fail(Corrupt("no record begins here"));
    co_return Step::kNextChunk;
  }
  auto head = co_await Bytes(position_, kRecordHeaderSize);
  if (!head) co_return Fail(std::move(head).error());
  auto decoded = DecodeRecordHeader(head->view());
  if (!decoded) co_return Fail(Corrupt(decoded.error().message));
  *header = *decoded;
  if (header->frame_size() > status_.chunk_size() - position_) {
    co_return Fail(Corrupt("a record that is longer than its chunk"));
  }
  co_return header->frame_size() > left ? Step::kNextChunk : Step::kFrame;
}

Task<Result<std::optional<RecordReader::Record>>> RecordReader::Next() {
  bool looked = false;
  while (true) {
    Step step = Step::kNextChunk;
    RecordHeader header;
    if (position_ < length_) {
      auto found = co_await FindFrame(&header);
      if (!found) co_return Fail(std::move(found).error());
      step = *found;
    }
    if (step == Step::kNextChunk) {
      // Sealed: the chunk is read to its end. Open: as far as is known, once more is asked.
      if (sealed_) {
        ++index_;
        position_ = length_ = 0;
        sealed_ = false;
        piece_ = Buffer();
        ahead_.reset();
      } else if (looked) {
        co_return std::nullopt;
      }
      auto seen = co_await LookAgain();
      if (!seen) co_return Fail(std::move(seen).error());
      if (*seen == Step::kEnd) co_return std::nullopt;
      looked = !sealed_;
      continue;
    }
    if (header.padding) {
      position_ += header.frame_size();
      continue;
    }
    auto bytes = co_await Bytes(position_ + kRecordHeaderSize, header.length);
    if (!bytes) co_return Fail(std::move(bytes).error());
    if (Crc32c(bytes->view()) != header.crc && !PICKET_MUTANT(client_record_crc)) {
      co_return Fail(Corrupt("a record does not match its checksum"));
    }
    Record record;
    record.offset = index_ * status_.chunk_size() + position_;
    record.client = ClientId(header.client);
    record.sequence = header.sequence;
    record.bytes = std::move(*bytes);
    position_ += header.frame_size();
    co_return std::move(record);
  }
}

// ---- bytes -----------------------------------------------------------------------------------------

Task<> RecordReader::Fetch(std::shared_ptr<ChunkReader> chunks, std::shared_ptr<Piece> piece, InodeId inode,
                           uint64_t index) {
  auto bytes = co_await ChunkReader::Read(chunks, inode, index, piece->start, piece->end - piece->start);
  if (bytes) {
    piece->arrived.Set(std::move(bytes->data));
  } else {
    piece->arrived.Set(Fail(std::move(bytes).error()));
  }
}

std::shared_ptr<RecordReader::Piece> RecordReader::Begin(uint64_t start) {
  auto piece = std::make_shared<Piece>(env_, start, std::min(start + kPieceSize, length_));
  env_.Spawn(Fetch(chunks_, piece, InodeId(status_.inode()), index_));
  return piece;
}

Task<Status> RecordReader::NeedPiece(uint64_t at, uint64_t end) {
  if (at >= piece_start_ && end <= piece_start_ + piece_.size()) co_return Status();
  const uint64_t start = at - at % kPieceSize;
  std::shared_ptr<Piece> piece = std::move(ahead_);
  ahead_.reset();
  if (!piece || piece->start != start || piece->end < end) piece = Begin(start);
  if (piece->end == start + kPieceSize && piece->end < length_) ahead_ = Begin(piece->end);
  auto bytes = co_await piece->arrived.Wait();
  if (!bytes) co_return Fail(std::move(bytes).error());
  piece_ = std::move(*bytes);
  piece_start_ = start;
  co_return Status();
}

Task<Result<Buffer>> RecordReader::Bytes(uint64_t at, uint64_t size) {
  Buffer whole;
  for (uint64_t done = 0; done < size;) {
    const uint64_t from = at + done;
    const uint64_t part = std::min(size - done, kPieceSize - from % kPieceSize);
    PICKET_CO_TRY(co_await NeedPiece(from, from + part));
    const Buffer bytes = piece_.Slice(from - piece_start_, part);
    if (part == size) co_return bytes;
    if (done == 0) whole = env_.Allocate(size);
    std::memcpy(whole.data() + done, bytes.data(), part);
    done += part;
  }
  co_return whole;
}

}  // namespace picket
