#include "common/env/posix/send_queue.h"

#include <algorithm>

#include "common/base/check.h"

namespace picket::posix {

void SendQueue::PushPreface() {
  const auto preface = EncodePreface();
  Item item;
  std::copy(preface.begin(), preface.end(), item.head.begin());
  item.head_size = preface.size();
  Push(std::move(item));
}

uint64_t SendQueue::Push(Frame frame, bool loading) {
  PICKET_CHECK(frame.payload.file() == nullptr || frame.payload.size() > 0);
  Item item;
  item.head = EncodeFrameHead(frame.header, frame.payload.size());
  item.head_size = item.head.size();
  item.header = std::move(frame.header);
  item.payload = std::move(frame.payload);
  item.loading = loading;
  Push(std::move(item));
  return first_ticket_ + items_.size() - 1;
}

void SendQueue::Push(Item item) {
  bytes_ += item.size();
  items_.push_back(std::move(item));
}

void SendQueue::Loaded(uint64_t ticket, Buffer payload) {
  PICKET_CHECK(ticket >= first_ticket_ && ticket - first_ticket_ < items_.size());
  Item& item = items_[ticket - first_ticket_];
  PICKET_CHECK(item.loading && item.payload.size() == payload.size());
  item.payload = Payload(std::move(payload));
  item.loading = false;
}

SendQueue::Batch SendQueue::Next(std::span<iovec, kPiecesMax> pieces) const {
  Batch batch;
  size_t skip = sent_;
  auto add = [&](const void* data, size_t size) {
    const size_t skipped = std::min(skip, size);
    skip -= skipped;
    if (skipped < size) {
      pieces[batch.pieces++] = {static_cast<char*>(const_cast<void*>(data)) + skipped, size - skipped};
    }
  };
  for (const Item& item : items_) {
    if (batch.pieces + 3 > pieces.size()) break;
    add(item.head.data(), item.head_size);
    add(item.header.data(), item.header.size());
    if (const FileSlice* file = item.payload.file()) {
      if (item.loading) break;
      batch.file_follows = batch.pieces > 0;
      if (!batch.file_follows) {
        batch.file = file;
        batch.file_sent = skip;
      }
      break;
    }
    const Buffer payload = item.payload.buffer();
    add(payload.data(), payload.size());
  }
  return batch;
}

void SendQueue::Consume(size_t size) {
  PICKET_CHECK(size <= bytes_);
  bytes_ -= size;
  sent_ += size;
  while (!items_.empty() && sent_ >= items_.front().size()) {
    sent_ -= items_.front().size();
    items_.pop_front();
    ++first_ticket_;
  }
}

void SendQueue::Clear() {
  first_ticket_ += items_.size();
  items_.clear();
  sent_ = bytes_ = 0;
}

}  // namespace picket::posix
