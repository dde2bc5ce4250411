#include "common/base/record_frame.h"

#include "common/base/coding.h"
#include "common/base/crc32c.h"

namespace picket {
namespace {

constexpr std::string_view kRecordMagic = "PRec";
constexpr std::string_view kPaddingMagic = "PPad";
constexpr size_t kChecked = kRecordHeaderSize - 4;

}  // namespace

std::string EncodeRecordHeader(const RecordHeader& h) {
  std::string out(h.padding ? kPaddingMagic : kRecordMagic);
  PutFixed<uint32_t>(&out, h.length);
  PutFixed<uint64_t>(&out, h.client);
  PutFixed<uint64_t>(&out, h.sequence);
  PutFixed<uint32_t>(&out, h.crc);
  PutFixed<uint32_t>(&out, Crc32c(out));
  return out;
}

Result<RecordHeader> DecodeRecordHeader(std::string_view bytes) {
  RecordHeader h;
  const std::string_view magic = bytes.substr(0, kRecordMagic.size());
  h.padding = magic == kPaddingMagic;
  if (!h.padding && magic != kRecordMagic) return Fail(Code::kCorrupt, "no record begins here");
  if (Crc32c(bytes.data(), kChecked) != LoadFixed<uint32_t>(bytes.data() + kChecked)) {
    return Fail(Code::kCorrupt, "a record's header does not match its checksum");
  }
  h.length = LoadFixed<uint32_t>(bytes.data() + 4);
  h.client = LoadFixed<uint64_t>(bytes.data() + 8);
  h.sequence = LoadFixed<uint64_t>(bytes.data() + 16);
  h.crc = LoadFixed<uint32_t>(bytes.data() + 24);
  return h;
}

bool MayBeginRecord(std::string_view bytes) {
  const std::string_view magic = bytes.substr(0, kRecordMagic.size());
  return kRecordMagic.starts_with(magic) || kPaddingMagic.starts_with(magic);
}

std::string MakePadding(uint64_t room) {
  std::string out;
  if (room >= kRecordHeaderSize) {
    RecordHeader h;
    h.padding = true;
    h.length = static_cast<uint32_t>(room - kRecordHeaderSize);
    out = EncodeRecordHeader(h);
  }
  out.resize(room, '\0');
  return out;
}

}  // namespace picket
