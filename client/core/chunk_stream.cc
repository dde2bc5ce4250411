#include "client/core/chunk_stream.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/mutation.h"

namespace picket {

ChunkStream::ChunkStream(Env& env, proto::WriteGrant grant, bool sync_at_seal, std::shared_ptr<Signal> news)
    : env_(env),
      grant_(std::move(grant)),
      sync_at_seal_(sync_at_seal),
      news_(std::move(news)),
      channel_(std::make_unique<Channel>(env, primary_endpoint())),
      end_(grant_.length()),
      acked_(grant_.length()) {}

Task<> ChunkStream::Connect(std::shared_ptr<ChunkStream> self) {
  auto connected = co_await self->channel_->Connect(kConnectTimeout);
  // Silence here says that nobody is there, not that a packet was left unanswered.
  if (!connected) self->Break(Error(Code::kUnavailable, std::move(connected).error().message));
}

void ChunkStream::Send(const Packet& packet, bool sync) {
  PICKET_CHECK(packet.offset == end_);
  proto::WritePacketRequest request;
  request.mutable_piece_crcs()->Assign(packet.crcs.begin(), packet.crcs.end());
  request.set_offset(end_);
  request.set_sync(sync);
  end_ = packet.end();
  Transmit(std::move(request), Payload(packet.data));
}

void ChunkStream::Overwrite(const Packet& packet, bool sync) {
  PICKET_CHECK(packet.end() <= end_);
  proto::WritePacketRequest request;
  request.mutable_piece_crcs()->Assign(packet.crcs.begin(), packet.crcs.end());
  request.set_offset(packet.offset);
  request.set_overwrite(true);
  request.set_sync(sync);
  Transmit(std::move(request), Payload(packet.data));
}

void ChunkStream::SendSync() {
  proto::WritePacketRequest request;
  request.set_offset(end_);
  request.set_sync(true);
  Transmit(std::move(request), Payload());
}

void ChunkStream::Transmit(proto::WritePacketRequest request, Payload payload) {
  if (broken_ || !channel_) return;
  *request.mutable_token() = grant_.token();
  request.set_serial(++serial_);
  request.set_acked_length(acked_);
  request.set_target_incarnation(grant_.chain(0).incarnation());
  request.set_unsynced_seal(!sync_at_seal_);
  const bool sync = request.sync();
  auto call = channel_->Start(proto::WRITE_PACKET, request.SerializeAsString(), std::move(payload),
                              sync ? kSyncTimeout : kPacketTimeout);
  ++in_flight_;
  if (sync) sync_asked_ = end_;
  env_.Spawn(AwaitAnswer(shared_from_this(), std::move(call), end_, serial_, sync));
}

Task<> ChunkStream::AwaitAnswer(std::shared_ptr<ChunkStream> self, std::unique_ptr<PendingCall> call, uint64_t end,
                                uint64_t serial, bool sync) {
  auto answer = co_await call->Wait();
  --self->in_flight_;
  if ((self->broken_ && !self->expired()) || !self->channel_) co_return;
  if (!answer) {
    // Behind a packet that was refused for its token, the next ones are out of order too.
    const bool follows = self->expired() && answer.error().code == Code::kOutOfOrder;
    if (!follows) self->Break(std::move(answer).error());
    self->news_->NotifyAll();
    co_return;
  }
  self->acked_ = std::max(self->acked_, end);
  self->acked_serial_ = std::max(self->acked_serial_, serial);
  if (sync) {
    self->synced_ = std::max(self->synced_, end);
    self->synced_serial_ = std::max(self->synced_serial_, serial);
  }
  self->news_->NotifyAll();
}

Task<Result<proto::SealResponse>> ChunkStream::Seal(std::shared_ptr<ChunkStream> self, bool sync) {
  PICKET_CHECK(self->in_flight_ == 0);
  proto::SealRequest request;
  *request.mutable_token() = self->grant_.token();
  request.set_length(self->end_);
  request.set_sync(sync);
  request.set_target_incarnation(self->grant_.chain(0).incarnation());
  for (bool repeated = false;; repeated = true) {
    if (!self->channel_) co_return Fail(Code::kConnectionLost, "the stream was stopped");
    auto answer = co_await self->channel_->Call<proto::SealResponse>(proto::SEAL, request, kSyncTimeout);
    if (answer) {
      for (const auto& hop : self->grant_.chain()) {
        const bool named = std::ranges::find(answer->sealed_servers(), hop.server()) != answer->sealed_servers().end();
        if (!named && !PICKET_MUTANT(client_seal_every_member)) {
          co_return Fail(Code::kOutOfOrder, "server " + ToHex(hop.server()) + " is not among those that sealed");
        }
      }
      co_return std::move(*answer);
    }
    const bool lost = answer.error().code == Code::kConnectionLost || answer.error().code == Code::kUnavailable;
    if (!lost || repeated) co_return Fail(std::move(answer).error());
  }
}

void ChunkStream::Break(Error cause) {
  if (broken_ && !(expired() && cause.code != Code::kTokenExpired)) return;
  broken_ = std::move(cause);
  news_->NotifyAll();
}

void ChunkStream::Renew(proto::WriteToken token) {
  PICKET_CHECK(expired() && in_flight_ == 0);
  *grant_.mutable_token() = std::move(token);
  broken_.reset();
  serial_ = acked_serial_;
  end_ = acked_;
  sync_asked_ = synced_;
}

void ChunkStream::Stop() { channel_.reset(); }

}  // namespace picket
