#include "client/cli/output.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "client/cli/exit_code.h"
#include "client/cli/text.h"

namespace picket::cli {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

[[noreturn]] void EndAfterFailedWrite(int error) {
  if (error == EPIPE) {
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
  }
  const std::string line = fmt::format("picket: standard output: {}\n", strerror(error));
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
  _exit(kExitFailure);
}

void WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) EndAfterFailedWrite(errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

Output::Output() : is_terminal_(isatty(STDOUT_FILENO) != 0) {}

void Output::Write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() <= kBufferBytes) {
    buffer_ += bytes;
    return;
  }
  Flush();
  if (bytes.size() >= kBufferBytes) {
    WriteAll(bytes);
  } else {
    buffer_ = bytes;
  }
}

void Output::Flush() {
  std::string bytes;
  bytes.swap(buffer_);
  WriteAll(bytes);
}

void Output::PrintJson(const Json& document) {
  Write(document.dump(is_terminal_ ? 2 : -1, ' ', false, Json::error_handler_t::replace));
  Write("\n");
}

std::string Output::Name(std::string_view name) const { return is_terminal_ ? Escaped(name) : std::string(name); }

}  // namespace picket::cli
