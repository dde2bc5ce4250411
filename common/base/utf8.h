// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, at most U+10FFFF. std only.
#pragma once

#include <cstddef>
#include <string_view>

namespace picket {

// Bytes of the well-formed sequence at the front of `text`; 0 when there is none.
size_t Utf8SequenceLength(std::string_view text);

bool IsUtf8(std::string_view text);

}  // namespace picket
