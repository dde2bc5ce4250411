// Sizes and durations as people write them. Sizes are powers of 1024 (IEC): "64MiB", "1.5GiB", "512".
// Durations are one number and one unit: "500ms", "60s", "5m", "2h", "3d".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/env/task.h"

namespace picket {

// B, KiB, MiB, GiB, TiB, PiB, or the first letter alone in either case, or none (bytes). A fraction must
// come out as whole bytes. Decimal units ("MB") are refused, since half of the world means 1024 by them.
Result<uint64_t> ParseSize(std::string_view text);
// Exact, in the largest unit that divides: "64MiB", "1000B".
std::string FormatSize(uint64_t bytes);
// For people, three digits at most: "1.5 GiB", "640 KiB", "17 B".
std::string FormatSizeRounded(uint64_t bytes);

// us, ms, s, m, h, d; "0" needs no unit.
Result<Nanos> ParseDuration(std::string_view text);
// Exact to the microsecond, in the largest unit that divides: "60s" is "1m".
std::string FormatDuration(Nanos duration);

}  // namespace picket
