// Standard error: whole lines from any thread, and one status line (a progress bar) below them that is
// cleared before a line is written. Text is escaped, so a message is one line whatever a name holds.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace picket::cli {

class Diagnostics {
 public:
  Diagnostics();
  void Line(std::string_view text);
  // Shown on a terminal only; empty: none.
  void SetStatus(std::string_view text);
  bool is_terminal() const { return is_terminal_; }
  int columns() const;

 private:
  void Show(std::string_view text);

  const bool is_terminal_;
  std::mutex mutex_;
  std::string status_;  // what is on the screen's last line
};

}  // namespace picket::cli
