// A server's directory and whose it is: the file picket.toml in it, written once by `init`, and a lock.
//
// A server starts only on a directory that init made. An empty one is taken for an unmounted disk, a
// foreign one for a mistake, one of a newer format for a downgrade: each is refused with what to do.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/env.h"

namespace picket {

inline constexpr uint32_t kDataDirFormat = 1;

struct DirIdentity {
  uint32_t format = kDataDirFormat;
  std::string role;     // "master", "chunkserver"
  std::string cluster;  // 16 hex digits
  ServerId server;      // 0 for a master
  int64_t created_ns = 0;
};

// Makes `dir` (its parent must exist) and writes its identity, durable on return. kAlreadyExists for a
// directory that has an identity, kNotEmpty for one that holds anything else (other than lost+found).
// `files` (name → content, such as a copy of the cluster secret) are written before the identity, so
// that an interrupted init leaves no directory that looks whole.
Task<Status> InitDataDir(Env* env, std::string dir, std::string role, std::string cluster, ServerId server,
                         std::map<std::string, std::string> files = {});

// An opened directory: locked as long as this lives.
class DataDir {
 public:
  // kUnavailable: locked by another process. kNotFound: no such directory, or an empty one.
  // kInvalidArgument: foreign, or another role's. kUnsupported: a newer format. kIoError: unreadable.
  static Task<Result<DataDir>> Open(Env* env, std::string dir, std::string role);

  const std::string& path() const { return path_; }
  const DirIdentity& identity() const { return identity_; }
  std::string Path(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  DataDir(std::string path, DirIdentity identity, std::unique_ptr<FileLock> lock)
      : path_(std::move(path)), identity_(std::move(identity)), lock_(std::move(lock)) {}
  std::string path_;
  DirIdentity identity_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace picket
