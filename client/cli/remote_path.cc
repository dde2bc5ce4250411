#include "client/cli/remote_path.h"

#include <algorithm>

#include "client/cli/glob.h"

namespace picket::cli {
namespace {

using client::Client;
using client::ErrorKind;
using client::FileStatus;

// Components, split at slashes outside of sets: "[a/b]" is no valid set, so every slash splits.
std::vector<std::string_view> Components(std::string_view path) {
  std::vector<std::string_view> out;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) out.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return out;
}

bool CannotBeThere(const client::Error& error) {
  return error.kind == ErrorKind::kNotFound || error.kind == ErrorKind::kNotDirectory;
}

// Appends what matches components[at...] below `base`. A directory that is not there matches nothing.
client::Result<> MatchBelow(Client& client, const std::string& base, const std::vector<std::string_view>& components,
                            size_t at, std::vector<FileStatus>* out) {
  // Literal components cost no listing.
  std::string directory = base;
  while (at < components.size() && !HasPattern(components[at])) {
    directory = JoinPath(directory, Unescaped(components[at++]));
  }
  if (at == components.size()) {
    auto status = client.Stat(directory);
    if (status) {
      out->push_back(std::move(*status));
    } else if (!CannotBeThere(status.error())) {
      return std::unexpected(status.error());
    }
    return {};
  }
  std::vector<FileStatus> matches;
  auto listed = ForEachEntry(client, directory, [&](FileStatus&& entry) {
    const bool itself = entry.type == client::FileType::kFile && entry.path == directory;
    if (!itself && MatchesPattern(components[at], BaseName(entry.path))) matches.push_back(std::move(entry));
  });
  if (!listed && !CannotBeThere(listed.error())) return listed;
  for (FileStatus& match : matches) {
    if (at + 1 == components.size()) {
      out->push_back(std::move(match));
    } else if (match.type == client::FileType::kDirectory) {
      if (auto below = MatchBelow(client, match.path, components, at + 1, out); !below) return below;
    }
  }
  return {};
}

}  // namespace

std::string ResolvePath(std::string_view text, std::string_view user) {
  static constexpr std::string_view kScheme = "picket://";
  if (text.starts_with(kScheme)) {
    text.remove_prefix(kScheme.size());
    text.remove_prefix(std::min(text.find('/'), text.size()));
    if (text.empty()) text = "/";
  }
  std::vector<std::string_view> names;
  if (!text.starts_with('/')) names = {"user", user};
  for (std::string_view name : Components(text)) {
    if (name == "..") {
      if (!names.empty()) names.pop_back();
    } else if (name != ".") {
      names.push_back(name);
    }
  }
  std::string out;
  for (std::string_view name : names) out.append("/").append(name);
  return out.empty() ? "/" : out;
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  std::string out(directory);
  if (!out.ends_with('/')) out += '/';
  return out.append(name);
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string ParentPath(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : std::string(path.substr(0, slash));
}

bool IsWithin(std::string_view path, std::string_view ancestor) {
  if (ancestor == "/" || path == ancestor) return true;
  return path.starts_with(ancestor) && path[ancestor.size()] == '/';
}

client::Result<> ForEachEntry(Client& client, std::string_view directory,
                              const std::function<void(FileStatus&&)>& visit) {
  std::string after;
  while (true) {
    auto page = client.List(directory, after);
    if (!page) return std::unexpected(page.error());
    if (!page->entries.empty()) after = BaseName(page->entries.back().path);
    const bool more = page->more && !page->entries.empty();
    for (FileStatus& entry : page->entries) visit(std::move(entry));
    if (!more) return {};
  }
}

client::Result<std::vector<FileStatus>> Expand(Client& client, std::string_view argument) {
  std::vector<FileStatus> found;
  const bool pattern = HasPattern(argument);
  if (pattern) {
    for (const std::string& choice : ExpandBraces(argument)) {
      const std::string path = ResolvePath(choice, client.user());
      if (auto matched = MatchBelow(client, "/", Components(path), 0, &found); !matched) {
        return std::unexpected(matched.error());
      }
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    const auto same = [](const auto& a, const auto& b) { return a.path == b.path; };
    found.erase(std::unique(found.begin(), found.end(), same), found.end());
    if (!found.empty()) return found;
  }
  const std::string path = ResolvePath(pattern ? std::string(argument) : Unescaped(argument), client.user());
  auto status = client.Stat(path);
  if (!status) {
    client::Error error = status.error();
    if (pattern && CannotBeThere(error)) error.message = "nothing matches the pattern";
    return std::unexpected(std::move(error));
  }
  found.push_back(std::move(*status));
  return found;
}

}  // namespace picket::cli
