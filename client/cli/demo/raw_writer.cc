#include "client/cli/demo/raw_writer.h"

#include <random>

#include "common/base/crc32c.h"

namespace picket::cli::demo {
namespace {

constexpr uint64_t kChunkBytes = 1 << 20;
constexpr uint32_t kReplicas = 3;
constexpr uint32_t kHardLimitMs = 120'000;  // nobody renews it

uint64_t NewClientId() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

}  // namespace

Endpoint EndpointOf(const proto::Hop& hop) { return {hop.host(), static_cast<uint16_t>(hop.port())}; }

RawWriter::RawWriter(Stage& stage, std::string path) : stage_(stage), path_(std::move(path)), id_(NewClientId()) {}

proto::MutationId RawWriter::Mutation(uint64_t sequence) const {
  proto::MutationId id;
  id.set_client(id_);
  id.set_sequence(sequence);
  id.set_first_unacked(1);
  return id;
}

Result<proto::CreateResponse> RawWriter::Create() {
  proto::CreateRequest request;
  *request.mutable_mutation() = Mutation(1);
  request.set_path(path_);
  request.set_parents(true);
  request.set_mode(0644);
  request.set_owner(stage_.client().user());
  request.set_group(stage_.client().user());
  request.set_replication(kReplicas);
  request.set_chunk_size(kChunkBytes);
  request.set_holder(id_);
  request.mutable_limits()->set_hard_ms(kHardLimitMs);
  auto created = stage_.wire().Call<proto::CreateResponse>(stage_.master(), proto::CREATE, request, kCallTimeout);
  if (created) {
    inode_ = created->status().inode();
    generation_ = created->generation();
  }
  return created;
}

Status RawWriter::AddChunk() {
  proto::AddChunkRequest request;
  *request.mutable_mutation() = Mutation(next_sequence_++);
  Sign(&request);
  auto grant = stage_.wire().Call<proto::WriteGrant>(stage_.master(), proto::ADD_CHUNK, request, kCallTimeout);
  if (!grant) return Fail(std::move(grant).error());
  grant_ = std::move(*grant);
  return {};
}

Status RawWriter::GrantWithoutPrimary(uint64_t acked) {
  proto::GrantRequest request;
  *request.mutable_mutation() = Mutation(next_sequence_++);
  Sign(&request);
  request.set_chunk(grant_.token().chunk());
  request.set_version(grant_.token().version());
  request.set_acked_length(acked);
  request.add_failed_servers(grant_.chain(0).server());
  request.set_reason("the primary does not answer");
  Result<proto::WriteGrant> grant;
  PICKET_TRY(Until("the master has a set without the old primary", [&] {
    grant = stage_.wire().Call<proto::WriteGrant>(stage_.master(), proto::GRANT, request, kCallTimeout);
    return grant.has_value() || !IsRetryable(grant.error().code);
  }));
  if (!grant) return Fail(std::move(grant).error());
  grant_ = std::move(*grant);
  return {};
}

Status RawWriter::Send(const proto::Hop& to, const proto::WriteToken& token, const Packet& packet,
                       std::chrono::milliseconds timeout) {
  proto::WritePacketRequest request;
  *request.mutable_token() = token;
  request.set_serial(packet.serial);
  request.set_offset(packet.offset);
  request.add_piece_crcs(Crc32c(packet.bytes));
  request.set_acked_length(packet.offset);
  request.set_target_incarnation(to.incarnation());
  auto answer = stage_.wire().Call<proto::WritePacketResponse>(EndpointOf(to), proto::WRITE_PACKET, request, timeout,
                                                               packet.bytes);
  if (!answer) return Fail(std::move(answer).error());
  return {};
}

Status RawWriter::SealAndClose(uint64_t length) {
  proto::SealRequest seal;
  *seal.mutable_token() = grant_.token();
  seal.set_length(length);
  seal.set_sync(true);
  seal.set_target_incarnation(grant_.chain(0).incarnation());
  auto sealed = stage_.wire().Call<proto::SealResponse>(EndpointOf(grant_.chain(0)), proto::SEAL, seal, kCallTimeout);
  if (!sealed) return Fail(std::move(sealed).error());
  proto::CommitSealRequest commit;
  *commit.mutable_mutation() = Mutation(next_sequence_++);
  Sign(&commit);
  commit.set_chunk(grant_.token().chunk());
  commit.set_version(grant_.token().version());
  commit.set_length(sealed->length());
  commit.set_digest(sealed->digest());
  *commit.mutable_sealed_servers() = sealed->sealed_servers();
  commit.set_durable(true);
  commit.set_close(true);
  auto done = stage_.wire().Call<proto::CommitSealResponse>(stage_.master(), proto::COMMIT_SEAL, commit, kCallTimeout);
  if (!done) return Fail(std::move(done).error());
  return {};
}

}  // namespace picket::cli::demo
