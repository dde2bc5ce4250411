// What a tree of names must be, operation by operation, for one client that works alone in it. An
// operation whose outcome is unknown taints its paths: the request may still be executed later, so
// nothing is promised about them any more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace picket::sim {

class NamespaceModel {
 public:
  struct File {
    uint64_t size = 0;
    uint64_t content = 0;  // seed of its bytes
  };
  struct Node {
    bool directory = true;
    File file;
    uint32_t mode = 0;
    std::map<std::string, Node> children;
  };

  // Each returns the code that the operation must have, and does it when that is kOk. Paths are absolute,
  // inside of the root, in normal form.
  Code Mkdir(const std::string& path, bool parents);
  Code Create(const std::string& path, bool overwrite, File file);
  Code Rename(const std::string& from, const std::string& to, bool overwrite);
  Code Remove(const std::string& path, bool recursive);
  Code SetMode(const std::string& path, uint32_t mode);
  // Null when missing.
  const Node* Find(const std::string& path) const;

  void Taint(const std::string& path) { tainted_.insert(path); }
  // Nothing is known of it, or of something above or below it.
  bool Tainted(const std::string& path) const;
  // Itself or something above it is tainted: it must not be compared.
  bool UnderTaint(const std::string& path) const;

  const Node& root() const { return root_; }
  // Every path there is, sorted, the root's "" left out.
  std::vector<std::string> Paths() const;

 private:
  struct Found {
    Code code = Code::kOk;  // kNotFound, kNotDirectory
    Node* node = nullptr;
  };
  Found Walk(std::string_view path);

  Node root_;
  std::set<std::string> tainted_;
};

// "/a/b" -> "/a"; "/a" -> "".
std::string ParentOf(const std::string& path);
std::string NameOf(const std::string& path);
// `path` is `root` or below it.
bool IsWithin(std::string_view path, std::string_view root);

}  // namespace picket::sim
