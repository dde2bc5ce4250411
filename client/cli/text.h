// How values are spelled for people: sizes, times, modes, names with control characters.
// Pure, except that local times read the time zone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace picket::cli {

// Control characters, invalid UTF-8 and characters that turn the direction of text are written as
// \n, \t or \xNN (each byte), so that a name can neither move the cursor nor end the line.
std::string Escaped(std::string_view text);

// "0", "1023", "1.0 K", "64 M", "1.5 G": powers of 1024, at most four significant places (IEC).
std::string HumanBytes(uint64_t bytes);

// "67108864", "64M", "64 MiB", "1g": powers of 1024. nullopt: not a size, or too large.
std::optional<uint64_t> ParseBytes(std::string_view text);

// "rwxr-xr-x"
std::string PermissionText(uint32_t mode);

// "2026-12-01T11:20:09.123456789Z", without the fraction when it is zero.
std::string UtcTime(int64_t unix_ns);
// `format` as for strftime.
std::string LocalTime(int64_t unix_ns, const char* format);
std::string UtcTime(int64_t unix_ns, const char* format);

// "3.17": epoch and counter of a version or generation; "-" for none.
std::string TokenText(uint64_t token);

// "4 s", "2:05", "1:02:03"
std::string DurationText(int64_t seconds);

// 16 lower-case hex digits.
std::string HexId(uint64_t id);
// nullopt: not exactly such digits.
std::optional<uint64_t> ParseHexId(std::string_view text);

// Edits (insert, delete, replace, swap of neighbours) that turn one word into the other.
int EditDistance(std::string_view a, std::string_view b);

}  // namespace picket::cli
