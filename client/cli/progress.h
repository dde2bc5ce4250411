// The progress of a transfer: bytes done, rate and time left, drawn five times a second on a terminal
// and not at all elsewhere. Bytes may be added from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "client/cli/diagnostics.h"

namespace picket::cli {

// "name  42%  [=====>      ]  1.2 G / 3.0 G  512 M/s  0:04": at most `columns` wide. total_bytes 0: unknown.
std::string ProgressLine(const std::string& name, uint64_t done_bytes, uint64_t total_bytes, double bytes_per_second,
                         int columns);

class Progress {
 public:
  explicit Progress(Diagnostics& diagnostics);
  ~Progress();

  void AddTotal(uint64_t bytes) { total_bytes_ += bytes; }
  void AddDone(uint64_t bytes) { done_bytes_ += bytes; }
  void SetName(std::string name);

 private:
  void Draw(const std::stop_token& stop);

  Diagnostics& diagnostics_;
  std::atomic<uint64_t> total_bytes_ = 0;
  std::atomic<uint64_t> done_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::string name_;
  std::jthread painter_;  // last: it uses the members above
};

}  // namespace picket::cli
