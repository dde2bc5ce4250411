// Clients make, rename, list and delete names. Each has a tree of its own, compared with a model after
// every operation; and all of them race for the same names in a shared directory, where exactly one may
// win. An operation without a definite outcome makes its paths unknown, and the client goes on elsewhere.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

#include "tests/sim/namespace_model.h"
#include "tests/sim/pattern.h"
#include "tests/sim/workload.h"

namespace picket::sim {
namespace {

template <class T>
Code CodeOf(const Result<T>& r) {
  return r ? Code::kOk : r.error().code;
}

class NamespaceMix final : public Workload {
 public:
  explicit NamespaceMix(const Surroundings& s) : in_(s), rng_(s.world->Stream("namespace_mix")), trees_(s.clients) {
    for (size_t i = 0; i < s.clients; ++i) trees_[i].client = i;
  }

  Task<> Work(Env* env, FileSystem* fs, size_t client) override;
  Task<> Verify(Env* env, FileSystem* fs) override;
  std::string Summary() const override {
    return fmt::format("operations={} unknown={} races={} won={}", operations_, unknown_, races_.size(), Winners());
  }

 private:
  // One client's work; `touched` are the paths of the operation under way, unknown when the client dies.
  struct Tree {
    size_t client = 0;
    NamespaceModel model;
    std::string root;  // "": a new one is needed
    uint64_t roots = 0;
    uint64_t in_root = 0;
    std::vector<std::string> touched;
    uint64_t next_race = 0;
    std::string racing;  // the side of a race this client is in
    std::set<uint64_t> removals;
  };
  // Everybody tries to do what only one can.
  struct Race {
    size_t winners = 0;
    size_t losers = 0;
    size_t unknown = 0;
    size_t tried() const { return winners + losers + unknown; }
  };

  static constexpr size_t kMaxOperations = 1200;  // of one run: bounds its time
  static constexpr size_t kOperationsPerRoot = 80;

  size_t Winners() const {
    size_t n = 0;
    for (auto& [name, race] : races_) n += race.winners;
    return n;
  }
  std::string DrawPath(const Tree& tree);
  void Fail(const Tree& tree, const std::string& operation, const std::string& why) {
    in_.world->Fail("namespace", fmt::format("client {}: {}: {}", tree.client, operation, why));
  }
  void Begin(Tree* tree, std::vector<std::string> touched) {
    ++operations_;
    ++tree->in_root;
    tree->touched = std::move(touched);
  }
  void Unknown(Tree* tree);
  // The operation has ended: the model does it too and must come to the same.
  void End(Tree* tree, const std::string& operation, Code got, const std::function<Code(NamespaceModel&)>& apply);

  Task<> NewRoot(FileSystem* fs, Tree* tree);
  Task<> Change(FileSystem* fs, Tree* tree);
  Task<> CreateFile(FileSystem* fs, Tree* tree);
  Task<> Look(FileSystem* fs, Tree* tree);
  Task<> CompareDirectory(FileSystem* fs, Tree* tree, std::string path, bool must);
  Task<> CompareFile(FileSystem* fs, Tree* tree, std::string path);
  Task<> RunRace(FileSystem* fs, Tree* tree);
  void EndRace(Tree* tree, Code got, Code lost);

