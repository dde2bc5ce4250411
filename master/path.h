// Absolute paths: parsed once at the edge, then a list of checked names. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/utf8.h"

namespace picket {

inline constexpr size_t kMaxNameBytes = 255;
inline constexpr size_t kMaxPathBytes = 8192;
inline constexpr size_t kMaxPathDepth = 1024;

// One name: 1 to 255 bytes of valid UTF-8 without '/' and NUL, not "." or "..". kInvalidArgument.
// Control characters are allowed: who prints a name on a terminal escapes it.
Status CheckName(std::string_view name);

// `text` in single quotes for a one-line message: control characters and bytes that are not UTF-8
// as \xNN, cut after 300 bytes.
std::string Quoted(std::string_view text);

class Path {
 public:
  // Accepts "/", "/a/b", and normalises "//a///b/" to "/a/b". kInvalidArgument names what is wrong.
  static Result<Path> Parse(std::string_view text);
  // REQUIRES: every name passes CheckName.
  static Path Join(std::vector<std::string> names) {
    Path path;
    path.names_ = std::move(names);
    return path;
  }

  bool is_root() const { return names_.empty(); }
  const std::vector<std::string>& names() const { return names_; }
  std::string_view name() const { return names_.empty() ? std::string_view() : names_.back(); }
  Path Parent() const;  // the root's is the root
  // REQUIRES: the name passes CheckName.
  Path Child(std::string_view name) const {
    Path path = *this;
    path.names_.emplace_back(name);
    return path;
  }
  // True for the path itself and everything below it.
  bool IsWithin(const Path& ancestor) const;
  std::string ToString() const;  // "/a/b"
  std::string Quoted() const { return picket::Quoted(ToString()); }
  bool operator==(const Path&) const = default;

 private:
  std::vector<std::string> names_;
};

}  // namespace picket
