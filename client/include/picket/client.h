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

#include "picket/admin.h"
#include "picket/lock.h"
#include "picket/records.h"
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
  uint64_t length = 0;             // of what is sealed, holes included; of an open file see Reader::Length
  uint64_t stored_bytes = 0;       // of what is sealed, without holes, of one copy
  uint32_t mode = 0;               // permission bits
  std::string owner;
  std::string group;
  int64_t mtime_ns = 0;            // since the Unix epoch, UTC
  uint32_t replication = 0;
  uint64_t chunk_size = 0;
  uint64_t chunk_count = 0;
  bool open = false;               // being written
  std::string holder;              // who holds it: a client's id, 16 hex digits; empty: nobody
  uint64_t generation = 0;         // of its last write session
  uint64_t create_revision = 0;
  uint64_t mod_revision = 0;
};

// A change is made only if they hold; else kConflict, with the present value in Error::mark.
struct Conditions {
  std::optional<uint64_t> if_revision;  // its create_revision: it is still the same object
  std::optional<uint64_t> if_version;   // its mod_revision: nothing in it has changed
  bool if_absent = false;               // nothing has that name
};

struct CreateOptions {
  bool overwrite = false;          // the old content stays readable until Close swaps it
  bool parents = false;            // make missing directories
  uint32_t replication = 0;        // 0: the cluster's default
  uint64_t chunk_size = 0;         // bytes, a power of two from 1 MiB to 1 GiB; 0: the cluster's default
  uint32_t mode = 0644;
  int64_t mtime_ns = 0;            // 0: now, at close
  bool sync_on_close = true;       // Close returns only when every replica is durable
  Conditions conditions = {};      // of an overwrite, judged again when Close swaps it in
  std::string writer_id = {};      // the logical writer: after a restart it takes its own session over at once
  uint32_t soft_limit_ms = 0;      // not renewed for so long, others may claim the file; 0: the cluster's
  uint32_t hard_limit_ms = 0;      // not renewed for so long, the master closes it; 0: the cluster's
};

struct AppendOptions {
  bool create = false;             // a missing file is made, with `made`
  CreateOptions made = {};         // of it only parents, replication, chunk_size and mode are looked at
  bool sync_on_close = true;
  Conditions conditions = {};
  std::string writer_id = {};
  uint32_t soft_limit_ms = 0;
  uint32_t hard_limit_ms = 0;
};

struct TruncateOptions {
  Conditions conditions = {};
  std::string writer_id = {};
};

struct RemoveOptions {
  bool recursive = false;
  bool skip_trash = false;
  Conditions conditions = {};
};

// A file as Client::Update read it.
struct FileContent {
  bool exists = false;
  std::string bytes;
  FileStatus status;               // when it exists
};
// The new content; nullopt leaves the file as it is; an error ends the update with it.
using UpdateFunction = std::function<std::expected<std::optional<std::string>, Error>(const FileContent& now)>;
struct UpdateOptions {
  CreateOptions create = {};       // of a missing file; of one that exists only the session's part matters
  int max_attempts = 64;
  uint64_t max_bytes = 64 << 20;   // of a file that is read into memory
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
  // Gives a new file up: name and bytes go. The old content of an overwrite stays. Of an append it is
  // kInvalidArgument, and nothing happens: what was appended stays.
  virtual Result<> Abandon() = 0;
  virtual uint64_t bytes_written() const = 0;
  virtual uint64_t bytes_acknowledged() const = 0;
  // Things a user should hear about: "2 live servers for a goal of 3".
  virtual const std::vector<std::string>& warnings() const = 0;
};

// A file being written at any offset by this client, which holds its write lease until Close. A write beyond the
// end leaves a hole that reads as zeros. After a crash each block of 64 KiB is old or new on every replica.
// Not closed at destruction, one thread at a time, and after a kFenced error every later call fails the same
// way, as for a Writer.
class RandomWriter {
 public:
  virtual ~RandomWriter() = default;
  // Takes all bytes or fails; returns when they are on their way, not when acknowledged.
  virtual Result<> WriteAt(uint64_t offset, const void* data, size_t size) = 0;
  Result<> WriteAt(uint64_t offset, std::string_view bytes) { return WriteAt(offset, bytes.data(), bytes.size()); }
  virtual Result<> Flush() = 0;
  virtual Result<> Sync() = 0;
  virtual Result<FileStatus> Close() = 0;
  virtual uint64_t bytes_written() const = 0;
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

struct Summary {
  uint64_t directories = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t bytes_with_replicas = 0;
};

struct LeaseState {
  bool open = false;               // somebody holds the file
  LeaseInfo lease;                 // then
  FileStatus status;
  uint32_t lock_delay_left_ms = 0; // a lock was not released: others are kept out for that long
};

struct Recovered {
  bool closed = false;             // false: the old writer is fenced, the file not closed yet
  uint64_t generation = 0;         // that fences the old writer
  FileStatus status;
};

class Client {
 public:
  // Resolves the master's address and checks that it answers.
  // kUnavailable within connect_timeout_ms: the message names the address and what to check.
  static Result<std::unique_ptr<Client>> Connect(const Options& options = {});
  virtual ~Client() = default;

