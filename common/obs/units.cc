#include "common/obs/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

namespace picket {
namespace {

constexpr std::array<std::string_view, 6> kSizeUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};

struct DurationUnit {
  std::string_view name;
  int64_t nanos;
};
constexpr std::array<DurationUnit, 6> kDurationUnits = {{{"d", 86'400'000'000'000},
                                                         {"h", 3'600'000'000'000},
                                                         {"m", 60'000'000'000},
                                                         {"s", 1'000'000'000},
                                                         {"ms", 1'000'000},
                                                         {"us", 1'000}}};

// A decimal number at the front of `text`, which keeps the rest: whole part, and the fraction's digits.
struct Number {
  uint64_t whole = 0;
  std::string_view fraction;
};
std::optional<Number> TakeNumber(std::string_view* text) {
  Number n;
  const char* const end = text->data() + text->size();
  auto [rest, ec] = std::from_chars(text->data(), end, n.whole);
  if (ec != std::errc()) return std::nullopt;
  if (rest != end && *rest == '.') {
    const char* const digits = ++rest;
    while (rest != end && *rest >= '0' && *rest <= '9') ++rest;
    if (rest == digits) return std::nullopt;
    n.fraction = {digits, static_cast<size_t>(rest - digits)};
  }
  *text = {rest, static_cast<size_t>(end - rest)};
  return n;
}

// n * unit, if that is a whole number in range.
std::optional<uint64_t> Scale(const Number& n, uint64_t unit, uint64_t limit) {
  if (n.fraction.size() > 12) return std::nullopt;
  unsigned __int128 numerator = 0;
  unsigned __int128 denominator = 1;
  for (const char c : n.fraction) {
    numerator = numerator * 10 + static_cast<unsigned>(c - '0');
    denominator *= 10;
  }
  numerator *= unit;
  if (numerator % denominator != 0) return std::nullopt;
  const unsigned __int128 total = static_cast<unsigned __int128>(n.whole) * unit + numerator / denominator;
  if (total > limit) return std::nullopt;
  return static_cast<uint64_t>(total);
}

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](char x, char y) {
           return lower(x) == lower(y);
         });
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view text) {
  auto bad = [&](std::string_view why) {
    return Fail(Code::kInvalidArgument, fmt::format("\"{}\" is not a size: {}", text, why));
  };
  std::string_view unit = text;
  const auto number = TakeNumber(&unit);
  if (!number) return bad("write a number and a unit, such as 64MiB");
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (size_t i = 0; i < kSizeUnits.size(); ++i) {
    const std::string_view name = kSizeUnits[i];
    if (EqualIgnoringCase(unit, name) || EqualIgnoringCase(unit, name.substr(0, 1)) || (i == 0 && unit.empty())) {
      if (auto bytes = Scale(*number, uint64_t{1} << (10 * i), UINT64_MAX)) return *bytes;
      return bad("it is not a whole number of bytes below 16 EiB");
    }
    if (i > 0 && unit.size() == 2 && EqualIgnoringCase(unit, fmt::format("{}B", name[0]))) {
      return bad(fmt::format("{} may mean 1000 or 1024; write {}", unit, name));
    }
  }
  return bad("the units are B, KiB, MiB, GiB, TiB and PiB");
}

std::string FormatSize(uint64_t bytes) {
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < kSizeUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, kSizeUnits[unit]);
}

std::string FormatSizeRounded(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 999.5 would print as "1000", four digits.
  while (value >= 999.5 && unit + 1 < kSizeUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::string number = fmt::format("{:.{}f}", value, value < 9.95 ? 1 : 0);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return fmt::format("{} {}", number, kSizeUnits[unit]);
}

Result<Nanos> ParseDuration(std::string_view text) {
  auto bad = [&](std::string_view why) {
    return Fail(Code::kInvalidArgument, fmt::format("\"{}\" is not a duration: {}", text, why));
  };
  std::string_view unit = text;
  const auto number = TakeNumber(&unit);
  if (!number) return bad("write a number and a unit, such as 60s");
  if (unit.empty() && number->whole == 0 && number->fraction.empty()) return Nanos(0);
  for (const auto& [name, nanos] : kDurationUnits) {
    if (unit != name) continue;
    if (auto total = Scale(*number, static_cast<uint64_t>(nanos), INT64_MAX)) {
      return Nanos(static_cast<int64_t>(*total));
    }
    return bad("it is longer than 290 years, or finer than a nanosecond");
  }
  return bad("the units are us, ms, s, m, h and d");
}

std::string FormatDuration(Nanos duration) {
  if (duration == Nanos(0)) return "0s";
  for (const auto& [name, nanos] : kDurationUnits) {
    if (duration.count() % nanos == 0) return fmt::format("{}{}", duration.count() / nanos, name);
  }
  return fmt::format("{}us", duration.count() / 1000);
}

}  // namespace picket
