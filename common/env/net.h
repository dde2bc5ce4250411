// The network as product code sees it: connections that carry frames. Request ids, deadlines,
// retries and reconnects are product code above it (common/rpc), and therefore simulated.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "common/base/error.h"
#include "common/env/buffer.h"
#include "common/env/fs.h"
#include "common/env/task.h"

namespace picket {

struct Endpoint {
  std::string host;   // name or address; the simulator's nodes are "node-<n>"
  uint16_t port = 0;
  Endpoint() = default;
  Endpoint(std::string h, uint16_t p) : host(std::move(h)), port(p) {}
  auto operator<=>(const Endpoint&) const = default;
  std::string ToString() const;  // "host:port", "[v6]:port"
};
// Accepts "host:port", "[v6]:port", and, with default_port != 0, a bare host.
Result<Endpoint> ParseEndpoint(std::string_view text, uint16_t default_port = 0);

// Bytes of a file that production hands to the kernel (sendfile) without reading them.
// The file must hold all `size` bytes and must not change until the frame is sent.
struct FileSlice {
  std::shared_ptr<File> file;
  uint64_t offset = 0;
  size_t size = 0;
};

// The raw part of a frame: nothing, a counted buffer, or (sending only) a file slice.
class Payload {
 public:
  Payload() = default;
  Payload(Buffer buffer) : data_(std::move(buffer)) {}       // NOLINT: implicit by intent
  Payload(FileSlice slice) : data_(std::move(slice)) {}      // NOLINT
  size_t size() const;
  // The bytes of a buffer payload; empty when there are none. REQUIRES: not a file slice.
  Buffer buffer() const;
  const FileSlice* file() const { return std::get_if<FileSlice>(&data_); }

 private:
  std::variant<std::monostate, Buffer, FileSlice> data_;
};

struct Frame {
  std::string header;  // a serialised message, at most kMaxFrameHeader bytes
  Payload payload;     // at most kMaxFramePayload bytes; always a buffer when received
  Frame() = default;
  Frame(std::string h, Payload p) : header(std::move(h)), payload(std::move(p)) {}
};

inline constexpr size_t kMaxFrameHeader = 4 << 20;
inline constexpr size_t kMaxFramePayload = 1 << 20;  // no packet above 1 MiB (design §9)

// One connection. FIFO in each direction; a break loses a suffix, never a middle. Owned by its
// creator, must not outlive the environment.
class FrameConn {
 public:
  virtual ~FrameConn() = default;  // closes
  // Queues a frame; never blocks. False once the connection is broken. True does not mean delivered.
  virtual bool Send(Frame frame) = 0;
  // Bytes queued and not yet handed to the kernel: the back-pressure signal.
  virtual size_t QueuedBytes() const = 0;
  // Returns when QueuedBytes() <= limit or the connection is broken. One waiter at a time is enough
  // for one reader loop; several are allowed.
  virtual Task<> Drained(size_t limit) = 0;
  // The next frame; after the first error always that error. At most one outstanding call.
  // kConnectionLost for a closed or reset connection, kCorrupt for a frame that is not one.
  virtual Task<Result<Frame>> Recv() = 0;
  virtual void Close() = 0;  // idempotent; a pending Recv ends with kConnectionLost
  virtual std::string Peer() const = 0;  // for messages only
};

class Listener {
 public:
  virtual ~Listener() = default;  // stops listening; a pending Accept ends with an error
  virtual Task<Result<std::unique_ptr<FrameConn>>> Accept() = 0;
  virtual uint16_t port() const = 0;  // the real one, when 0 was asked for
  virtual void Close() = 0;
};

class Net {
 public:
  virtual ~Net() = default;
  virtual Result<std::unique_ptr<Listener>> Listen(Endpoint at) = 0;
  // kUnavailable: refused or no such host; kDeadlineExceeded: no answer within `timeout`.
  virtual Task<Result<std::unique_ptr<FrameConn>>> Connect(Endpoint to, Nanos timeout) = 0;
};

}  // namespace picket
