#include "common/env/posix/frame_codec.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/coding.h"
#include "common/base/crc32c.h"

namespace picket::posix {
namespace {

constexpr char kPrefaceName[] = {'P', 'I', 'C', 'K', 'E', 'T'};

std::string AllocateString(size_t size) {
  std::string s;
  // Not what the function is given: libstdc++ 12 hands it the capacity.
  s.resize_and_overwrite(size, [size](char*, size_t) { return size; });
  return s;
}

}  // namespace

std::array<std::byte, kPrefaceSize> EncodePreface() {
  std::array<std::byte, kPrefaceSize> out;
  std::memcpy(out.data(), kPrefaceName, sizeof kPrefaceName);
  StoreFixed<uint16_t>(out.data() + sizeof kPrefaceName, kProtocolNumber);
  return out;
}

std::array<std::byte, kFrameHeadSize> EncodeFrameHead(std::string_view header, size_t payload_size) {
  std::array<std::byte, kFrameHeadSize> out;
  StoreFixed<uint32_t>(out.data(), kFrameMagic);
  StoreFixed<uint32_t>(out.data() + 4, static_cast<uint32_t>(header.size()));
  StoreFixed<uint32_t>(out.data() + 8, static_cast<uint32_t>(payload_size));
  StoreFixed<uint32_t>(out.data() + 12, Crc32c(header));
  return out;
}

FrameDecoder::Partial::Partial(size_t header_size, uint32_t crc, size_t size)
    : header(AllocateString(header_size)), header_crc(crc), payload_size(size) {}

FrameDecoder::FrameDecoder(Allocate allocate, bool expect_preface)
    : allocate_(std::move(allocate)), expect_preface_(expect_preface) {}

std::array<FrameDecoder::Space, 2> FrameDecoder::Spaces() {
  if (partial_) {
    // Next() has emptied the buffer into the partial frame.
    PICKET_CHECK(buffered() == 0);
    begin_ = end_ = 0;
    const Space rest(buffer_.get(), kBufferSize);
    Partial& p = *partial_;
    if (p.header_filled < p.header.size()) {
      auto* data = reinterpret_cast<std::byte*>(p.header.data());
      return {Space(data + p.header_filled, p.header.size() - p.header_filled), rest};
    }
    return {p.payload.span().subspan(p.payload_filled), rest};
  }
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, buffered());
    end_ -= begin_;
    begin_ = 0;
  }
  return {Space(buffer_.get() + end_, kBufferSize - end_), Space()};
}

void FrameDecoder::Filled(size_t size) {
  if (partial_) {
    Partial& p = *partial_;
    const bool in_header = p.header_filled < p.header.size();
    size_t& filled = in_header ? p.header_filled : p.payload_filled;
    const size_t wanted = (in_header ? p.header.size() : p.payload.size()) - filled;
    const size_t taken = std::min(size, wanted);
    filled += taken;
    size -= taken;
  }
  end_ += size;
  PICKET_CHECK(end_ <= kBufferSize);
}

Result<std::optional<Frame>> FrameDecoder::Next() {
  if (expect_preface_) {
    if (buffered() < kPrefaceSize) return std::nullopt;
    PICKET_TRY(DecodePreface());
  }
  if (!partial_) {
    if (buffered() < kFrameHeadSize) return std::nullopt;
    PICKET_TRY(DecodeHead());
  }
  Partial& p = *partial_;
  p.header_filled += TakeBuffered(reinterpret_cast<std::byte*>(p.header.data()) + p.header_filled,
                                  p.header.size() - p.header_filled);
  if (p.header_filled < p.header.size()) return std::nullopt;
  if (!p.header_checked) PICKET_TRY(CheckHeader());
  if (p.payload_size > 0) {
    p.payload_filled += TakeBuffered(p.payload.data() + p.payload_filled, p.payload_size - p.payload_filled);
    if (p.payload_filled < p.payload_size) return std::nullopt;
  }
  Frame frame(std::move(p.header), p.payload_size > 0 ? Payload(std::move(p.payload)) : Payload());
  partial_.reset();
  return frame;
}

size_t FrameDecoder::TakeBuffered(std::byte* to, size_t size_max) {
  const size_t n = std::min(size_max, buffered());
  if (n > 0) std::memcpy(to, buffer_.get() + begin_, n);
  begin_ += n;
  return n;
}

Status FrameDecoder::DecodePreface() {
  const std::byte* at = buffer_.get() + begin_;
  if (std::memcmp(at, kPrefaceName, sizeof kPrefaceName) != 0) {
    return Fail(Code::kCorrupt, "the peer does not speak Picket's protocol");
  }
  const auto number = LoadFixed<uint16_t>(at + sizeof kPrefaceName);
  if (number != kProtocolNumber) {
    return Fail(Code::kCorrupt, "the peer speaks protocol " + std::to_string(number) + ", this is protocol " +
                                    std::to_string(kProtocolNumber));
  }
  begin_ += kPrefaceSize;
  expect_preface_ = false;
  return {};
}

Status FrameDecoder::DecodeHead() {
  const std::byte* at = buffer_.get() + begin_;
  if (LoadFixed<uint32_t>(at) != kFrameMagic) return Fail(Code::kCorrupt, "bytes that are not a frame");
  const size_t header_size = LoadFixed<uint32_t>(at + 4);
  const size_t payload_size = LoadFixed<uint32_t>(at + 8);
  if (header_size > kMaxFrameHeader || payload_size > kMaxFramePayload) {
    return Fail(Code::kCorrupt, "a frame beyond the limits: header " + std::to_string(header_size) + ", payload " +
                                    std::to_string(payload_size) + " bytes");
  }
  partial_.emplace(header_size, LoadFixed<uint32_t>(at + 12), payload_size);
  begin_ += kFrameHeadSize;
  return {};
}

Status FrameDecoder::CheckHeader() {
  Partial& p = *partial_;
  if (Crc32c(p.header) != p.header_crc) return Fail(Code::kCorrupt, "a frame header does not match its checksum");
  p.header_checked = true;
  if (p.payload_size > 0) p.payload = allocate_(p.payload_size);
  return {};
}

}  // namespace picket::posix
