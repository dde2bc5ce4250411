// ReplicaFile: what only reads: recovery after a start, verification, and the bytes for readers.
#include "chunkserver/replica_file.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"

namespace picket::cs {
namespace {

constexpr uint64_t kReadStep = kMaxFramePayload;

}  // namespace

Task<Status> ReplicaFile::Recover() {
  Status opened = co_await OpenFiles();
  if (!opened) {
    if (opened.error().code != Code::kCorrupt && opened.error().code != Code::kNotFound) co_return opened;
    co_await MarkCorrupt(opened.error().message);
    co_return Status();
  }
  auto size = co_await open_->data->Size();
  if (!size) co_return Fail(size.error());
  if (*size < slot_.durable_length) {
    co_await MarkCorrupt("the data file has " + std::to_string(*size) + " bytes, " +
                         std::to_string(slot_.durable_length) + " are promised");
    co_return Status();
  }
  const bool sealed = slot_.state == ReplicaState::kSealed;
  Progress promised;
  promised.length = slot_.durable_length;
  promised.tail_crc = slot_.tail_crc;
  Progress target = promised;
  if (sealed) {
    target.length = slot_.length;
    target.tail_crc = slot_.length % kBlockSize == 0 ? 0 : open_->table[slot_.length / kBlockSize];
  } else {
    Buffer page = Buffer::Allocate(kProgressSize);
    auto n = co_await open_->meta->ReadAt(kProgressOffset, page);
    if (!n) co_return Fail(n.error());
    auto progress = DecodeProgress(page.view().substr(0, *n));
    if (progress && progress->lineage == slot_.lineage && progress->length > slot_.durable_length &&
        progress->length <= slot_.chunk_size) {
      target = *progress;
    }
  }
  if (Status replayed = co_await Replay(&promised, &target); !replayed) {
    if (replayed.error().code != Code::kCorrupt) co_return replayed;
    co_await MarkCorrupt(replayed.error().message);
    co_return Status();
  }
  auto end = co_await VerifiedEnd(promised, target);
  if (!end) {
    if (end.error().code != Code::kCorrupt) co_return Fail(end.error());
    co_await MarkCorrupt(end.error().message);
    co_return Status();
  }
  if (sealed) {
    if (*end < slot_.length) {
      co_await MarkCorrupt("sealed without a sync, and bytes from " + std::to_string(*end) + " on were lost");
      co_return Status();
    }
    auto ticket = co_await slot_lock_.Lock();
    PICKET_CO_TRY(co_await SyncContent(std::max(length_, kBlockSize)));  // the tail's entry counts too
    Slot next = slot_;
    next.durable_length = length_;
    next.tail_crc = TailCrc();
    PICKET_CO_TRY(co_await WriteSlot(open_->meta, std::move(next), true));
    if (redo_) co_await RemoveRedo();
    co_return Status();
  }
  // VerifiedEnd ends at the target, at the durable length, or at a block boundary.
  length_ = *end;
  if (length_ % kBlockSize != 0) {
    open_->table[length_ / kBlockSize] = length_ == target.length ? target.tail_crc : promised.tail_crc;
  }
  if (!redo_) co_return Status();
  if (pending()) PICKET_CO_TRY(co_await SyncUpTo(length_, slot_.lineage));
  co_return co_await DropRedo();
}

Task<Result<uint64_t>> ReplicaFile::VerifiedEnd(Progress promised, Progress target) {
  const uint64_t durable = promised.length;
  const uint64_t first = durable / kBlockSize;
  uint64_t end = durable;
  for (uint64_t at = first * kBlockSize; at < target.length || at < durable;) {
    const uint64_t want = std::min(std::max(target.length, durable) - at, kReadStep);
    Buffer bytes = env_.Allocate(want);
    auto n = co_await open_->data->ReadAt(at, bytes);
    if (!n) co_return Fail(n.error());
    for (uint64_t i = 0; i < want; i += kBlockSize) {
      const uint64_t start = at + i;
      const uint64_t block = start / kBlockSize;
      if (block == first && durable % kBlockSize != 0) {
        const uint64_t size = durable - start;
        const bool good = *n >= i + size && Crc32c(bytes.data() + i, size) == promised.tail_crc;
        if (!good && !PICKET_MUTANT(recover_durable)) {
          co_return Fail(Code::kCorrupt, "the bytes at " + std::to_string(start) +
                                             " below the durable length do not match their checksum");
        }
      }
      if (start + kBlockSize <= durable || target.length <= durable) continue;
      const uint64_t stop = std::min(start + kBlockSize, target.length);
      const uint32_t expected = stop == target.length && stop % kBlockSize != 0 ? target.tail_crc : open_->table[block];
      const bool good = *n >= i + (stop - start) && Crc32c(bytes.data() + i, stop - start) == expected;
      if (!good && !PICKET_MUTANT(recover_verify)) co_return end;
      end = stop;
    }
    at += want;
  }
  co_return end;
}

// ---- reading ---------------------------------------------------------------------------------------

std::vector<uint32_t> ReplicaFile::BlockCrcs() const {
  const auto begin = open_->table.begin();
  return std::vector<uint32_t>(begin, begin + static_cast<ptrdiff_t>(BlocksIn(length_)));
}

Task<Result<Buffer>> ReplicaFile::Read(uint64_t offset, size_t size) {
  FifoLock::Ticket placing;
  // A sync moves blocks into place without the chunk's lock.
  if (pending()) placing = co_await slot_lock_.Lock();
  co_return co_await ReadLocked(offset, size);
}

Task<Result<Buffer>> ReplicaFile::ReadLocked(uint64_t offset, size_t size) {
  PICKET_CHECK(offset + size <= length_);
  auto data = open_->data;
  Buffer bytes = env_.Allocate(size);
  auto n = co_await data->ReadAt(offset, bytes);
  if (!n) co_return Fail(n.error());
  if (*n < size) {
    co_return Fail(Code::kCorrupt, "chunk " + ToString(slot_.chunk) + ": the data file ends at " +
                                       std::to_string(offset + *n) + ", the replica at " + std::to_string(length_));
  }
  bytes = bytes.Slice(0, size);
  if (pending() && !PICKET_MUTANT(overlay_read)) PICKET_CO_TRY(co_await ReadOverwritten(offset, bytes));
  co_return bytes;
}

Task<Result<uint64_t>> ReplicaFile::EqualPrefix(uint64_t length, std::vector<uint32_t> crcs, uint64_t from) {
  PICKET_CHECK(crcs.size() == BlocksIn(length));
  uint64_t equal = from;
  while (equal < length) {
    const uint64_t block = equal / kBlockSize;
    const uint64_t end = std::min(equal + kBlockSize, length);
    if (end > length_) break;
    uint32_t own = open_->table[block];
    if (end % kBlockSize != 0 && end < length_) {
      auto bytes = co_await Read(equal, end - equal);
      if (!bytes) co_return Fail(bytes.error());
      own = Crc32c(bytes->data(), bytes->size());
    }
    if (own != crcs[block]) break;
    equal = end;
  }
  co_return equal;
}

Task<Result<bool>> ReplicaFile::VerifyBlocks(uint64_t first, uint64_t count) {
  const uint64_t last = std::min(first + count, BlocksIn(length_));
  for (uint64_t at = first * kBlockSize; at < std::min(last * kBlockSize, length_); at += kReadStep) {
    const uint64_t stop = std::min({at + kReadStep, last * kBlockSize, length_});
    auto bytes = co_await Read(at, stop - at);
    if (!bytes) {
      if (bytes.error().code == Code::kCorrupt) co_return false;
      co_return Fail(bytes.error());
    }
    for (uint64_t i = 0; i < stop - at; i += kBlockSize) {
      const size_t size = std::min(kBlockSize, stop - at - i);
      if (Crc32c(bytes->data() + i, size) != open_->table[(at + i) / kBlockSize]) co_return false;
    }
  }
  co_return true;
}

Task<Status> ReplicaFile::HasData(uint64_t end) {
  auto data = open_->data;
  auto size = co_await data->Size();
  if (!size) co_return Fail(size.error());
  if (*size < end) {
    co_return Fail(Code::kCorrupt, "chunk " + ToString(slot_.chunk) + ": the data file ends at " +
                                       std::to_string(*size) + ", the replica at " + std::to_string(length_));
  }
  co_return Status();
}

FileSlice ReplicaFile::Slice(uint64_t offset, size_t size) {
  if (!slices_) slices_ = std::make_shared<Slices>(env_);
  ++slices_->count;
  FileSlice slice;
  slice.file = std::shared_ptr<File>(open_->data.get(), [slices = slices_, file = open_->data](File*) {
    if (--slices->count == 0) slices->sent.NotifyAll();
  });
  slice.offset = offset;
  slice.size = size;
  return slice;
}

Task<bool> ReplicaFile::SlicesSent(Mono deadline) {
  auto slices = slices_;
  while (slices && slices->count > 0) {
    const Nanos left = deadline - env_.Now();
    if (left <= 0ns) co_return false;
    (void)co_await slices->sent.WaitFor(left);
  }
  co_return true;
}

}  // namespace picket::cs
