// Picket's client library. Blocking calls, thread-safe; one Client per process is enough.
//
//   auto client = picket::client::Client::Connect({.master = "127.0.0.1:7400"});
//   auto file = (*client)->Create("/logs/today", {});
//   (*file)->Write("hello\n");
//   (*file)->Close();                       // success: sealed, durable, the master has the length
//
// No third-party type appears here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "picket/status.h"

namespace picket::client {

struct Options {
  std::string master;              // "host:port"; empty: $PICKET_MASTER, else the configuration file
  std::string config_file;         // empty: $PICKET_CONFIG, else ~/.config/picket/client.toml if present
  uint32_t connect_timeout_ms = 4000;   // to reach the master at all, before a call fails kUnavailable
  uint32_t operation_timeout_ms = 90000;  // for one operation, retries and fail-over included
  std::string user;                // empty: the OS user; not authenticated
  std::string group;               // empty: the OS user's primary group
};

enum class FileType : uint8_t { kFile, kDirectory };

struct FileStatus {
  std::string path;
  FileType type = FileType::kFile;
  uint64_t inode = 0;
  uint64_t length = 0;             // bytes of sealed chunks; of an open file see File::Length
  uint32_t mode = 0;               // permission bits
  std::string owner;
  std::string group;
  int64_t mtime_ns = 0;            // since the Unix epoch, UTC
  uint32_t replication = 0;
  uint64_t chunk_size = 0;
  uint64_t chunk_count = 0;
  bool open = false;               // being written
  uint64_t generation = 0;
  uint64_t create_revision = 0;
  uint64_t mod_revision = 0;
};

struct CreateOptions {
  bool overwrite = false;          // the old content stays readable until Close swaps it
  bool parents = false;            // make missing directories
  uint32_t replication = 0;        // 0: the cluster's default
  uint64_t chunk_size = 0;         // bytes, a power of two from 1 MiB to 1 GiB; 0: the cluster's default
  uint32_t mode = 0644;
  int64_t mtime_ns = 0;            // 0: now, at close
  bool sync_on_close = true;       // Close returns only when every replica is durable
};

// A file being written by this client, which holds its write lease until Close or Abandon.
// Not closed at destruction: the lease runs out and recovery closes the file.
// One thread at a time. After a kFenced error every later call fails the same way.
class Writer {
 public:
  virtual ~Writer() = default;
  // Takes all bytes or fails; returns when they are in the send window, not when acknowledged.
  virtual Result<> Write(const void* data, size_t size) = 0;
  Result<> Write(std::string_view bytes) { return Write(bytes.data(), bytes.size()); }
  // hflush: every byte written so far is applied on every replica and visible to readers.
  virtual Result<> Flush() = 0;
  // hsync: Flush, and on every replica's disk.
  virtual Result<> Sync() = 0;
  // Seals the file. Success: the master has the sealed length; an overwrite has been swapped in.
  virtual Result<FileStatus> Close() = 0;
  // Gives a new file up: name and bytes go. The old content of an overwrite stays.
  virtual Result<> Abandon() = 0;
  virtual uint64_t bytes_written() const = 0;
  virtual uint64_t bytes_acknowledged() const = 0;
  // Things a user should hear about: "2 live servers for a goal of 3".
  virtual const std::vector<std::string>& warnings() const = 0;
};

// A file open for reading: the content it had at Open, and, if it is being written, what becomes
// visible later. Thread-safe; reads at different offsets may run at once.
class Reader {
 public:
  virtual ~Reader() = default;
  // Reads up to `size` bytes at `offset`; returns how many, 0 at the end. Every byte was verified
  // against its checksum; a bad replica is reported and another one is read.
  virtual Result<size_t> ReadAt(uint64_t offset, void* into, size_t size) = 0;
  // Sequential, with read-ahead; for one thread.
  virtual Result<size_t> Read(void* into, size_t size) = 0;
  virtual Result<> Seek(uint64_t offset) = 0;
  // Readable length now (asks a replica when the file is being written).
  virtual Result<uint64_t> Length() = 0;
  virtual const FileStatus& status() const = 0;
};

struct ListPage {
  std::vector<FileStatus> entries;  // sorted by name
  bool more = false;
  bool is_file = false;             // the path is a file: entries holds itself
};

struct ReplicaInfo {
  std::string server;               // id, 16 hex digits
  std::string address;
  std::string rack;
  uint64_t version = 0;
  uint64_t generation = 0;
  uint64_t length = 0;
  std::string state;                // "open", "sealed", "corrupt", …
  bool counted = false;             // one of those that hold the chunk's committed content
};
struct ChunkInfo {
  uint64_t id = 0;
  uint64_t index = 0;
  uint64_t version = 0;
  uint64_t minted = 0;
  uint64_t generation = 0;
  uint64_t length = 0;
  bool sealed = false;
  uint32_t digest = 0;
  std::string primary;              // server id; empty: none
  uint32_t lease_left_ms = 0;
  std::string path;                 // of the file; empty for garbage
  std::vector<ReplicaInfo> replicas;
};

struct ServerInfo {
  std::string id;
  std::string address;
  std::string rack;
  std::string state;                // "live", "suspect", "dead"
  std::string software;
  uint64_t incarnation = 0;
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t replica_count = 0;
  uint64_t replica_bytes = 0;
  int64_t last_heartbeat_ms_ago = 0;
  uint32_t epoch_mark = 0;
};
struct ClusterInfo {
  std::string master;               // its address, as it advertises it
  std::string cluster_id;
  uint32_t epoch = 0;
  uint64_t epoch_nonce = 0;
  uint64_t revision = 0;
  std::string software;
  std::string state;
  int64_t uptime_ms = 0;
  uint64_t inode_count = 0;
  uint64_t chunk_count = 0;
  uint64_t open_files = 0;
  uint64_t chunks_under_goal = 0;
  uint64_t chunks_missing = 0;
  uint64_t garbage_chunks = 0;
  std::vector<ServerInfo> servers;
};

struct Summary {
  uint64_t directories = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t bytes_with_replicas = 0;
};

class Client {
 public:
  // Resolves the master's address and checks that it answers.
  // kUnavailable within connect_timeout_ms: the message names the address and what to check.
  static Result<std::unique_ptr<Client>> Connect(const Options& options = {});
  virtual ~Client() = default;

