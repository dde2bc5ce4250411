#include "common/env/posix/log_sink.h"

#include <fmt/chrono.h>
#include <spdlog/formatter.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <nlohmann/json.hpp>

namespace picket::posix {
namespace {

constexpr std::string_view kTextNames[] = {"DEBUG", "INFO ", "WARN ", "ERROR"};
constexpr std::string_view kJsonNames[] = {"debug", "info", "warning", "error"};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

LogLevel FromSpdlog(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug: return LogLevel::kDebug;
    case spdlog::level::info: return LogLevel::kInfo;
    case spdlog::level::warn: return LogLevel::kWarning;
    default: return LogLevel::kError;
  }
}

// Names come from users: one with a line break or a terminal's escape must not forge a line.
void AppendPrintable(std::string* out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out->push_back(c);
    } else if (c == '\n') {
      out->append("\\n");
    } else if (c == '\t') {
      out->append("\\t");
    } else {
      fmt::format_to(std::back_inserter(*out), "\\x{:02x}", byte);
    }
  }
}

std::string Quote(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class LineFormatter final : public spdlog::formatter {
 public:
  explicit LineFormatter(LogFormat format) : format_(format) {}
  void format(const spdlog::details::log_msg& m, spdlog::memory_buf_t& out) override {
    const auto ms = std::chrono::floor<std::chrono::milliseconds>(m.time.time_since_epoch()).count();
    const std::string line =
        FormatLogLine(format_, ms, FromSpdlog(m.level), {m.logger_name.data(), m.logger_name.size()},
                      {m.payload.data(), m.payload.size()});
    out.append(line.data(), line.data() + line.size());
    out.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(format_);
  }

 private:
  const LogFormat format_;
};

}  // namespace

std::string FormatLogLine(LogFormat format, int64_t unix_ms, LogLevel level, std::string_view name,
                          std::string_view message) {
  const std::chrono::sys_seconds seconds(std::chrono::seconds(unix_ms / 1000));
  const std::string time =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), unix_ms % 1000);
  const auto index = static_cast<size_t>(level);
  if (format == LogFormat::kJson) {
    return fmt::format(R"({{"time":"{}","level":"{}","name":{},"message":{}}})", time, kJsonNames[index],
                       Quote(name), Quote(message));
  }
  std::string line = fmt::format("{} {} {}: ", time, kTextNames[index], name);
  AppendPrintable(&line, message);
  return line;
}

LogSink::LogSink(std::string name, LogLevel level, LogFormat format)
    : level_(level),
      logger_(std::make_unique<spdlog::logger>(std::move(name), std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_level(ToSpdlog(level));
  logger_->set_formatter(std::make_unique<LineFormatter>(format));
}

LogSink::~LogSink() = default;

void LogSink::Write(LogLevel level, std::string_view message) {
  if (Enabled(level)) logger_->log(ToSpdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace picket::posix