  virtual Result<std::unique_ptr<Writer>> Create(std::string_view path, const CreateOptions& options) = 0;
  virtual Result<std::unique_ptr<Reader>> Open(std::string_view path) = 0;
  // A writer that goes on at the end of a file. kLeaseHeld: somebody else is writing it.
  virtual Result<std::unique_ptr<Writer>> Append(std::string_view path, const AppendOptions& options = {}) = 0;
  // A writer at any offset.
  virtual Result<std::unique_ptr<RandomWriter>> OpenForWrite(std::string_view path,
                                                             const AppendOptions& options = {}) = 0;
  // One more appender of records to a file, which is made if it is missing (options.create is not looked at).
  // kLeaseHeld: somebody writes it in another way.
  virtual Result<std::unique_ptr<RecordAppender>> AppendRecords(std::string_view path,
                                                                const AppendOptions& options = {}) = 0;
  virtual Result<std::unique_ptr<RecordReader>> ReadRecords(std::string_view path) = 0;
  // Cuts a file that nobody is writing.
  virtual Result<FileStatus> Truncate(std::string_view path, uint64_t length, const TruncateOptions& options = {}) = 0;
  // Moves the sources' chunks to the end of the target, in their order; the sources cease to exist.
  // Chunk size and replication are the same, the target and all sources but the last one end at a chunk boundary.
  virtual Result<FileStatus> Concat(std::string_view target, const std::vector<std::string>& sources,
                                    const Conditions& conditions = {}) = 0;
  // Reads a file, replaces it by what `change` makes of it, and begins anew if somebody else was faster. So
  // no pause between reading and writing loses anybody's change. `change` runs in the caller's thread, and may
  // run several times.
  virtual Result<FileStatus> Update(std::string_view path, const UpdateFunction& change,
                                    const UpdateOptions& options = {}) = 0;

  virtual Result<FileStatus> Stat(std::string_view path) = 0;
  // One page of a directory, in the order of names; start after `start_after`. limit 0: the server's.
  virtual Result<ListPage> List(std::string_view path, std::string_view start_after = {}, uint32_t limit = 0) = 0;
  virtual Result<FileStatus> Mkdir(std::string_view path, bool parents, uint32_t mode = 0755,
                                   const Conditions& conditions = {}) = 0;
  // `to` is the exact new path. With overwrite, an existing file there is replaced atomically.
  virtual Result<> Rename(std::string_view from, std::string_view to, bool overwrite = false,
                          const Conditions& conditions = {}) = 0;
  // Returns where it went: a path in the trash, or "" with skip_trash.
  virtual Result<std::string> Remove(std::string_view path, const RemoveOptions& options) = 0;
  Result<std::string> Remove(std::string_view path, bool recursive, bool skip_trash = false) {
    return Remove(path, RemoveOptions{.recursive = recursive, .skip_trash = skip_trash});
  }
  virtual Result<FileStatus> SetTimes(std::string_view path, int64_t mtime_ns, const Conditions& conditions = {}) = 0;
  virtual Result<FileStatus> SetMode(std::string_view path, uint32_t mode, const Conditions& conditions = {}) = 0;
  virtual Result<FileStatus> SetOwner(std::string_view path, std::string_view owner, std::string_view group,
                                      const Conditions& conditions = {}) = 0;
  virtual Result<Summary> Summarize(std::string_view path) = 0;

  virtual Result<std::vector<ChunkInfo>> Chunks(std::string_view path) = 0;
  virtual Result<ChunkInfo> DescribeChunk(uint64_t id) = 0;
  virtual Result<ClusterInfo> Report() = 0;

  // The write sessions of files at and below `under`; "": all.
  virtual Result<std::vector<LeaseInfo>> Leases(std::string_view under = {}) = 0;
  virtual Result<LeaseState> ShowLease(std::string_view path) = 0;
  // Ends the session of a stalled writer, who is fenced when this returns; with `wait` the file is closed too.
  virtual Result<Recovered> RecoverLease(std::string_view path, bool wait) = 0;

  // Of the chunkserver with that id (16 hex digits).
  virtual Result<std::vector<QuarantineEntry>> ListQuarantine(std::string_view server) = 0;
  virtual Result<std::vector<QuarantineEntry>> RestoreQuarantine(std::string_view server,
                                                                 const std::vector<std::string>& names) = 0;
  // Without names: all that may go. force: also what is the last hope of a chunk.
  virtual Result<std::vector<QuarantineEntry>> PurgeQuarantine(std::string_view server,
                                                               const std::vector<std::string>& names, bool force) = 0;
  // discard: quarantines the replicas instead of taking them over. Without chunks: all.
  virtual Result<AdoptReport> Adopt(bool discard, bool dry_run, const std::vector<uint64_t>& chunks = {}) = 0;

  // Takes the lock of a path, whose file is made if it is missing. kLeaseHeld: others hold it, after the wait.
  virtual Result<std::unique_ptr<Lock>> TakeLock(std::string_view path, const LockOptions& options = {}) = 0;
  // Is this sequencer still good? Of the master, or of the chunkserver at `server` ("host:port"). Only the
  // master knows that one is valid: a chunkserver that can't ask it says kUnavailable.
  virtual Result<SequencerState> CheckSequencer(std::string_view text, std::string_view server = {}) = 0;

  virtual const std::string& master() const = 0;
  virtual const std::string& user() const = 0;
};

// The library's version, "0.1.0".
std::string_view LibraryVersion();

}  // namespace picket::client
