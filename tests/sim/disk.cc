#include "tests/sim/disk.h"

#include <algorithm>

#include "common/base/crc32c.h"
#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace picket::sim {
namespace {

// "a//b/" -> "a/b", "./a" -> "a"; "" and "." are the working directory, which always exists, as "/" does.
std::string Normal(std::string_view path) {
  std::string out;
  for (char c : path) {
    if (c != '/' || out.empty() || out.back() != '/') out.push_back(c);
  }
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  while (out.starts_with("./")) out.erase(0, 2);
  return out.empty() ? "." : out;
}

std::string Parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string Prefix(const std::string& dir) {
  if (dir == ".") return "";
  return dir == "/" ? "/" : dir + "/";
}

bool IsRoot(const std::string& path) { return path == "." || path == "/"; }

}  // namespace

SimDisk::SimDisk(Node& node) : node_(node), rng_(node.world().Stream("disk " + std::to_string(node.index()))) {}

Status SimDisk::Enter(bool change, bool broken, std::string_view what) {
  if (node_.dying()) return Fail(Code::kIoError, fmt::format("{}: the machine is going down", what));
  ++operations_;
  if (change && faults.lose_power_at && --*faults.lose_power_at == 0) {
    faults.lose_power_at.reset();
    node_.Crash(Node::Death::kPower);
    return Fail(Code::kIoError, fmt::format("{}: the machine is going down", what));
  }
  if (broken) return Fail(Code::kIoError, fmt::format("{}: input/output error", what));
  return {};
}

uint64_t SimDisk::UsedPages() const {
  uint64_t used = 0;
  for (auto& [path, inode] : current_) used += inode->charged_pages();
  return used;
}

Status SimDisk::NeedPages(uint64_t pages) {
  if (pages == 0) return {};
  const uint64_t capacity = node_.world().config().disk_capacity_bytes / Inode::kPage;
  if (faults.full || UsedPages() + pages > capacity) return Fail(Code::kNoSpace, "no space left on the device");
  return {};
}

bool SimDisk::DirExists(const std::string& dir) const {
  if (IsRoot(dir)) return true;
  auto it = current_.find(dir);
  return it != current_.end() && it->second->directory();
}

void SimDisk::Apply(Names* names, const NameOp& op) {
  switch (op.kind) {
    case NameOp::Kind::kLink: (*names)[op.path] = op.inode; return;
    case NameOp::Kind::kUnlink: names->erase(op.path); return;
    case NameOp::Kind::kRename: {
      auto it = names->find(op.path);
      if (it == names->end()) return;
      (*names)[op.to] = it->second;
      names->erase(it);
      const std::string below = op.path + "/";
      for (auto child = names->lower_bound(below); child != names->end() && child->first.starts_with(below);) {
        (*names)[op.to + "/" + child->first.substr(below.size())] = child->second;
        child = names->erase(child);
      }
      return;
    }
  }
}

void SimDisk::Do(NameOp op) {
  node_.world().Mix(op.path);
  op.dirs.insert(Parent(op.path));
  if (!op.to.empty()) op.dirs.insert(Parent(op.to));
  Apply(&current_, op);
  journal_.push_back(std::move(op));
}

void SimDisk::MakeAllDurable() {
  for (const NameOp& op : journal_) Apply(&durable_, op);
  journal_.clear();
}

void SimDisk::MakeDurable(std::set<std::string> dirs) {
  std::vector<bool> durable(journal_.size(), false);
  for (size_t i = journal_.size(); i-- > 0;) {
    const NameOp& op = journal_[i];
    if (std::ranges::none_of(op.dirs, [&](const std::string& d) { return dirs.contains(d); })) continue;
    durable[i] = true;
    dirs.insert(op.dirs.begin(), op.dirs.end());
  }
  std::vector<NameOp> left;
  for (size_t i = 0; i < journal_.size(); ++i) {
    if (durable[i]) {
      Apply(&durable_, journal_[i]);
    } else {
      left.push_back(std::move(journal_[i]));
    }
  }
  journal_ = std::move(left);
}

