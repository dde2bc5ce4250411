#include "client/cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <ctime>
#include <vector>

#include "common/base/utf8.h"

namespace picket::cli {
namespace {

// The code point of a well-formed sequence.
uint32_t CodePoint(std::string_view sequence) {
  static constexpr uint8_t kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t code = static_cast<uint8_t>(sequence[0]) & kLeadBits[sequence.size()];
  for (char c : sequence.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3F);
  return code;
}

bool IsControl(uint32_t code) {
  const bool c0_or_c1 = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool line_or_direction = code == 0x2028 || code == 0x2029 || (code >= 0x202A && code <= 0x202E) ||
                                 (code >= 0x2066 && code <= 0x2069) || code == 0x200E || code == 0x200F;
  return c0_or_c1 || line_or_direction;
}

std::string Strftime(const tm& when, const char* format) {
  std::array<char, 128> text{};
  const size_t n = strftime(text.data(), text.size(), format, &when);
  return std::string(text.data(), n);
}

constexpr int64_t kNsPerSecond = 1'000'000'000;

int64_t SecondsFloor(int64_t ns) { return ns / kNsPerSecond - (ns % kNsPerSecond < 0 ? 1 : 0); }

}  // namespace

std::string Escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t n = Utf8SequenceLength(text);
    const uint32_t code = n > 0 ? CodePoint(text.substr(0, n)) : 0;
    if (n > 0 && !IsControl(code)) {
      out += text.substr(0, n);
    } else if (n == 1 && (code == '\n' || code == '\t' || code == '\r')) {
      out += code == '\n' ? "\\n" : code == '\t' ? "\\t" : "\\r";
    } else {
      for (char c : text.substr(0, std::max<size_t>(n, 1))) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    }
    text.remove_prefix(std::max<size_t>(n, 1));
  }
  return out;
}

std::string HumanBytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{}", bytes);
  static constexpr std::string_view kUnits = "KMGTPE";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be printed as 1024.0.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == static_cast<double>(static_cast<uint64_t>(value)) && value >= 10;
  return whole ? fmt::format("{:.0f} {}", value, kUnits[unit]) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::optional<uint64_t> ParseBytes(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  std::string unit;
  for (const char* p = end; p != text.data() + text.size(); ++p) {
    if (*p != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  }
  int shift = 0;
  if (!unit.empty() && unit != "b") {
    static constexpr std::string_view kUnits = "kmgtpe";
    const size_t at = kUnits.find(unit[0]);
    const std::string rest = unit.substr(1);
    if (at == std::string_view::npos || (!rest.empty() && rest != "b" && rest != "ib")) return std::nullopt;
    shift = static_cast<int>(at + 1) * 10;
  }
  if (shift > 0 && value > (UINT64_MAX >> shift)) return std::nullopt;
  return value << shift;
}

std::string PermissionText(uint32_t mode) {
  std::string text = "rwxrwxrwx";
  for (int bit = 0; bit < 9; ++bit) {
    if ((mode >> (8 - bit) & 1) == 0) text[static_cast<size_t>(bit)] = '-';
  }
  if (mode & 01000) text[8] = text[8] == 'x' ? 't' : 'T';
  return text;
}

std::string UtcTime(int64_t unix_ns) {
  const int64_t seconds = SecondsFloor(unix_ns);
  const int64_t fraction = unix_ns - seconds * kNsPerSecond;
  std::string text = UtcTime(unix_ns, "%Y-%m-%dT%H:%M:%S");
  if (fraction != 0) text += fmt::format(".{:09}", fraction);
  return text + "Z";
}

std::string UtcTime(int64_t unix_ns, const char* format) {
  const time_t seconds = SecondsFloor(unix_ns);
  tm when{};
  gmtime_r(&seconds, &when);
  return Strftime(when, format);
}

std::string LocalTime(int64_t unix_ns, const char* format) {
  const time_t seconds = SecondsFloor(unix_ns);
  tm when{};
  localtime_r(&seconds, &when);
  return Strftime(when, format);
}

std::string TokenText(uint64_t token) {
  if (token == 0) return "-";
  return fmt::format("{}.{}", token >> 32, token & 0xFFFFFFFF);
}

std::string DurationText(int64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::optional<uint64_t> ParseHexId(std::string_view text) {
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id;
}

std::string HexId(uint64_t id) { return fmt::format("{:016x}", id); }

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace picket::cli
