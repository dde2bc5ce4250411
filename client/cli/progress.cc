#include "client/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "client/cli/text.h"

namespace picket::cli {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(200);
constexpr size_t kNameColumns = 24;
constexpr int kBarColumnsMin = 10;
constexpr int kBarColumnsMax = 40;

// The tail of a long name says more than its head. Cut between UTF-8 characters.
std::string Shortened(const std::string& name) {
  if (name.size() <= kNameColumns) return name;
  size_t from = name.size() - kNameColumns + 3;
  while (from < name.size() && (static_cast<uint8_t>(name[from]) & 0xC0) == 0x80) ++from;
  return "..." + name.substr(from);
}

}  // namespace

std::string ProgressLine(const std::string& name, uint64_t done_bytes, uint64_t total_bytes, double bytes_per_second,
                         int columns) {
  const std::string rate = HumanBytes(static_cast<uint64_t>(bytes_per_second)) + "B/s";
  if (total_bytes == 0) return fmt::format("{}  {}B  {}", Shortened(name), HumanBytes(done_bytes), rate);

  const double share = std::min(1.0, static_cast<double>(done_bytes) / static_cast<double>(total_bytes));
  std::string left = "-";
  if (bytes_per_second >= 1) {
    const uint64_t bytes_left = total_bytes - std::min(done_bytes, total_bytes);
    left = DurationText(static_cast<int64_t>(static_cast<double>(bytes_left) / bytes_per_second + 0.5));
  }
  const std::string head = fmt::format("{}  {:3.0f}%", Shortened(name), std::floor(share * 100));
  const std::string tail =
      fmt::format("{}B / {}B  {}  {} left", HumanBytes(done_bytes), HumanBytes(total_bytes), rate, left);
  const int room = std::min(columns - static_cast<int>(head.size() + tail.size()) - 7, kBarColumnsMax);
  if (room < kBarColumnsMin) return fmt::format("{}  {}", head, tail);
  const int filled = static_cast<int>(share * room);
  std::string bar(static_cast<size_t>(filled), '=');
  if (filled < room) bar += '>';
  bar.resize(static_cast<size_t>(room), ' ');
  return fmt::format("{}  [{}]  {}", head, bar, tail);
}

Progress::Progress(Diagnostics& diagnostics) : diagnostics_(diagnostics) {
  if (diagnostics.is_terminal()) painter_ = std::jthread([this](const std::stop_token& stop) { Draw(stop); });
}

Progress::~Progress() {
  painter_.request_stop();
  if (painter_.joinable()) painter_.join();
  diagnostics_.SetStatus("");
}

void Progress::SetName(std::string name) {
  std::lock_guard lock(mutex_);
  name_ = std::move(name);
}

void Progress::Draw(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_time = Clock::now();
  uint64_t last_bytes = 0;
  double rate = 0;
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, stop, kPeriod, [&stop] { return stop.stop_requested(); })) {
    const Clock::time_point now = Clock::now();
    const uint64_t bytes = done_bytes_;
    const double seconds = std::chrono::duration<double>(now - last_time).count();
    const double latest = static_cast<double>(bytes - last_bytes) / seconds;
    // Smoothed over about two seconds, so that the time left can be read.
    rate = rate == 0 ? latest : rate * 0.9 + latest * 0.1;
    last_time = now;
    last_bytes = bytes;
    diagnostics_.SetStatus(ProgressLine(name_, bytes, total_bytes_, rate, diagnostics_.columns()));
  }
}

}  // namespace picket::cli