Result<InodePtr> SimDisk::Open(const std::string& raw, OpenMode mode) {
  const std::string path = Normal(raw);
  PICKET_TRY(Enter(false, faults.fail_reads, "open " + path));
  if (auto it = current_.find(path); it != current_.end()) {
    if (it->second->directory()) return Fail(Code::kIsDirectory, "open " + path + ": is a directory");
    if (mode == OpenMode::kCreateNew) return Fail(Code::kAlreadyExists, "open " + path + ": exists");
    return it->second;
  }
  if (IsRoot(path)) return Fail(Code::kIsDirectory, "open " + path + ": is a directory");
  if (mode == OpenMode::kReadOnly || mode == OpenMode::kReadWrite || !DirExists(Parent(path))) {
    return Fail(Code::kNotFound, "open " + path + ": no such file or directory");
  }
  PICKET_TRY(Enter(true, faults.fail_writes, "create " + path));
  if (faults.full) return Fail(Code::kNoSpace, "create " + path + ": no space left on the device");
  auto inode = std::make_shared<Inode>(false);
  Do({.kind = NameOp::Kind::kLink, .path = path, .inode = inode});
  return inode;
}

Status SimDisk::Rename(const std::string& raw_from, const std::string& raw_to) {
  const std::string from = Normal(raw_from);
  const std::string to = Normal(raw_to);
  PICKET_TRY(Enter(true, faults.fail_writes, "rename " + from));
  auto it = current_.find(from);
  if (it == current_.end() || !DirExists(Parent(to))) {
    return Fail(Code::kNotFound, "rename " + from + " to " + to + ": no such file or directory");
  }
  if (DirExists(to)) return Fail(Code::kIsDirectory, "rename " + from + " to " + to + ": is a directory");
  if (from != to) Do({.kind = NameOp::Kind::kRename, .path = from, .to = to});
  return {};
}

Status SimDisk::Unlink(const std::string& raw) {
  const std::string path = Normal(raw);
  PICKET_TRY(Enter(true, faults.fail_writes, "unlink " + path));
  auto it = current_.find(path);
  if (it == current_.end()) return Fail(Code::kNotFound, "unlink " + path + ": no such file or directory");
  if (it->second->directory()) return Fail(Code::kIsDirectory, "unlink " + path + ": is a directory");
  Do({.kind = NameOp::Kind::kUnlink, .path = path});
  return {};
}

Status SimDisk::MakeDir(const std::string& raw) {
  const std::string path = Normal(raw);
  PICKET_TRY(Enter(true, faults.fail_writes, "mkdir " + path));
  if (DirExists(path)) return {};
  if (current_.contains(path)) return Fail(Code::kAlreadyExists, "mkdir " + path + ": a file of that name exists");
  if (!DirExists(Parent(path))) return Fail(Code::kNotFound, "mkdir " + path + ": no such file or directory");
  Do({.kind = NameOp::Kind::kLink, .path = path, .inode = std::make_shared<Inode>(true)});
  return {};
}

Status SimDisk::SyncDir(const std::string& raw) {
  const std::string dir = Normal(raw);
  PICKET_TRY(Enter(true, faults.fail_syncs || faults.fail_writes, "fsync " + dir));
  if (!DirExists(dir)) return Fail(Code::kNotFound, "fsync " + dir + ": no such directory");
  if (!node_.world().config().sync_is_noop) MakeDurable({dir});
  return {};
}

Result<std::vector<std::string>> SimDisk::List(const std::string& raw) {
  const std::string dir = Normal(raw);
  PICKET_TRY(Enter(false, faults.fail_reads, "list " + dir));
  if (!DirExists(dir)) {
    if (current_.contains(dir)) return Fail(Code::kNotDirectory, "list " + dir + ": not a directory");
    return Fail(Code::kNotFound, "list " + dir + ": no such directory");
  }
  const std::string prefix = Prefix(dir);
  std::vector<std::string> names;
  for (auto it = current_.lower_bound(prefix); it != current_.end() && it->first.starts_with(prefix);) {
    const std::string rest = it->first.substr(prefix.size());
    if (const size_t slash = rest.find('/'); slash != std::string::npos) {
      it = current_.lower_bound(prefix + rest.substr(0, slash) + static_cast<char>('/' + 1));  // past the subtree
    } else {
      names.push_back(rest);
      ++it;
    }
  }
  return names;
}

bool SimDisk::Exists(const std::string& raw) const {
  const std::string path = Normal(raw);
  return IsRoot(path) || current_.contains(path);
}

SpaceInfo SimDisk::Space() const {
  const uint64_t total = node_.world().config().disk_capacity_bytes;
  const uint64_t used = std::min(total, UsedPages() * Inode::kPage);
  return SpaceInfo{.total_bytes = total, .free_bytes = faults.full ? 0 : total - used};
}

