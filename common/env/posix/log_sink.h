// Where log lines go: stderr, one record per line whatever it contains, times in UTC.
//   text: 2026-12-01T09:02:10.123Z INFO  master: chunk 1f sealed
//   json: {"time":"2026-12-01T09:02:10.123Z","level":"info","name":"master","message":"chunk 1f sealed"}
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/env/env.h"

namespace spdlog {
class logger;
}

namespace picket::posix {

enum class LogFormat : uint8_t { kText, kJson };

// Any thread.
class LogSink {
 public:
  // `name` says who writes: the role, and its id where there is one.
  LogSink(std::string name, LogLevel level, LogFormat format);
  ~LogSink();

  bool Enabled(LogLevel level) const { return level >= level_; }
  void Write(LogLevel level, std::string_view message);

 private:
  const LogLevel level_;
  std::unique_ptr<spdlog::logger> logger_;
};

// One line, without its end: for LogSink and its test.
std::string FormatLogLine(LogFormat format, int64_t unix_ms, LogLevel level, std::string_view name,
                          std::string_view message);

}  // namespace picket::posix