  virtual Result<std::unique_ptr<Writer>> Create(std::string_view path, const CreateOptions& options) = 0;
  virtual Result<std::unique_ptr<Reader>> Open(std::string_view path) = 0;

  virtual Result<FileStatus> Stat(std::string_view path) = 0;
  // One page of a directory, in the order of names; start after `start_after`. limit 0: the server's.
  virtual Result<ListPage> List(std::string_view path, std::string_view start_after = {}, uint32_t limit = 0) = 0;
  virtual Result<FileStatus> Mkdir(std::string_view path, bool parents, uint32_t mode = 0755) = 0;
  // `to` is the exact new path. With overwrite, an existing file there is replaced atomically.
  virtual Result<> Rename(std::string_view from, std::string_view to, bool overwrite = false) = 0;
  // Returns where it went: a path in the trash, or "" with skip_trash.
  virtual Result<std::string> Remove(std::string_view path, bool recursive, bool skip_trash = false) = 0;
  virtual Result<FileStatus> SetTimes(std::string_view path, int64_t mtime_ns) = 0;
  virtual Result<FileStatus> SetMode(std::string_view path, uint32_t mode) = 0;
  virtual Result<FileStatus> SetOwner(std::string_view path, std::string_view owner, std::string_view group) = 0;
  virtual Result<Summary> Summarize(std::string_view path) = 0;

  virtual Result<std::vector<ChunkInfo>> Chunks(std::string_view path) = 0;
  virtual Result<ChunkInfo> DescribeChunk(uint64_t id) = 0;
  virtual Result<ClusterInfo> Report() = 0;

  virtual const std::string& master() const = 0;
  virtual const std::string& user() const = 0;
};

// The library's version, "0.1.0".
std::string_view LibraryVersion();

}  // namespace picket::client
