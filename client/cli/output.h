// Standard output, buffered. A reader that has gone away ends the process quietly (SIGPIPE, as with
// coreutils); any other failure to write ends it with a message and kExitFailure.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace picket::cli {

using Json = nlohmann::ordered_json;

class Output {
 public:
  Output();
  ~Output() { Flush(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void Write(std::string_view bytes);
  template <class... Args>
  void Print(fmt::format_string<Args...> format, Args&&... args) {
    Write(fmt::format(format, std::forward<Args>(args)...));
  }
  // One document; indented for a terminal. Names that are not UTF-8 cannot occur, but are replaced.
  void PrintJson(const Json& document);
  void Flush();

  // A name as this output may show it: control characters escaped on a terminal, raw bytes in a pipe.
  std::string Name(std::string_view name) const;
  bool is_terminal() const { return is_terminal_; }

 private:
  const bool is_terminal_;
  std::string buffer_;
};

}  // namespace picket::cli
