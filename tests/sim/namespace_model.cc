#include "tests/sim/namespace_model.h"

#include <algorithm>

namespace picket::sim {
namespace {

std::vector<std::string> Split(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    path.remove_prefix(1);
    const size_t slash = std::min(path.find('/'), path.size());
    names.emplace_back(path.substr(0, slash));
    path.remove_prefix(slash);
  }
  return names;
}

}  // namespace

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }
bool IsWithin(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

NamespaceModel::Found NamespaceModel::Walk(std::string_view path) {
  Node* at = &root_;
  for (const std::string& name : Split(path)) {
    if (!at->directory) return {Code::kNotDirectory, nullptr};
    auto it = at->children.find(name);
    if (it == at->children.end()) return {Code::kNotFound, nullptr};
    at = &it->second;
  }
  return {Code::kOk, at};
}

const NamespaceModel::Node* NamespaceModel::Find(const std::string& path) const {
  return const_cast<NamespaceModel*>(this)->Walk(path).node;
}

Code NamespaceModel::Mkdir(const std::string& path, bool parents) {
  const auto names = Split(path);
  Node* at = &root_;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    auto it = at->children.find(names[i]);
    if (it == at->children.end()) {
      if (!last && !parents) return Code::kNotFound;
      at = &at->children[names[i]];
      continue;
    }
    if (!it->second.directory) return last ? Code::kAlreadyExists : Code::kNotDirectory;
    if (last && !parents) return Code::kAlreadyExists;
    at = &it->second;
  }
  return Code::kOk;
}

Code NamespaceModel::Create(const std::string& path, bool overwrite, File file) {
  const Found parent = Walk(ParentOf(path));
  if (parent.code != Code::kOk) return parent.code;
  if (!parent.node->directory) return Code::kNotDirectory;
  auto it = parent.node->children.find(NameOf(path));
  if (it != parent.node->children.end()) {
    if (it->second.directory) return Code::kIsDirectory;
    if (!overwrite) return Code::kAlreadyExists;
  }
  parent.node->children[NameOf(path)] = Node{.directory = false, .file = file};
  return Code::kOk;
}

Code NamespaceModel::Rename(const std::string& from, const std::string& to, bool overwrite) {
  const Found source = Walk(from);
  if (source.code != Code::kOk) return source.code;
  if (from == to) return Code::kInvalidArgument;
  if (IsWithin(to, from)) return source.node->directory ? Code::kInvalidArgument : Code::kNotDirectory;
  const Found parent = Walk(ParentOf(to));
  if (parent.code != Code::kOk) return parent.code;
  if (!parent.node->directory) return Code::kNotDirectory;
  auto target = parent.node->children.find(NameOf(to));
  if (target != parent.node->children.end()) {
    if (target->second.directory || !overwrite) return Code::kAlreadyExists;
    if (source.node->directory) return Code::kNotDirectory;
  }
  Node moved = std::move(*source.node);
  Walk(ParentOf(from)).node->children.erase(NameOf(from));
  Walk(ParentOf(to)).node->children[NameOf(to)] = std::move(moved);
  return Code::kOk;
}

Code NamespaceModel::Remove(const std::string& path, bool recursive) {
  const Found found = Walk(path);
  if (found.code != Code::kOk) return found.code;
  if (found.node->directory && !found.node->children.empty() && !recursive) return Code::kNotEmpty;
  Walk(ParentOf(path)).node->children.erase(NameOf(path));
  return Code::kOk;
}

Code NamespaceModel::SetMode(const std::string& path, uint32_t mode) {
  const Found found = Walk(path);
  if (found.code == Code::kOk) found.node->mode = mode;
  return found.code;
}

bool NamespaceModel::Tainted(const std::string& path) const {
  return std::ranges::any_of(tainted_, [&](const std::string& t) { return IsWithin(path, t) || IsWithin(t, path); });
}

bool NamespaceModel::UnderTaint(const std::string& path) const {
  return std::ranges::any_of(tainted_, [&](const std::string& t) { return IsWithin(path, t); });
}

std::vector<std::string> NamespaceModel::Paths() const {
  std::vector<std::string> paths;
  const auto walk = [&](auto& self, const Node& node, const std::string& prefix) -> void {
    for (auto& [name, child] : node.children) {
      const std::string path = prefix + "/" + name;
      paths.push_back(path);
      self(self, child, path);
    }
  };
  walk(walk, root_, "");
  return paths;
}

}  // namespace picket::sim
