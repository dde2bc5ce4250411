#include "client/cli/demo/scenes.h"

#include <fmt/format.h>

namespace picket::cli::demo {

Result<std::string> ReadFile(Stage& stage, const std::string& path) {
  constexpr size_t kBytesMax = 64 << 10;
  auto reader = stage.client().Open(path);
  if (!reader) return Fail(Of(reader.error()));
  std::string content(kBytesMax, '\0');
  const auto n = (*reader)->ReadAt(0, content.data(), content.size());
  if (!n) return Fail(Of(n.error()));
  content.resize(*n);
  return content;
}

Status ExpectRefusal(Story& story, std::string_view who, std::string_view where, const Status& answer, Code code) {
  if (answer)
    return Fail(NotAsTold(fmt::format("{} should have been refused with {}, and was not", who, CodeName(code))));
  if (answer.error().code != code) {
    return Fail(NotAsTold(
        fmt::format("{} should have been refused with {}, got: {}", who, CodeName(code), answer.error().ToString())));
  }
  story.Refused(who, where, answer.error());
  return {};
}

}  // namespace picket::cli::demo
