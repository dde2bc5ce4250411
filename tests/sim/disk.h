// A simulated disk and its file system, as the kernel sees it: operations are synchronous here, SimFs
// and SimLevelDbEnv add time. Survives its node's crashes.
//
// 1. Names are journalled. A power loss keeps, of each directory's un-synced operations, a prefix; a
//    rename across directories happens in both or in neither.
// 2. SyncDir makes a directory's operations durable, and earlier ones that they stand on.
// 3. SyncInode with names also commits the journal, as ext4 does and LevelDB relies on. The product's own
//    files are synced without: it must not rely on that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/rng.h"
#include "common/env/env.h"
#include "tests/sim/inode.h"

namespace picket::sim {

class Node;
using InodePtr = std::shared_ptr<Inode>;

class SimDisk {
 public:
  // What is wrong with the disk now; set and cleared at will.
  struct Faults {
    bool fail_reads = false;    // EIO
    bool fail_writes = false;   // EIO, also of name operations
    bool fail_syncs = false;    // EIO, and what was dirty is forgotten
    bool full = false;          // ENOSPC for whatever needs a new page
    Nanos extra_latency{};      // of every operation
    // The node loses power at the n-th change of the disk from now (1: at the next).
    std::optional<uint64_t> lose_power_at;
  };

  explicit SimDisk(Node& node);

  Faults faults;

  Result<InodePtr> Open(const std::string& path, OpenMode mode);
  Status Rename(const std::string& from, const std::string& to);
  Status Unlink(const std::string& path);
  Status MakeDir(const std::string& path);
  Status SyncDir(const std::string& dir);
  Result<std::vector<std::string>> List(const std::string& dir);
  bool Exists(const std::string& path) const;
  SpaceInfo Space() const;

  Result<size_t> Read(const Inode& inode, uint64_t offset, std::span<std::byte> into);
  Status Write(Inode& inode, uint64_t offset, std::span<const std::byte> data);
  Status Truncate(Inode& inode, uint64_t size);
  Status Reserve(Inode& inode, uint64_t size);
  Status SyncInode(Inode& inode, bool with_names);
  void StartWriteback(Inode& inode, uint64_t offset, uint64_t size);

  // Time an operation takes, by its kind and size.
  Nanos AccessTime(size_t bytes);
  Nanos SyncTime();

  // For checkers and faults; no time, no errors.
  InodePtr Find(const std::string& path) const;
  std::optional<std::string> Contents(const std::string& path) const;
  std::vector<std::string> Files() const;  // every file's path, sorted
  bool FlipBit(const std::string& path, uint64_t offset, uint8_t bit);
  // All gone, as if the disk had been replaced.
  void Wipe();

  uint64_t operations() const { return operations_; }

 private:
  friend class Node;
  using Names = std::map<std::string, InodePtr>;
  struct NameOp {
    enum class Kind { kLink, kUnlink, kRename } kind;
    std::string path;
    std::string to;
    InodePtr inode;
    std::set<std::string> dirs;  // whose contents it changes
  };

  void Mount() { faults.lose_power_at.reset(); }
  void LosePower();

  // The gate of every operation: counts it, and refuses it for a dying node or a broken disk.
  Status Enter(bool change, bool broken, std::string_view what);
  Status NeedPages(uint64_t pages);
  bool DirExists(const std::string& dir) const;
  void Do(NameOp op);
  // Moves the operations of these directories, and those they stand on, to the durable names.
  void MakeDurable(std::set<std::string> dirs);
  void MakeAllDurable();
  static void Apply(Names* names, const NameOp& op);
  uint64_t UsedPages() const;

  Node& node_;
  Rng rng_;
  Names current_;
  Names durable_;
  std::vector<NameOp> journal_;
  uint64_t operations_ = 0;
};

}  // namespace picket::sim
