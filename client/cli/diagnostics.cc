#include "client/cli/diagnostics.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "client/cli/text.h"

namespace picket::cli {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

Diagnostics::Diagnostics() : is_terminal_(isatty(STDERR_FILENO) != 0) {}

void Diagnostics::Line(std::string_view text) {
  std::lock_guard lock(mutex_);
  std::string out;
  if (!status_.empty()) out += kClearLine;
  out += Escaped(text);
  out += '\n';
  out += status_;
  Show(out);
}

void Diagnostics::SetStatus(std::string_view text) {
  if (!is_terminal_) return;
  std::lock_guard lock(mutex_);
  if (status_ == text) return;
  status_ = Escaped(text);
  Show(std::string(kClearLine) + status_);
}

int Diagnostics::columns() const {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Diagnostics::Show(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;  // nobody is left to be told
    text.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace picket::cli