Result<size_t> SimDisk::Read(const Inode& inode, uint64_t offset, std::span<std::byte> into) {
  PICKET_TRY(Enter(false, faults.fail_reads, "read"));
  return inode.Read(offset, into);
}

Status SimDisk::Write(Inode& inode, uint64_t offset, std::span<const std::byte> data) {
  PICKET_TRY(Enter(true, faults.fail_writes, "write"));
  PICKET_TRY(NeedPages(inode.NewPages(offset, data.size())));
  node_.world().Mix(offset);
  node_.world().Mix(std::string_view(reinterpret_cast<const char*>(data.data()), data.size()));
  inode.Write(offset, data, node_.world().config().writeback_chance, rng_);
  return {};
}

Status SimDisk::Truncate(Inode& inode, uint64_t size) {
  PICKET_TRY(Enter(true, faults.fail_writes, "truncate"));
  node_.world().Mix(size);
  inode.Truncate(size);
  return {};
}

Status SimDisk::Reserve(Inode& inode, uint64_t size) {
  PICKET_TRY(Enter(true, faults.fail_writes, "reserve"));
  PICKET_TRY(NeedPages(inode.NewPages(0, size)));
  inode.Reserve(size);
  return {};
}

Status SimDisk::SyncInode(Inode& inode, bool with_names) {
  if (auto entered = Enter(true, faults.fail_syncs || faults.fail_writes, "fdatasync"); !entered) {
    if (!node_.dying()) inode.FailSync();
    return entered;
  }
  node_.world().Mix(inode.size());
  if (node_.world().config().sync_is_noop) return {};
  inode.Sync();
  if (with_names) MakeAllDurable();
  return {};
}

void SimDisk::StartWriteback(Inode& inode, uint64_t offset, uint64_t size) {
  if (!node_.dying() && !faults.fail_writes) inode.Writeback(offset, size, rng_);
}

Nanos SimDisk::AccessTime(size_t bytes) {
  const Config& c = node_.world().config();
  return faults.extra_latency + Nanos(rng_.Range(c.disk_latency_min.count(), c.disk_latency_max.count())) +
         Nanos(static_cast<int64_t>(bytes * 1'000'000'000ull / c.disk_bytes_per_s));
}

Nanos SimDisk::SyncTime() {
  const Config& c = node_.world().config();
  return faults.extra_latency + Nanos(rng_.Range(c.sync_latency_min.count(), c.sync_latency_max.count()));
}

void SimDisk::LosePower() {
  std::set<std::string> broken;
  for (NameOp& op : journal_) {
    const bool kept = rng_.Chance(0.7) &&
                      std::ranges::none_of(op.dirs, [&](const std::string& d) { return broken.contains(d); });
    if (kept) {
      Apply(&durable_, op);
    } else {
      broken.insert(op.dirs.begin(), op.dirs.end());
    }
  }
  journal_.clear();
  // What stands in a directory whose own name was lost is lost with it.
  std::erase_if(durable_, [&](auto& entry) {
    for (std::string dir = Parent(entry.first); !IsRoot(dir); dir = Parent(dir)) {
      if (!durable_.contains(dir)) return true;
    }
    return false;
  });
  current_ = durable_;
  for (auto& [path, inode] : current_) inode->LosePower(node_.world().config().sector_survival, rng_);
}

InodePtr SimDisk::Find(const std::string& path) const {
  auto it = current_.find(Normal(path));
  return it == current_.end() ? nullptr : it->second;
}

std::optional<std::string> SimDisk::Contents(const std::string& path) const {
  const InodePtr inode = Find(path);
  if (!inode || inode->directory()) return std::nullopt;
  std::string bytes(inode->size(), '\0');
  inode->Read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::vector<std::string> SimDisk::Files() const {
  std::vector<std::string> paths;
  for (auto& [path, inode] : current_) {
    if (!inode->directory()) paths.push_back(path);
  }
  return paths;
}

bool SimDisk::FlipBit(const std::string& path, uint64_t offset, uint8_t bit) {
  const InodePtr inode = Find(path);
  if (!inode || offset >= inode->size()) return false;
  inode->FlipBit(offset, bit);
  return true;
}

void SimDisk::Wipe() {
  current_.clear();
  durable_.clear();
  journal_.clear();
}

}  // namespace picket::sim
