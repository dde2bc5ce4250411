#include "common/base/crc32c.h"

#include <isa-l/crc.h>

namespace picket {

uint32_t Crc32c(const void* data, size_t size, uint32_t crc) {
  // ISA-L works on the inverted state and takes an int length.
  auto* p = static_cast<unsigned char*>(const_cast<void*>(data));
  uint32_t state = ~crc;
  while (size > 0) {
    const size_t n = size < (size_t{1} << 30) ? size : size_t{1} << 30;
    state = crc32_iscsi(p, static_cast<int>(n), state);
    p += n;
    size -= n;
  }
  return ~state;
}

}  // namespace picket
