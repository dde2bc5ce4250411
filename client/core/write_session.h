// The life of a file being written from one position on: a queue of packets, one open chunk at a time, and
// a task that moves them: begin a chunk, send, recover, seal, finish. file_writer.h is its public face.
//
// 1. Bytes leave queue_ only when acknowledged; [acked, written) is always at hand, so a set that goes on
//    from L (acked <= L <= sent, D6) finds every byte after L, also when L falls inside a packet.
// 2. A chunk is begun for its first packet: an empty file has no chunk, an exact multiple of the chunk size
//    no empty tail, and an append that wrote nothing leaves the sealed last chunk as it is.
// 3. While a full chunk is sealed, the caller goes on filling the queue.
// 4. A failure is final and the first one stands. Only D18 names a server as failed.
// Runs on one executor. Its tasks keep it alive; Detach lets them end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/core/chunk_stream.h"
#include "client/core/master_client.h"
#include "client/core/packet.h"
#include "client/core/server_health.h"
#include "client/core/session_keeper.h"
#include "client/core/write_patience.h"
#include "common/env/env.h"
#include "common/env/sync.h"
#include "proto/client_master.pb.h"

namespace picket {

// What the master opened: a new file, or one that exists, to be gone on with at its end.
struct OpenedSession {
  proto::FileStatus status;
  uint64_t generation = 0;
  uint32_t soft_limit_ms = 0;
  uint32_t live_servers = 0;
  bool created = false;
  // The last chunk of a file that exists: sealed, and gone on with while it is not full.
  std::optional<proto::ChunkLocation> last_chunk;

  static OpenedSession Of(proto::CreateResponse created);
  static OpenedSession Of(proto::OpenResponse opened);
};

struct WriteSessionOptions {
  std::string path;         // for messages
  bool sync = true;         // seals are durable
  int64_t mtime_ns = 0;     // at close; 0: the master's now
  Nanos patience = 90s;     // without any progress
};

class WriteSession : public std::enable_shared_from_this<WriteSession> {
 public:
  static constexpr size_t kMaxQueued = 8;               // packets not yet acknowledged, the window included
  static constexpr Nanos kPlacementPatience = 8s;       // for enough chunkservers to place a chunk on

  WriteSession(Env& env, std::shared_ptr<MasterClient> master, std::shared_ptr<SessionKeeper> keeper,
               OpenedSession opened, WriteSessionOptions options);

  // Begins renewals and the moving task.
  void Start();
  // The writer has gone: everything stops, the session is left to its lease.
  void Detach();

  static Task<Status> Write(std::shared_ptr<WriteSession> self, Buffer data);
  static Task<Status> Flush(std::shared_ptr<WriteSession> self);
  static Task<Status> Sync(std::shared_ptr<WriteSession> self);
  static Task<Result<proto::FileStatus>> Close(std::shared_ptr<WriteSession> self);
  static Task<Status> Abandon(std::shared_ptr<WriteSession> self);

  // Of this session, without what the file had.
  uint64_t written() const { return written_ - std::min(begin_, written_); }
  uint64_t acknowledged() const { return acked_ - std::min(begin_, acked_); }
  const proto::FileStatus& status() const { return opened_.status; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  enum class Step { kWait, kBegin, kSend, kSync, kSyncSealed, kRecover, kSeal, kFinish };
  struct Queued {
    uint64_t index = 0;  // of its chunk
    Packet packet;
  };
  struct Unsynced {
    uint64_t index = 0;
    proto::WriteToken token;
    uint64_t length = 0;
  };

  // ---- the caller's side (write_session.cc)
  Status Usable() const;
  static Task<Status> Take(std::shared_ptr<WriteSession> self, Buffer data);
  static Task<Status> FillGap(std::shared_ptr<WriteSession> self);
  void Enqueue(Buffer data);
  void CutPartial();
  static Task<Status> Await(std::shared_ptr<WriteSession> self, bool (*done)(const WriteSession&, uint64_t),
                            uint64_t target);
  uint64_t PacketStart() const { return written_ - partial_size_; }

  // ---- the moving task (write_session_steps.cc)
  static Task<> Move(std::shared_ptr<WriteSession> self);
  Step NextStep() const;
  Task<Status> Act(Step step);
  Task<Status> BeginChunk();
  Task<Result<proto::WriteGrant>> AskForChunk(const proto::MutationId* mutation, std::vector<ServerId> avoided,
                                              Mono deadline);
  Task<Status> Recover();
  Task<Status> Refresh();
  Task<Status> Seal();
  Task<Status> Finish();
  void SendNext();
  void Absorb();
  // `acked`: so many bytes of the chunk were acknowledged, to this writer or to the one before it.
  Task<Status> OpenStream(proto::WriteGrant grant, uint64_t acked);

  // ---- a sync that reaches back (write_session_sync.cc)
  Task<Status> SyncSealed();
  static Task<Status> SyncSealedAt(Env* env, Unsynced chunk, proto::Hop hop);
  Task<Status> TrySyncSealed(Unsynced chunk, Mono deadline);

  // ---- endings (write_session.cc)
  void GiveUp(Error error);
  void Ended(proto::FileStatus status);
  static Task<> Lost(std::weak_ptr<WriteSession> weak);
  // Who has the file now, where a refusal does not say it.
  Task<Error> Explained(Error error);
  uint64_t ChunkStart() const { return index_ * chunk_size_; }
  bool ChunkFull() const { return stream_ && stream_->acked() == chunk_size_; }
  bool SyncWanted() const { return sync_target_ > synced_; }
  template <class Request>
  void Sign(Request* request) const {
    request->set_inode(opened_.status.inode());
    request->set_generation(opened_.generation);
    request->set_holder(master_->client().value);
  }

  Env& env_;
  const std::shared_ptr<MasterClient> master_;
  const std::shared_ptr<SessionKeeper> keeper_;
  const OpenedSession opened_;
  const WriteSessionOptions options_;
  const uint64_t chunk_size_;
  const uint64_t begin_;        // the file's end when it was opened
  const std::shared_ptr<Signal> news_;  // anything changed: callers and the moving task look again
  std::vector<std::string> warnings_;

  // File offsets: acked_ <= written_. They start where the file's last chunk ends, which a truncation inside
  // a hole leaves before begin_: the gap is filled with zeros before the first byte.
  uint64_t written_ = 0;
  uint64_t acked_ = 0;
  uint64_t sync_target_ = 0;
  uint64_t synced_ = 0;
  Buffer partial_;              // bytes that do not fill a packet yet, at PacketStart()
  size_t partial_size_ = 0;
  std::deque<Queued> queue_;    // not acknowledged, in file order
  size_t sent_ = 0;             // so many of them are on the wire

  // The open chunk, when stream_ is set.
  uint64_t index_ = 0;          // of the open chunk, or of the next one
  std::optional<proto::ChunkLocation> reopen_;  // the file's last chunk, until it is begun again
  std::shared_ptr<ChunkStream> stream_;
  uint64_t sent_end_ = 0;       // the furthest byte of this chunk that was ever there or sent
  std::set<ServerId> failed_;   // named since the last successful grant
  std::deque<Unsynced> unsynced_;  // chunks sealed without a sync
  ServerHealth health_;         // servers that a new chunk had better avoid
  WritePatience patience_{env_, options_.patience};

  bool closing_ = false;
  bool finishing_ = false;      // the closing request is on its way: its answer decides
  bool ended_ = false;
  std::optional<Error> error_;
  std::optional<proto::FileStatus> closed_;
};

}  // namespace picket
