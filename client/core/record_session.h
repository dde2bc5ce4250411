// One client's part of a record-append session: the place where records go now, and what is done when it
// moves. record_appender.h is its public face.
//
// 1. A record has one identity for its whole life. While it may have been applied in the chunk of an earlier
//    attempt, that chunk decides: its primary, or, once it is sealed, any counted replica. Only a definite
//    "not applied" lets it go to another chunk (F15 a).
// 2. The place is changed by one record at a time; the others that failed there look again.
// 3. A full chunk is sealed and followed by the next one by whoever notices; who comes late finds it done.
// 4. A failure is final and the first one stands. Only D18 names a server as failed.
// Runs on one executor. Its calls keep it alive.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/core/master_client.h"
#include "client/core/record_appender.h"
#include "client/core/server_health.h"
#include "client/core/session_keeper.h"
#include "client/core/write_patience.h"
#include "common/base/record_frame.h"
#include "common/env/sync.h"
#include "common/rpc/client.h"
#include "proto/data.pb.h"

namespace picket {

struct RecordSessionOptions {
  std::string path;      // for messages
  bool sync = true;      // seals are durable
  Nanos patience = 90s;  // without any progress
};

// The record sessions of one client: one for each file, whatever the number of its appenders, and one row of
// numbers for the records of all.
class RecordSessions : public std::enable_shared_from_this<RecordSessions> {
 public:
  RecordSessions(Env& env, std::shared_ptr<MasterClient> master, std::shared_ptr<SessionKeeper> keeper)
      : env_(env), master_(std::move(master)), keeper_(std::move(keeper)) {}

  // The session that the master's answer is about, known already or new.
  std::shared_ptr<RecordSession> Of(proto::OpenResponse opened, RecordSessionOptions options);
  // No later session of this client is about the same file.
  bool Current(const RecordSession& session) const;
  uint64_t NextSequence() { return ++last_sequence_; }

 private:
  Env& env_;
  const std::shared_ptr<MasterClient> master_;
  const std::shared_ptr<SessionKeeper> keeper_;
  uint64_t last_sequence_ = 0;
  std::map<InodeId, std::weak_ptr<RecordSession>> open_;
};

class RecordSession : public std::enable_shared_from_this<RecordSession> {
 public:
  static constexpr Nanos kLookupTimeout = 5s;
  static constexpr Nanos kPlacementPatience = 8s;  // for enough chunkservers to place a chunk on
  static constexpr int kMaxConflicts = 3;          // in a row, at a chunk that is not sealed

  RecordSession(Env& env, std::shared_ptr<MasterClient> master, std::shared_ptr<SessionKeeper> keeper,
                std::shared_ptr<RecordSessions> all, proto::OpenResponse opened, RecordSessionOptions options);

  // Begins renewals.
  void Start();
  // One appender more; one less: with the last one renewals end, and a session not closed is left to run out.
  void Join() { ++appenders_; }
  void Leave();

  static Task<Result<uint64_t>> Append(std::shared_ptr<RecordSession> self, Buffer record, bool sync);
  // One appender less, in order; with the last one the session is released.
  static Task<Status> Close(std::shared_ptr<RecordSession> self);

  Env& env() const { return env_; }
  bool usable() const { return !error_ && !closing_; }
  Generation generation() const { return Generation(opened_.generation()); }
  uint64_t max_record() const { return MaxRecord(opened_.status().chunk_size()); }
  const proto::FileStatus& status() const { return opened_.status(); }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // One chunk under one grant.
  struct Place {
    uint64_t index = 0;
    proto::WriteGrant grant;
    uint64_t known_end = 0;  // every byte below is acknowledged
    ChunkId chunk() const { return ChunkId(grant.token().chunk()); }
    ServerId primary() const { return ServerId(grant.chain(0).server()); }
    Endpoint endpoint() const { return {grant.chain(0).host(), static_cast<uint16_t>(grant.chain(0).port())}; }
  };
  using PlacePtr = std::shared_ptr<Place>;
  struct Record {
    Buffer bytes;
    uint32_t crc = 0;
    uint64_t sequence = 0;
    bool sync = false;
    // Where it may have been applied, as it was at the first attempt there.
    struct Home {
      uint64_t index = 0;
      ChunkId chunk;
      uint64_t known_end = 0;
    };
    std::optional<Home> home;
  };

  // ---- one record (record_session.cc)
  static Task<Result<uint64_t>> Deliver(std::shared_ptr<RecordSession> self, Record record);
  Task<Result<proto::AppendRecordResponse>> Send(PlacePtr place, const Record& record);
  // The record's offset in its home chunk, which is sealed; none: it was not applied there and never will be.
  Task<Result<std::optional<uint64_t>>> Lookup(Record record);
  // `by`: the grant that its primary answered under; none: a sealed replica said so.
  uint64_t Acknowledged(const Record& record, const PlacePtr& by, uint64_t offset);
  Status Usable() const;
  void GiveUp(Error error);

  // ---- the place (record_session_place.cc)
  // `cause`: what a record met at `place`; none: there is no place yet.
  static Task<Status> Move(std::shared_ptr<RecordSession> self, PlacePtr place, std::optional<Error> cause);
  Task<Result<PlacePtr>> Enter(uint64_t index);
  Task<Result<PlacePtr>> Repair(PlacePtr place, Error cause);
  Task<Result<PlacePtr>> Finish(PlacePtr place, uint64_t length);
  Task<Status> Seal(PlacePtr place, uint64_t length);
  Task<Result<PlacePtr>> Grant(uint64_t index, ChunkId chunk, proto::GrantRequest request, uint64_t known_end);
  Task<Result<PlacePtr>> Refresh(PlacePtr place);
  Task<Status> Blame(PlacePtr place, const Error& cause);
  // The file's chunks from `index` on, a few.
  Task<Result<proto::GetFileResponse>> Look(uint64_t index);
  Task<Result<bool>> IsSealed(PlacePtr place);
  PlacePtr PlaceOf(uint64_t index, proto::WriteGrant grant, uint64_t known_end) const;

  void Progressed();
  Mono Patience() { return env_.Now() + options_.patience; }
  template <class Request>
  void Sign(Request* request) const {
    request->set_inode(opened_.status().inode());
    request->set_generation(opened_.generation());
    request->set_holder(master_->client().value);
  }

  Env& env_;
  const std::shared_ptr<MasterClient> master_;
  const std::shared_ptr<SessionKeeper> keeper_;
  const std::shared_ptr<RecordSessions> all_;
  const proto::OpenResponse opened_;
  const RecordSessionOptions options_;
  std::vector<std::string> warnings_;
  ChannelPool channels_;
  Signal news_;  // a record is done, or the session is
  FifoLock moving_;

  PlacePtr place_;
  std::set<ServerId> failed_;        // named since the last successful grant
  ServerHealth health_;              // servers that a new chunk had better avoid
  WritePatience patience_{env_, options_.patience};
  int conflicts_ = 0;

  size_t appenders_ = 0;
  size_t in_flight_ = 0;
  bool closing_ = false;
  std::optional<Error> error_;
};

}  // namespace picket
