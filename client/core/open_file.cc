#include "client/core/open_file.h"

#include <algorithm>
#include <cstring>

namespace picket {

OpenFile::OpenFile(Env& env, std::shared_ptr<ChunkReader> chunks, const proto::GetFileResponse& file)
    : env_(env),
      chunks_(std::move(chunks)),
      status_(file.status()),
      growing_(file.status().open()),
      length_(file.status().length()),
      slot_free_(env) {}

uint64_t OpenFile::PieceEnd(uint64_t offset, uint64_t end) const {
  return std::min({end, offset - offset % kPieceSize + kPieceSize,
                   offset - offset % status_.chunk_size() + status_.chunk_size()});
}

Task<Status> OpenFile::LookAgain(std::shared_ptr<OpenFile> self) {
  const uint64_t chunk_size = self->status_.chunk_size();
  const InodeId inode(self->status_.inode());
  uint64_t first = self->length_ / chunk_size;
  while (true) {
    auto file = co_await self->chunks_->Locate("", inode, first, ChunkReader::kLocatePage);
    if (!file) co_return Fail(std::move(file).error());
    for (const auto& chunk : file->chunks()) {
      uint64_t readable = chunk.length();
      if (!chunk.sealed()) {
        auto probe = co_await ChunkReader::Read(self->chunks_, inode, chunk.index(), 0, 0);
        if (!probe) co_return Fail(std::move(probe).error());
        readable = probe->readable;
        self->open_end_ = std::max(self->open_end_, chunk.index() * chunk_size + readable);
      }
      self->length_ = std::max(self->length_, chunk.index() * chunk_size + readable);
      first = chunk.index() + 1;
    }
    self->length_ = std::max<uint64_t>(self->length_, file->status().length());
    if (!file->more() || file->chunks().empty()) {
      self->growing_ = file->status().open();
      co_return Status();
    }
  }
}

Task<Result<uint64_t>> OpenFile::Length(std::shared_ptr<OpenFile> self) {
  if (self->growing_) PICKET_CO_TRY(co_await LookAgain(self));
  co_return self->length_;
}

Task<Result<Buffer>> OpenFile::ReadPiece(std::shared_ptr<OpenFile> self, uint64_t offset, uint64_t size) {
  while (self->in_flight_ >= FileReader::kMaxInFlight) co_await self->slot_free_.Wait();
  ++self->in_flight_;
  const uint64_t chunk_size = self->status_.chunk_size();
  const bool in_open = self->open_end_ > offset && self->open_end_ / chunk_size == offset / chunk_size;
  const uint64_t least = in_open ? std::min(size, self->open_end_ - offset) : 0;
  auto bytes = co_await ChunkReader::Read(self->chunks_, InodeId(self->status_.inode()), offset / chunk_size,
                                          offset % chunk_size, size, least);
  --self->in_flight_;
  self->slot_free_.NotifyAll();
  if (!bytes) co_return Fail(std::move(bytes).error());
  if (bytes->data.size() == size) co_return std::move(bytes->data);
  // A hole reads as zeros.
  Buffer padded = self->env_.Allocate(size);
  std::memset(padded.data(), 0, size);
  if (!bytes->data.empty()) std::memcpy(padded.data(), bytes->data.data(), bytes->data.size());
  co_return padded;
}

Task<Result<Buffer>> OpenFile::ReadAt(std::shared_ptr<OpenFile> self, uint64_t offset, size_t size) {
  // Overflow of offset + size is a read to the end.
  const uint64_t wanted = offset + size < offset ? UINT64_MAX : offset + size;
  if (wanted > self->length_ && self->growing_) PICKET_CO_TRY(co_await LookAgain(self));
  const uint64_t end = std::min(wanted, self->length_);
  if (offset >= end) co_return Buffer();
  if (self->PieceEnd(offset, end) == end) co_return co_await ReadPiece(self, offset, end - offset);

  std::vector<Task<Result<Buffer>>> pieces;
  for (uint64_t at = offset; at < end;) {
    const uint64_t piece_end = self->PieceEnd(at, end);
    pieces.push_back(ReadPiece(self, at, piece_end - at));
    at = piece_end;
  }
  auto results = co_await WhenAll(&self->env_, std::move(pieces));
  Buffer whole = self->env_.Allocate(end - offset);
  size_t at = 0;
  for (auto& result : results) {
    if (!result) co_return Fail(std::move(result).error());
    std::memcpy(whole.data() + at, result->data(), result->size());
    at += result->size();
  }
  co_return whole;
}

// ---- sequential ------------------------------------------------------------------------------------

void OpenFile::Seek(uint64_t offset) {
  if (offset == position_) return;
  position_ = ahead_end_ = offset;
  ahead_.clear();
  ahead_pieces_ = 1;
}

Task<> OpenFile::Fetch(std::shared_ptr<OpenFile> self, std::shared_ptr<Ahead> piece, uint64_t offset) {
  auto bytes = co_await ReadPiece(self, offset, piece->size);
  piece->arrived.Set(std::move(bytes));
}

void OpenFile::FillAhead(const std::shared_ptr<OpenFile>& self) {
  while (self->ahead_.size() < self->ahead_pieces_ && self->ahead_end_ < self->length_) {
    const uint64_t end = self->PieceEnd(self->ahead_end_, self->length_);
    auto piece = std::make_shared<Ahead>(self->env_, end - self->ahead_end_);
    self->ahead_.push_back(piece);
    self->env_.Spawn(Fetch(self, piece, self->ahead_end_));
    self->ahead_end_ = end;
  }
}

Task<Result<Buffer>> OpenFile::ReadNext(std::shared_ptr<OpenFile> self) {
  if (self->ahead_.empty() && self->position_ >= self->length_ && self->growing_) {
    PICKET_CO_TRY(co_await LookAgain(self));
  }
  FillAhead(self);
  if (self->ahead_.empty()) co_return Buffer();
  auto piece = self->ahead_.front();
  auto bytes = co_await piece->arrived.Wait();
  if (!bytes) {
    self->ahead_.clear();
    self->ahead_end_ = self->position_;
    co_return Fail(std::move(bytes).error());
  }
  self->ahead_.pop_front();
  self->position_ += piece->size;
  self->ahead_pieces_ = std::min(self->ahead_pieces_ * 2, FileReader::kMaxInFlight);
  FillAhead(self);
  co_return std::move(*bytes);
}

}  // namespace picket
