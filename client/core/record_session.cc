#include "client/core/record_session.h"

#include <algorithm>

#include "client/core/chunk_stream.h"
#include "client/core/write_failure.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"

namespace picket {

std::shared_ptr<RecordSession> RecordSessions::Of(proto::OpenResponse opened, RecordSessionOptions options) {
  std::erase_if(open_, [](const auto& entry) { return entry.second.expired(); });
  auto& known = open_[InodeId(opened.status().inode())];
  auto session = known.lock();
  if (session && session->usable() && session->generation() == Generation(opened.generation())) return session;
  session = std::make_shared<RecordSession>(env_, master_, keeper_, shared_from_this(), std::move(opened),
                                            std::move(options));
  session->Start();
  known = session;
  return session;
}

bool RecordSessions::Current(const RecordSession& session) const {
  const auto known = open_.find(InodeId(session.status().inode()));
  return known == open_.end() || known->second.expired() || known->second.lock().get() == &session;
}

RecordSession::RecordSession(Env& env, std::shared_ptr<MasterClient> master, std::shared_ptr<SessionKeeper> keeper,
                             std::shared_ptr<RecordSessions> all, proto::OpenResponse opened,
                             RecordSessionOptions options)
    : env_(env),
      master_(std::move(master)),
      keeper_(std::move(keeper)),
      all_(std::move(all)),
      opened_(std::move(opened)),
      options_(std::move(options)),
      channels_(env),
      news_(env),
      moving_(env) {
  if (opened_.live_servers() < opened_.status().replication()) {
    warnings_.push_back(std::to_string(opened_.live_servers()) + " live servers for a goal of " +
                        std::to_string(opened_.status().replication()) + " replicas");
  }
}

void RecordSession::Start() {
  keeper_->Add(InodeId(opened_.status().inode()), generation(), std::chrono::milliseconds(opened_.soft_limit_ms()),
               [weak = weak_from_this()] {
                 auto self = weak.lock();
                 if (!self || self->closing_) return;
                 self->GiveUp(Error(Code::kStaleGeneration, "the master ended this record-append session")
                                  .WithTokens(self->generation().value, 0)
                                  .WithNextStep("open the file again; what was acknowledged is in it"));
               });
}

void RecordSession::Leave() {
  if (--appenders_ > 0 || closing_) return;
  GiveUp(Error(Code::kInvalidArgument, "the appender was given up"));
  if (all_->Current(*this)) keeper_->Remove(InodeId(opened_.status().inode()), generation());
}

void RecordSession::GiveUp(Error error) {
  if (error_) return;
  if (LosesSession(error.code)) keeper_->Remove(InodeId(opened_.status().inode()), generation());
  error.message = "appending to " + options_.path + ": " + error.message;
  error_ = std::move(error);
  news_.NotifyAll();
}

Status RecordSession::Usable() const {
  if (error_) return Fail(*error_);
  return {};
}

// ---- one record ------------------------------------------------------------------------------------

Task<Result<uint64_t>> RecordSession::Append(std::shared_ptr<RecordSession> self, Buffer bytes, bool sync) {
  if (bytes.empty() || bytes.size() > self->max_record()) {
    co_return Fail(Code::kInvalidArgument, "a record of " + self->options_.path + " has 1 to " +
                                               std::to_string(self->max_record()) + " bytes, this one has " +
                                               std::to_string(bytes.size()));
  }
  while (self->in_flight_ >= RecordAppender::kMaxInFlight && self->usable()) co_await self->news_.Wait();
  PICKET_CO_TRY(self->Usable());
  if (self->closing_) co_return Fail(Code::kInvalidArgument, self->options_.path + ": the appender is closed");
  Record record;
  record.crc = Crc32c(bytes.view());
  record.bytes = std::move(bytes);
  record.sequence = self->all_->NextSequence();
  record.sync = sync;
  ++self->in_flight_;
  auto offset = co_await Deliver(self, std::move(record));
  --self->in_flight_;
  self->news_.NotifyAll();
  co_return offset;
}

Task<Result<uint64_t>> RecordSession::Deliver(std::shared_ptr<RecordSession> self, Record record) {
  while (true) {
    PICKET_CO_TRY(self->Usable());
    PlacePtr place = self->place_;
    if (!place) {
      PICKET_CO_TRY(co_await Move(self, nullptr, std::nullopt));
      continue;
    }
    if (record.home && record.home->chunk != place->chunk() && !PICKET_MUTANT(client_record_home)) {
      auto found = co_await self->Lookup(record);
      if (!found) {
        if (found.error().code != Code::kDedupWindowExceeded) self->GiveUp(found.error());
        co_return Fail(std::move(found).error());
      }
      if (*found) co_return self->Acknowledged(record, nullptr, **found);
      record.home.reset();
      continue;
    }
    if (!record.home || record.home->chunk != place->chunk()) {
      record.home = {place->index, place->chunk(), place->known_end};
    }
    auto answer = co_await self->Send(place, record);
    if (answer) {
      place->known_end = std::max(place->known_end, answer->length());
      co_return self->Acknowledged(record, place, answer->offset());
    }
    Error error = std::move(answer).error();
    if (error.code == Code::kInvalidArgument || error.code == Code::kDedupWindowExceeded) co_return Fail(error);
    if (error.code == Code::kChunkFull) record.home.reset();  // definitely not there
    PICKET_CO_TRY(co_await Move(self, place, std::move(error)));
  }
}

Task<Result<proto::AppendRecordResponse>> RecordSession::Send(PlacePtr place, const Record& record) {
  proto::AppendRecordRequest request;
  *request.mutable_token() = place->grant.token();
  request.set_sequence(record.sequence);
  request.set_known_end(record.home->known_end);
  request.set_sync(record.sync);
  request.set_target_incarnation(place->grant.chain(0).incarnation());
  request.set_crc(record.crc);
  auto channel = channels_.Get(place->endpoint());
  auto reply = co_await channel->Call(proto::APPEND_RECORD, request.SerializeAsString(), Payload(record.bytes),
                                      record.sync ? ChunkStream::kSyncTimeout : ChunkStream::kPacketTimeout);
  if (!reply) co_return Fail(std::move(reply).error());
  proto::AppendRecordResponse response;
  if (!response.ParseFromString(reply->body)) {
    co_return Fail(Code::kCorrupt,
                   "the answer of the chunkserver at " + place->endpoint().ToString() + " does not parse");
  }
  co_return response;
}

uint64_t RecordSession::Acknowledged(const Record& record, const PlacePtr& by, uint64_t offset) {
  ProtocolEvent e{};
  e.kind = ProtocolEvent::Kind::kRecordAcknowledged;
  e.chunk = record.home->chunk;
  e.generation = generation();
  if (by) {
    e.server = by->primary();
    e.version = Version(by->grant.token().version());
  }
  e.length = offset;
  e.value = record.sequence;
  env_.Trace(e);
  Progressed();
  return record.home->index * opened_.status().chunk_size() + offset;
}

Task<Result<std::optional<uint64_t>>> RecordSession::Lookup(Record record) {
  const Record::Home home = *record.home;
  Error last(Code::kUnavailable, "no replica of chunk " + ToString(home.chunk) + " can say whether it has the record");
  const Mono end = Patience();
  while (!error_) {
    auto file = co_await Look(home.index);
    if (!file) co_return Fail(std::move(file).error());
    for (const auto& location : file->chunks()) {
      if (location.chunk() != home.chunk.value || !location.sealed()) continue;
      for (const auto& replica : location.replicas()) {
        if (!replica.counted()) continue;
        proto::LookupRecordRequest request;
        request.set_chunk(home.chunk.value);
        request.set_version(location.version());
        request.set_client(master_->client().value);
        request.set_sequence(record.sequence);
        request.set_known_end(home.known_end);
        auto channel = channels_.Get(Endpoint(replica.hop().host(), static_cast<uint16_t>(replica.hop().port())));
        auto answer =
            co_await channel->Call<proto::LookupRecordResponse>(proto::LOOKUP_RECORD, request, kLookupTimeout);
        if (!answer) {
          last = std::move(answer).error();
          if (last.code == Code::kDedupWindowExceeded) co_return Fail(std::move(last));
          continue;
        }
        if (answer->applied()) co_return answer->offset();
        if (answer->definite()) co_return std::nullopt;
      }
    }
    if (env_.Now() >= end) break;
    co_await patience_.BackOff(last);
  }
  PICKET_CO_TRY(Usable());
  co_return Fail(std::move(last));
}

Task<Status> RecordSession::Close(std::shared_ptr<RecordSession> self) {
  while (self->in_flight_ > 0) co_await self->news_.Wait();
  if (--self->appenders_ > 0) co_return self->Usable();
  // This client may have opened the file again under the same generation: then the session is the new one's.
  if (self->error_ && !self->all_->Current(*self)) co_return Fail(*self->error_);
  self->keeper_->Remove(InodeId(self->opened_.status().inode()), self->generation());
  // After a failure too: whoever wants the file otherwise shall not wait for this lease.
  if (self->error_ && LosesSession(self->error_->code)) co_return Fail(*self->error_);
  self->closing_ = true;
  proto::ReleaseRequest request;
  self->Sign(&request);
  auto released =
      co_await self->master_->Mutate<proto::ReleaseResponse>(proto::RELEASE, std::move(request), self->Patience());
  if (!released) self->GiveUp(std::move(released).error());
  co_return self->Usable();
}

}  // namespace picket
