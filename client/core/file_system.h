// The client as coroutines: names, files and what the cluster says of itself. The blocking library
// (client/blocking) and the simulator's workloads stand on it. Runs on one Env's executor.
//
// Every operation has a deadline (FileSystemOptions::operation_timeout) and within it retries over
// reconnects, restarts of the master and time-outs; a repeated mutation bears the same MutationId, so it
// takes effect once. Errors are the master's own, or kUnavailable / kDeadlineExceeded with the address.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/core/file_reader.h"
#include "client/core/file_writer.h"
#include "client/core/lock_session.h"
#include "client/core/random_writer.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/env.h"
#include "proto/client_master.pb.h"

namespace picket {

class ChunkReader;
class MasterClient;
class RecordAppender;
class RecordReader;
class RecordSessions;
class SessionKeeper;
struct OpenedSession;
struct WriteSessionOptions;

struct FileSystemOptions {
  Endpoint master;
  ClientId id;                      // of this client's life, never used before; 0: drawn from Env
  std::string user;                 // owner of what it creates, and whose trash it uses
  std::string group;
  Nanos connect_timeout = 4s;       // for the very first contact with the master
  Nanos operation_timeout = 90s;    // for one operation; for a writer: without any progress
};

// How a write session is asked for, whatever it is for.
struct SessionOptions {
  std::string writer_id;            // of the logical writer: after a restart it takes its own session over at once
  proto::SessionLimits limits;      // 0: the cluster's
  proto::Conditions conditions;
};

struct CreateFileOptions {
  bool overwrite = false;           // the old content stays readable until Close swaps it
  bool parents = false;             // make missing directories
  uint32_t mode = 0644;
  uint32_t replication = 0;         // 0: the cluster's default
  uint64_t chunk_size = 0;          // 0: the cluster's default
  int64_t mtime_ns = 0;             // 0: now, at close
  bool sync = true;                 // seals are durable on every replica before Close returns
  SessionOptions session = {};      // with overwrite, the conditions are judged again by Close
};

struct AppendFileOptions {
  bool create = false;              // a missing file is made, with what `made` says
  CreateFileOptions made = {};      // overwrite and session are not looked at; sync and mtime_ns are of the close
  SessionOptions session = {};
};

struct TruncateOptions {
  std::string writer_id;
  proto::Conditions conditions = {};
};

struct RemoveOptions {
  bool recursive = false;
  bool skip_trash = false;
  InodeId only_inode;               // see DeleteRequest
  proto::Conditions conditions = {};
};

class FileSystem {
 public:
  FileSystem(Env& env, FileSystemOptions options);
  ~FileSystem();
  FileSystem(const FileSystem&) = delete;

  ClientId id() const { return options_.id; }
  Env& env() { return env_; }
  const FileSystemOptions& options() const { return options_; }

  // First contact. kUnavailable within connect_timeout when nobody answers; every other operation
  // makes it by itself when it has not happened yet.
  Task<Status> Connect();

  Task<Result<proto::FileStatus>> Stat(std::string path);
  // One page, sorted by name, after `start_after`; limit 0: the server's page size.
  Task<Result<proto::ListResponse>> List(std::string path, std::string start_after, uint32_t limit);
  // A change takes conditions; one that does not hold is kConflict, with the present value as the mark.
  Task<Result<proto::FileStatus>> Mkdir(std::string path, bool parents, uint32_t mode,
                                        proto::Conditions conditions = {});
  Task<Status> Rename(std::string from, std::string to, bool overwrite, proto::Conditions conditions = {});
  // Returns the path in the trash, "" with skip_trash.
  Task<Result<std::string>> Remove(std::string path, RemoveOptions options);
  Task<Result<std::string>> Remove(std::string path, bool recursive, bool skip_trash, InodeId only_inode = {});
  Task<Result<proto::FileStatus>> SetMode(std::string path, uint32_t mode, proto::Conditions conditions = {});
  // An empty owner or group is left as it is.
  Task<Result<proto::FileStatus>> SetOwner(std::string path, std::string owner, std::string group,
                                           proto::Conditions conditions = {});
  Task<Result<proto::FileStatus>> SetTime(std::string path, int64_t mtime_ns, proto::Conditions conditions = {});
  Task<Result<proto::SummaryResponse>> Summary(std::string path);

