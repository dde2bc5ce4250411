// The bytes of a connection (docs/PROTOCOL.md, "Frames and calls"). No I/O: see TcpConn.
//
//   preface, once, from the connecting side: "PICKET", protocol number (2 bytes)
//   frame: magic, header length, payload length, CRC32C of the header (4 bytes each), header, payload
//
// Integers are little-endian. The payload has no checksum here: its owner's CRCs travel in the header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/base/error.h"
#include "common/env/buffer.h"
#include "common/env/net.h"

namespace picket::posix {

inline constexpr uint16_t kProtocolNumber = 1;
inline constexpr size_t kPrefaceSize = 8;
inline constexpr size_t kFrameHeadSize = 16;
inline constexpr uint32_t kFrameMagic = 0x46544b50;  // "PKTF"

std::array<std::byte, kPrefaceSize> EncodePreface();
std::array<std::byte, kFrameHeadSize> EncodeFrameHead(std::string_view header, size_t payload_size);

// Turns received bytes into frames. The caller reads into Spaces(), reports the count with Filled()
// and takes frames with Next() until there is none. Small frames share one buffer and one system
// call; the payload of a large one lands in its final buffer.
class FrameDecoder {
 public:
  using Allocate = std::function<Buffer(size_t)>;
  using Space = std::span<std::byte>;

  // `expect_preface`: on the accepting side.
  FrameDecoder(Allocate allocate, bool expect_preface);

  // Where the next bytes go, in this order; the second may be empty, both never are.
  // REQUIRES: Next() has just returned nothing.
  std::array<Space, 2> Spaces();
  void Filled(size_t size);

  // A frame, nothing (more bytes are needed), or kCorrupt, after which the decoder is of no use.
  Result<std::optional<Frame>> Next();

 private:
  // Bigger wastes a copy of the payload's first part, smaller costs system calls for small frames.
  static constexpr size_t kBufferSize = 16 << 10;

  // A frame whose head is decoded and whose rest has not all come yet.
  struct Partial {
    Partial(size_t header_size, uint32_t header_crc, size_t payload_size);
    std::string header;
    size_t header_filled = 0;
    uint32_t header_crc;
    bool header_checked = false;
    size_t payload_size;
    Buffer payload;  // allocated once the header has proved to be one
    size_t payload_filled = 0;
  };

  size_t buffered() const { return end_ - begin_; }
  size_t TakeBuffered(std::byte* to, size_t size_max);
  Status DecodePreface();
  Status DecodeHead();
  Status CheckHeader();

  const Allocate allocate_;
  bool expect_preface_;
  const std::unique_ptr<std::byte[]> buffer_ = std::make_unique_for_overwrite<std::byte[]>(kBufferSize);
  size_t begin_ = 0;
  size_t end_ = 0;
  std::optional<Partial> partial_;
};

}  // namespace picket::posix
