// Paths in the store, as a user writes them: absolute, or relative to /user/<user>; `picket://…/` in
// front is dropped; "//", "." and ".." are resolved by text alone (there are no symbolic links).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "picket/client.h"

namespace picket::cli {

// Absolute and clean: "/", "/a/b". `..` stops at the root.
std::string ResolvePath(std::string_view text, std::string_view user);
// "/a" + "b" → "/a/b"
std::string JoinPath(std::string_view directory, std::string_view name);
// "b" of "/a/b"; "" of "/".
std::string_view BaseName(std::string_view path);
std::string ParentPath(std::string_view path);
// `path` is `ancestor` or below it.
bool IsWithin(std::string_view path, std::string_view ancestor);

// Every entry of a directory (a file: itself), in the order of names, page by page.
client::Result<> ForEachEntry(client::Client& client, std::string_view directory,
                              const std::function<void(client::FileStatus&&)>& visit);

// What an argument names: the path itself, or with patterns everything that matches, sorted. A pattern
// that matches nothing is taken literally, as a shell does. Never empty: kNotFound instead.
client::Result<std::vector<client::FileStatus>> Expand(client::Client& client, std::string_view argument);

}  // namespace picket::cli
