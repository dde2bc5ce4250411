// The frames a connection has yet to hand to the kernel, and how far it has come. No I/O.
#pragma once

#include <sys/uio.h>

#include <array>
#include <deque>
#include <span>
#include <string>

#include "common/env/net.h"
#include "common/env/posix/frame_codec.h"

namespace picket::posix {

class SendQueue {
 public:
  static constexpr size_t kPiecesMax = 64;

  // What goes out next: pieces of memory for one sendmsg, else bytes of a file, else (both empty)
  // nothing, because the queue is empty or waits for Loaded().
  struct Batch {
    size_t pieces = 0;        // of those given to Next()
    bool file_follows = false;
    const FileSlice* file = nullptr;  // valid until the queue changes
    size_t file_sent = 0;     // bytes of the slice that are out
  };

  void PushPreface();
  // A file slice is not empty. `loading`: the caller reads the file slice itself and hands the bytes to Loaded(), by the ticket
  // returned here.
  uint64_t Push(Frame frame, bool loading);
  void Loaded(uint64_t ticket, Buffer payload);

  Batch Next(std::span<iovec, kPiecesMax> pieces) const;
  // The kernel took so many bytes of the batch.
  void Consume(size_t size);
  void Clear();

  bool empty() const { return items_.empty(); }
  size_t bytes() const { return bytes_; }

 private:
  struct Item {
    std::array<std::byte, kFrameHeadSize> head;
    size_t head_size = 0;
    std::string header;
    Payload payload;
    bool loading = false;
    size_t size() const { return head_size + header.size() + payload.size(); }
  };
  void Push(Item item);

  std::deque<Item> items_;
  uint64_t first_ticket_ = 0;
  size_t sent_ = 0;   // of the first item
  size_t bytes_ = 0;  // of all items, without sent_
};

}  // namespace picket::posix