  // A new file under its write session, which is renewed until the writer ends.
  Task<Result<std::unique_ptr<FileWriter>>> Create(std::string path, CreateFileOptions options);
  Task<Result<std::unique_ptr<FileReader>>> Open(std::string path);
  // Goes on at the end of a file. Somebody else's session is kLeaseConflict, unless it may be taken over
  // (see OpenRequest). The writer can't be abandoned: what was appended stays.
  Task<Result<std::unique_ptr<FileWriter>>> OpenForAppend(std::string path, AppendFileOptions options);
  // For bytes at any offset; a session as for OpenForAppend.
  Task<Result<std::unique_ptr<RandomWriter>>> OpenForWrite(std::string path, AppendFileOptions options);
  // Cuts a file that nobody is writing. Longer than it is: kInvalidArgument.
  Task<Result<proto::FileStatus>> Truncate(std::string path, uint64_t length, TruncateOptions options);
  // Moves the sources' chunks to the end of the target, in their order; the sources cease to exist.
  Task<Result<proto::FileStatus>> Concat(std::string target, std::vector<std::string> sources,
                                         proto::Conditions conditions);

  // ---- records
  // One more appender of the file, which is made if it is missing; options.create is not looked at.
  Task<Result<std::unique_ptr<RecordAppender>>> AppendRecords(std::string path, AppendFileOptions options);
  Task<Result<std::unique_ptr<RecordReader>>> ReadRecords(std::string path);

  // ---- locks
  // The lock of a path, which is made if it is missing; renewed until it is released, lost or detached.
  Task<Result<std::shared_ptr<LockSession>>> Lock(std::string path, LockOptions options);
  // Of the master, or, if `server` names one, of a chunkserver.
  Task<Result<proto::CheckSequencerResponse>> CheckSequencer(std::string text, Endpoint server = {});

  // ---- leases: who writes what
  Task<Result<std::vector<proto::LeaseInfo>>> ListLeases(std::string under);
  Task<Result<proto::ShowLeaseResponse>> ShowLease(std::string path);
  // Ends the session of a stalled writer, who is fenced when this returns; with `wait`, the file is closed too.
  Task<Result<proto::RecoverLeaseResponse>> RecoverLease(std::string path, bool wait);

  // Every chunk of a file, uncounted replicas too, for display.
  Task<Result<std::vector<proto::ChunkLocation>>> Chunks(std::string path);
  Task<Result<proto::DescribeChunkResponse>> DescribeChunk(ChunkId chunk);
  Task<Result<proto::ClusterReportResponse>> Report();

  // ---- an operator's means; of both, `mutation` is set here
  Task<Result<proto::QuarantineResponse>> Quarantine(proto::QuarantineRequest request);
  Task<Result<proto::AdoptResponse>> Adopt(proto::AdoptRequest request);

 private:
  Task<Result<proto::FileStatus>> SetAttributes(proto::SetAttributesRequest request, proto::Conditions conditions);
  Task<Result<OpenedSession>> OpenExclusive(std::string path, AppendFileOptions options);
  Result<std::unique_ptr<FileWriter>> Writer(OpenedSession opened, WriteSessionOptions options);
  static constexpr Nanos kCheckTimeout = 10s;  // of one chunkserver
  Mono Deadline() { return env_.Now() + options_.operation_timeout; }

  Env& env_;
  FileSystemOptions options_;
  std::shared_ptr<MasterClient> master_;
  std::shared_ptr<SessionKeeper> sessions_;
  std::shared_ptr<RecordSessions> records_;
  std::shared_ptr<ChunkReader> chunks_;
};

}  // namespace picket
