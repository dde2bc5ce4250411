#include "master/lease_giver.h"

namespace picket {

proto::WriteToken LeaseGiver::ToToken(const ChunkWriter& writer, const record::Chunk& record) const {
  proto::WriteToken token;
  token.set_inode(writer.inode.value);
  token.set_chunk(writer.chunk.value);
  token.set_version(record.current());
  token.set_generation(writer.generation.value);
  token.set_holder(writer.holder.value);
  const auto session = sessions_.Find(writer.inode);
  token.set_mode(session ? session->mode : proto::EXCLUSIVE);
  keys_.Sign(&token);
  return token;
}

proto::WriteGrant LeaseGiver::ToGrant(const ChunkWriter& writer, const record::Chunk& record, uint64_t length) const {
  proto::WriteGrant grant;
  *grant.mutable_token() = ToToken(writer, record);
  for (const record::Member& member : record.members()) {
    proto::Hop* hop = grant.add_chain();
    hop->set_server(member.server());
    hop->set_incarnation(member.incarnation());
    if (const Server* server = servers_.Find(ServerId(member.server()))) {
      hop->set_host(server->endpoint.host);
      hop->set_port(server->endpoint.port);
    }
  }
  grant.set_length(length);
  grant.set_chunk_size(record.chunk_size());
  grant.set_lease_ms(static_cast<uint32_t>(leases_.period() / 1ms));
  grant.set_replication(record.replication());
  return grant;
}

Task<Status> LeaseGiver::Give(Attempt attempt, proto::WriteGrant grant, Mono answered) {
  const ServerId primary(grant.chain(0).server());
  const Incarnation incarnation(grant.chain(0).incarnation());
  proto::GrantLeaseRequest request;
  request.set_chunk(attempt.writer.chunk.value);
  request.set_version(attempt.to.value);
  request.set_generation(attempt.writer.generation.value);
  *request.mutable_members() = grant.chain();
  request.set_lease_ms(grant.lease_ms());
  Status last;
  for (int i = 0; i < kTries; ++i) {
    PICKET_CO_TRY(attempts_.Check(attempt));
    // Counted from here on: the order may leave.
    leases_.Grant(attempt.writer.chunk, attempt.to, primary, incarnation, answered, grant.length());
    auto response = co_await orders_.Send<proto::GrantLeaseResponse>(proto::GRANT_LEASE, primary, incarnation,
                                                                     attempt.id, request, kTimeout);
    if (response) {
      ProtocolEvent event;
      event.kind = ProtocolEvent::Kind::kLeaseGranted;
      event.server = primary;
      event.chunk = attempt.writer.chunk;
      event.version = attempt.to;
      event.generation = attempt.writer.generation;
      env_.Trace(event);
      co_return Status();
    }
    last = Fail(response.error());
  }
  co_return last;
}

}  // namespace picket
