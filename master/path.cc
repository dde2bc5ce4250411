#include "master/path.h"

#include <fmt/format.h>

#include <algorithm>

namespace picket {
namespace {

constexpr size_t kMaxQuotedBytes = 300;

}  // namespace

std::string Quoted(std::string_view text) {
  std::string out = "'";
  while (!text.empty()) {
    if (out.size() > kMaxQuotedBytes) return out + "…'";
    const size_t n = Utf8SequenceLength(text);
    const auto b = static_cast<unsigned char>(text.front());
    // C1 controls (U+0080 to U+009F) drive terminals too.
    const bool c1 = n == 2 && b == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
    if (n == 0 || b < 0x20 || b == 0x7F || c1) {
      for (size_t i = 0; i < std::max<size_t>(n, 1); ++i) {
        out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[i]));
      }
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(std::max<size_t>(n, 1));
  }
  return out + "'";
}

Status CheckName(std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    return Fail(Code::kInvalidArgument, fmt::format("the name {} {}", Quoted(name), why));
  };
  if (name.empty()) return Fail(Code::kInvalidArgument, "a name is empty");
  if (name.size() > kMaxNameBytes) {
    return refuse(fmt::format("has {} bytes; the limit is {}", name.size(), kMaxNameBytes));
  }
  if (name == "." || name == "..") return refuse("is not allowed: paths are absolute, without '.' and '..'");
  if (name.contains('/')) return refuse("contains a '/'");
  if (name.contains('\0')) return refuse("contains a NUL byte");
  if (!IsUtf8(name)) return refuse("is not valid UTF-8");
  return {};
}

Result<Path> Path::Parse(std::string_view text) {
  if (text.empty()) return Fail(Code::kInvalidArgument, "the path is empty");
  if (text.front() != '/') {
    return Fail(Code::kInvalidArgument, fmt::format("the path {} is not absolute: it must begin with '/'",
                                                    picket::Quoted(text)));
  }
  if (text.size() > kMaxPathBytes) {
    return Fail(Code::kInvalidArgument, fmt::format("the path {} has {} bytes; the limit is {}", picket::Quoted(text),
                                                    text.size(), kMaxPathBytes));
  }
  Path path;
  while (!text.empty()) {
    const size_t slash = std::min(text.find('/'), text.size());
    const std::string_view name = text.substr(0, slash);
    text.remove_prefix(std::min(slash + 1, text.size()));
    if (name.empty()) continue;
    PICKET_TRY(CheckName(name));
    if (path.names_.size() == kMaxPathDepth) {
      return Fail(Code::kInvalidArgument, fmt::format("the path has more than {} components", kMaxPathDepth));
    }
    path.names_.emplace_back(name);
  }
  return path;
}

Path Path::Parent() const {
  Path parent = *this;
  if (!parent.names_.empty()) parent.names_.pop_back();
  return parent;
}

bool Path::IsWithin(const Path& ancestor) const {
  return ancestor.names_.size() <= names_.size() &&
         std::equal(ancestor.names_.begin(), ancestor.names_.end(), names_.begin());
}

std::string Path::ToString() const {
  if (names_.empty()) return "/";
  std::string out;
  for (const std::string& name : names_) out.append("/").append(name);
  return out;
}

}  // namespace picket
