// The life of a file being written at any offset: packets of the one open chunk, sent in order, and what is
// done when they fail. random_writer.h is its public face.
//
// 1. A packet either replaces bytes below the chunk's planned end or goes on at it. It leaves ops_ only when
//    acknowledged. When the set goes on from L (D6), what was appended below L is there, and all else that was
//    not acknowledged is sent again in its order: the same bytes, so it may be applied twice.
// 2. A chunk is sealed and committed before another one is begun: the master allows one at a time.
// 3. At most the stream's window of packets is held.
// 4. A failure is final and the first one stands. Only D18 names a server as failed.
// Runs on one executor, in the caller's task; renewals go on beside it. One caller at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/core/write_session.h"

namespace picket {

class RandomWriteSession : public std::enable_shared_from_this<RandomWriteSession> {
 public:
  static constexpr uint64_t kMaxFileBytes = uint64_t{1} << 60;  // the master gives no chunk beyond

  RandomWriteSession(Env& env, std::shared_ptr<MasterClient> master, std::shared_ptr<SessionKeeper> keeper,
                     OpenedSession opened, WriteSessionOptions options);

  // Begins renewals.
  void Start();
  // The writer has gone: everything stops, the session is left to its lease.
  void Detach();

  static Task<Status> WriteAt(std::shared_ptr<RandomWriteSession> self, uint64_t offset, Buffer data);
  static Task<Status> Flush(std::shared_ptr<RandomWriteSession> self);
  static Task<Status> Sync(std::shared_ptr<RandomWriteSession> self);
  static Task<Result<proto::FileStatus>> Close(std::shared_ptr<RandomWriteSession> self);

  uint64_t written() const { return written_; }
  const proto::FileStatus& status() const { return opened_.status; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Op {
    Packet packet;
    bool overwrite = false;
    uint64_t serial = 0;  // on the present stream; 0: not sent
  };
  using Condition = bool (*)(const RandomWriteSession&);

  // ---- the caller's side (random_write_session.cc)
  Status Usable() const;
  // Moves packets and repairs the stream until `done`.
  static Task<Status> Drive(std::shared_ptr<RandomWriteSession> self, Condition done);
  static Task<Status> Put(std::shared_ptr<RandomWriteSession> self, uint64_t at, Buffer data);
  static Task<Status> Ended(std::shared_ptr<RandomWriteSession> self, Status outcome);
  static Task<> Lost(std::weak_ptr<RandomWriteSession> weak);
  void GiveUp(Error error);
  void SendNext();
  void Absorb();
  bool AllSent() const { return sent_ == ops_.size(); }
  bool Flushed() const { return ops_.empty() && !(stream_ && stream_->broken()); }

  // ---- a chunk's life (random_write_chunk.cc)
  Task<Status> Reach(uint64_t index);
  Task<Status> BeginChunk();
  Task<Result<proto::WriteGrant>> AskForChunk(const proto::MutationId* mutation,
                                              const std::optional<proto::ChunkLocation>* there,
                                              std::vector<ServerId> avoided, Mono deadline);
  Task<Status> OpenStream(proto::WriteGrant grant, uint64_t acked);
  Task<Status> Recover();
  // The same version under a token that is signed anew.
  Task<Status> Refresh();
  // Flushes and seals the open chunk, if there is one; with `close`, the file is closed in the same batch.
  Task<Status> LeaveChunk(bool close);
  Task<Status> SealAndCommit(bool close);

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
  const std::shared_ptr<Signal> news_;
  std::vector<std::string> warnings_;
  uint64_t written_ = 0;

  // The open chunk, when stream_ is set.
  uint64_t index_ = 0;
  std::shared_ptr<ChunkStream> stream_;
  std::deque<Op> ops_;          // not acknowledged, in the order of writing
  size_t sent_ = 0;             // so many of them are on the wire
  uint64_t tail_ = 0;           // where the chunk ends once all of ops_ is applied
  uint64_t sent_end_ = 0;       // the furthest byte of this chunk that was ever there or sent
  uint64_t acked_ = 0;          // of the chunk
  bool dirty_ = false;          // something was written and not synced
  bool sync_wanted_ = false;
  uint64_t sync_serial_ = 0;    // of the sync on the wire; 0: none

  std::set<ServerId> failed_;   // named since the last successful grant
  ServerHealth health_;
  WritePatience patience_{env_, options_.patience};

  bool finishing_ = false;      // the closing request is on its way: its answer decides
  std::optional<Error> error_;
  std::optional<proto::FileStatus> closed_;
};

}  // namespace picket