  const Surroundings in_;
  Rng rng_;
  std::vector<Tree> trees_;
  std::map<std::string, Race> races_;  // "make 7", "remove 7"
  uint64_t operations_ = 0;
  uint64_t unknown_ = 0;
};

std::string NamespaceMix::DrawPath(const Tree& tree) {
  std::string path = tree.root;
  const uint64_t depth = 1 + rng_.Below(3);
  for (uint64_t i = 0; i < depth; ++i) path += fmt::format("/{}", static_cast<char>('a' + rng_.Below(5)));
  return path;
}

void NamespaceMix::Unknown(Tree* tree) {
  ++unknown_;
  for (auto& path : tree->touched) tree->model.Taint(path);
  tree->touched.clear();
  tree->root.clear();
}

void NamespaceMix::End(Tree* tree, const std::string& operation, Code got,
                       const std::function<Code(NamespaceModel&)>& apply) {
  if (FaultsExplain(got)) return Unknown(tree);
  tree->touched.clear();
  const Code want = apply(tree->model);
  if (got != want) Fail(*tree, operation, fmt::format("{}, should be {}", CodeName(got), CodeName(want)));
}

Task<> NamespaceMix::Work(Env* env, FileSystem* fs, size_t client) {
  Tree* tree = &trees_[client];
  if (!tree->touched.empty()) Unknown(tree);  // the client died over it
  if (!tree->racing.empty()) EndRace(tree, Code::kUnavailable, Code::kOk);
  while (!stopping() && operations_ < kMaxOperations) {
    if (tree->root.empty() || tree->in_root >= kOperationsPerRoot) {
      co_await NewRoot(fs, tree);
    } else {
      const uint64_t pick = rng_.Below(100);
      if (pick < 60) {
        co_await Change(fs, tree);
      } else if (pick < 72) {
        co_await CreateFile(fs, tree);
      } else if (pick < 90) {
        co_await Look(fs, tree);
      } else {
        co_await RunRace(fs, tree);
      }
    }
    co_await env->Sleep(std::chrono::milliseconds(rng_.Below(rng_.Chance(0.2) ? 1000 : 50)));
  }
}

Task<> NamespaceMix::NewRoot(FileSystem* fs, Tree* tree) {
  const std::string root = fmt::format("/t{}/r{}", tree->client, tree->roots++);
  Begin(tree, {root});
  auto made = co_await fs->Mkdir(root, true, 0755);
  End(tree, "mkdir -p " + root, CodeOf(made), [&](NamespaceModel& m) { return m.Mkdir(root, true); });
  if (!made) co_return;
  tree->root = root;
  tree->in_root = 0;
}

Task<> NamespaceMix::Change(FileSystem* fs, Tree* tree) {
  const std::string a = DrawPath(*tree);
  const std::string b = DrawPath(*tree);
  const bool flag = rng_.Chance(0.5);
  switch (rng_.Below(6)) {
    case 0:
    case 1: {
      // The first missing directory is what it makes.
      std::string touched = a;
      while (flag && !tree->model.Find(ParentOf(touched))) touched = ParentOf(touched);
      Begin(tree, {touched});
      auto r = co_await fs->Mkdir(a, flag, 0755);
      End(tree, fmt::format("mkdir {}{}", flag ? "-p " : "", a), CodeOf(r),
          [&](NamespaceModel& m) { return m.Mkdir(a, flag); });
      co_return;
    }
    case 2:
    case 3: {
      Begin(tree, {a, b});
      auto r = co_await fs->Rename(a, b, flag);
      End(tree, fmt::format("rename {} {}{}", a, b, flag ? " (overwrite)" : ""), CodeOf(r),
          [&](NamespaceModel& m) { return m.Rename(a, b, flag); });
      co_return;
    }
    case 4: {
      Begin(tree, {a});
      auto r = co_await fs->Remove(a, flag, rng_.Chance(0.5));
      End(tree, fmt::format("remove {}{}", flag ? "-r " : "", a), CodeOf(r),
          [&](NamespaceModel& m) { return m.Remove(a, flag); });
      co_return;
    }
    default: {
      const auto mode = static_cast<uint32_t>(rng_.Below(0777));
      Begin(tree, {a});
      auto r = co_await fs->SetMode(a, mode);
      End(tree, "chmod " + a, CodeOf(r), [&](NamespaceModel& m) { return m.SetMode(a, mode); });
      co_return;
    }
  }
}

// Create, perhaps some bytes, close: only all of it together is a file.
Task<> NamespaceMix::CreateFile(FileSystem* fs, Tree* tree) {
  const std::string path = DrawPath(*tree);
  const NamespaceModel::File file{.size = rng_.Chance(0.3) ? 1 + rng_.Below(3000) : 0, .content = rng_.Next()};
  CreateFileOptions options;
  options.overwrite = rng_.Chance(0.5);
  options.chunk_size = 1 << 20;
  const std::string operation = fmt::format("create {}{}", path, options.overwrite ? " (overwrite)" : "");
  Begin(tree, {path});
  auto writer = co_await fs->Create(path, options);
  Code got = CodeOf(writer);
  if (writer) {
    Status written;
    if (file.size > 0) {
      Buffer bytes = PatternBuffer(file.content, 0, file.size);
      written = co_await (*writer)->Write(bytes);
    }
    if (written) {
      auto closed = co_await (*writer)->Close();
      got = CodeOf(closed);
    } else {
      got = CodeOf(written);
    }
    // It exists, but not as this client wants it.
    if (got != Code::kOk && !FaultsExplain(got)) Fail(*tree, operation, fmt::format("write or close: {}", CodeName(got)));
  }
  End(tree, operation, got, [&](NamespaceModel& m) { return m.Create(path, options.overwrite, file); });
}

Task<> NamespaceMix::Look(FileSystem* fs, Tree* tree) {
  const std::string path = DrawPath(*tree);
  ++operations_;
  auto status = co_await fs->Stat(path);
  if (FaultsExplain(CodeOf(status))) co_return;
  const NamespaceModel::Node* node = tree->model.Find(path);
  if ((node != nullptr) != status.has_value()) {
    Fail(*tree, "stat " + path, fmt::format("{}, but it {}", CodeName(CodeOf(status)), node ? "exists" : "does not"));
    co_return;
  }
  if (node == nullptr) co_return;
  if (node->directory != (status->type() == proto::DIRECTORY)) Fail(*tree, "stat " + path, "another type");
  if (node->directory) {
    co_await CompareDirectory(fs, tree, path, false);
  } else {
    if (status->length() != node->file.size) {
      Fail(*tree, "stat " + path, fmt::format("length {}, should be {}", status->length(), node->file.size));
    }
    co_await CompareFile(fs, tree, path);
  }
}

Task<> NamespaceMix::CompareDirectory(FileSystem* fs, Tree* tree, std::string path, bool must) {
  std::map<std::string, bool> listed;  // name -> is a directory
  std::string after;
  const auto limit = static_cast<uint32_t>(1 + rng_.Below(4));
  for (;;) {
    auto page = co_await fs->List(path, after, limit);
    if (!page) {
      if (must || !FaultsExplain(page.error().code)) Fail(*tree, "list " + path, page.error().ToString());
      co_return;
    }
    for (const auto& entry : page->entries()) {
      if (!after.empty() && entry.name() <= after) Fail(*tree, "list " + path, "not in order");
      after = entry.name();
      listed[entry.name()] = entry.type() == proto::DIRECTORY;
    }
    if (!page->more()) break;
    if (page->entries().empty()) {
      Fail(*tree, "list " + path, "an empty page that is not the last");
      co_return;
    }
  }
  const NamespaceModel::Node* node = tree->model.Find(path);
  for (auto& [name, child] : node->children) {
    if (tree->model.UnderTaint(path + "/" + name)) continue;
    auto it = listed.find(name);
    if (it == listed.end()) {
      Fail(*tree, "list " + path, name + " is missing");
    } else if (it->second != child.directory) {
      Fail(*tree, "list " + path, name + " has another type");
    }
  }
  for (auto& [name, directory] : listed) {
    if (!node->children.contains(name) && !tree->model.UnderTaint(path + "/" + name)) {
      Fail(*tree, "list " + path, name + " should not exist");
    }
  }
}

Task<> NamespaceMix::CompareFile(FileSystem* fs, Tree* tree, std::string path) {
  const NamespaceModel::File file = tree->model.Find(path)->file;
  auto reader = co_await fs->Open(path);
  if (!reader) co_return;
  auto bytes = co_await (*reader)->ReadAt(0, file.size + 1);
  if (!bytes) co_return;
  if (bytes->size() != file.size) {
    Fail(*tree, "read " + path, fmt::format("{} bytes, should be {}", bytes->size(), file.size));
  } else if (PatternDiffers(file.content, 0, bytes->span())) {
    Fail(*tree, "read " + path, "other bytes than were written");
  }
}

Task<> NamespaceMix::RunRace(FileSystem* fs, Tree* tree) {
  // A name that everybody has tried to make may be raced for once more, to remove it.
  for (uint64_t k = 0; k < tree->next_race && rng_.Chance(0.5); ++k) {
    const Race& made = races_["make " + std::to_string(k)];
    if (made.tried() < in_.clients || made.unknown > 0 || !tree->removals.insert(k).second) continue;
    tree->racing = "remove " + std::to_string(k);
    ++operations_;
    auto r = co_await fs->Remove(fmt::format("/shared/n{}", k), true, true);
    EndRace(tree, CodeOf(r), Code::kNotFound);
    co_return;
  }
  const uint64_t k = tree->next_race++;
  const std::string name = fmt::format("/shared/n{}", k);
  tree->racing = "make " + std::to_string(k);
  ++operations_;
  auto shared = co_await fs->Mkdir("/shared", true, 0755);
  if (!shared) {
    EndRace(tree, CodeOf(shared), Code::kOk);
    co_return;
  }
  if (k % 3 == 0) {
    auto r = co_await fs->Mkdir(name, false, 0755);
    EndRace(tree, CodeOf(r), Code::kAlreadyExists);
  } else if (k % 3 == 1) {
    auto r = co_await fs->Create(name, CreateFileOptions());
    Code got = CodeOf(r);
    if (r) {
      auto closed = co_await (*r)->Close();
      // The name is taken, whatever comes of the close.
      if (!closed && !FaultsExplain(closed.error().code)) got = closed.error().code;
    }
    EndRace(tree, got, Code::kAlreadyExists);
  } else {
    const std::string mine = fmt::format("/shared/from-c{}-{}", tree->client, k);
    auto source = co_await fs->Mkdir(mine, false, 0755);
    if (!source) {
      EndRace(tree, CodeOf(source), Code::kOk);
      co_return;
    }
    auto r = co_await fs->Rename(mine, name, false);
    EndRace(tree, CodeOf(r), Code::kAlreadyExists);
  }
}

void NamespaceMix::EndRace(Tree* tree, Code got, Code lost) {
  const std::string name = std::exchange(tree->racing, {});
  Race& race = races_[name];
  if (FaultsExplain(got)) {
    ++race.unknown;
  } else if (got == Code::kOk) {
    ++race.winners;
  } else if (got == lost) {
    ++race.losers;
  } else {
    Fail(*tree, "race " + name, fmt::format("{}, should be OK or {}", CodeName(got), CodeName(lost)));
  }
  if (race.winners > 1) Fail(*tree, "race " + name, "more than one has won");
}

Task<> NamespaceMix::Verify(Env*, FileSystem* fs) {
  for (auto& [name, race] : races_) {
    if (race.tried() == in_.clients && race.unknown == 0 && race.winners != 1 && !name.starts_with("remove")) {
      Fail(trees_[0], "race " + name, "nobody has won");
    }
  }
  for (Tree& tree : trees_) {
    if (!tree.touched.empty()) Unknown(&tree);
    for (const std::string& path : tree.model.Paths()) {
      if (tree.model.UnderTaint(path)) continue;
      const NamespaceModel::Node* node = tree.model.Find(path);
      auto status = co_await fs->Stat(path);
      if (!status) {
        Fail(tree, "stat " + path, status.error().ToString());
      } else if (node->directory) {
        co_await CompareDirectory(fs, &tree, path, true);
      } else if (status->length() != node->file.size) {
        Fail(tree, "stat " + path, fmt::format("length {}, should be {}", status->length(), node->file.size));
      } else if (status->open()) {
        Fail(tree, "stat " + path, "still open");
      } else {
        co_await CompareFile(fs, &tree, path);
      }
    }
  }
}

}  // namespace

std::unique_ptr<Workload> MakeNamespaceMix(const Surroundings& s) { return std::make_unique<NamespaceMix>(s); }

}  // namespace picket::sim
