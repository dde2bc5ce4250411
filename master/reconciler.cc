#include "master/reconciler.h"

#include "common/env/sync.h"
#include "common/obs/log.h"

namespace picket {

using State = MemberAnswer::State;

std::vector<ServerId> Reconciler::JoinerCandidates(const Round& round, const std::vector<ServerId>& left_out,
                                                   size_t count, uint64_t chunk_bytes) const {
  PlacementRequest request;
  request.count = count;
  request.chunk_bytes = chunk_bytes;
  request.exclude = left_out;
  request.tie = round.attempt.to.value;
  for (const Seat& seat : round.seats) {
    request.exclude.push_back(seat.answer.server);
    const Server* server = servers_.Find(seat.answer.server);
    if (server != nullptr && seat.answer.state == State::kAnswered) request.racks.push_back(server->rack);
  }
  return Place(request, servers_.Candidates());
}

Task<Result<Agreed>> Reconciler::Fill(Attempt attempt, Version from, Agreed member, proto::ReconcileSet set) {
  const uint64_t length = set.length();
  const std::vector<uint32_t> crcs(set.block_crcs().begin(), set.block_crcs().end());
  if (!member.instance) {  // a joiner
    proto::CreateReplicaRequest create;
    create.set_chunk(attempt.writer.chunk.value);
    create.set_inode(attempt.writer.inode.value);
    create.set_version(from.value);
    create.set_generation(attempt.writer.generation.value);
    create.set_joiner(true);
    auto record = attempts_.Check(attempt);
    if (!record) co_return Fail(record.error());
    create.set_chunk_size(record->chunk_size());
    auto created = co_await orders_.Send<proto::CreateReplicaResponse>(
        proto::CREATE_REPLICA, member.server, member.incarnation, attempt.id, std::move(create), order_timeout_);
    if (!created) co_return Fail(created.error());
    member.instance = InstanceId(created->instance());
    servers_.NoteCreation(member.server);
  }
  PICKET_CO_TRY(attempts_.Check(attempt));
  proto::AdvanceVersionRequest request;
  request.set_chunk(attempt.writer.chunk.value);
  request.set_from(from.value);
  request.set_to(attempt.to.value);
  request.set_generation(attempt.writer.generation.value);
  request.set_reopen(true);
  *request.mutable_set() = std::move(set);
  // Filling may move the whole chunk.
  auto response = co_await orders_.Send<proto::AdvanceVersionResponse>(proto::ADVANCE_VERSION, member.server,
                                                                       member.incarnation, attempt.id,
                                                                       std::move(request), 3 * order_timeout_);
  if (!response) co_return Fail(response.error());
  const std::vector<uint32_t> got(response->block_crcs().begin(), response->block_crcs().end());
  if (response->version() != attempt.to.value || response->length() != length || got != crcs ||
      response->incarnation() != member.incarnation.value) {
    Error error(Code::kCorrupt, "chunkserver " + ToString(member.server) + " is not equal after the reconciliation");
    error.server = member.server.value;
    co_return Fail(std::move(error));
  }
  member.instance = InstanceId(response->instance());
  member.received = env_.Now();
  co_return member;
}

Task<Result<Formed>> Reconciler::MakeEqual(std::shared_ptr<Round> round, GrantPlan plan,
                                              std::vector<ServerId> left_out, Failures* failures) {
  const Version exactly = round->attempt.to;
  auto next = co_await attempts_.Next(round->attempt);
  if (!next) co_return Fail(next.error());
  round->over = true;
  Formed formed;
  formed.attempt = *next;
  formed.length = plan.length;

  const Seat& source = round->seats[plan.source];
  proto::ReconcileSet set;
  set.set_length(plan.length);
  for (uint32_t crc : plan.block_crcs) set.add_block_crcs(crc);
  const Server* source_server = servers_.Find(source.answer.server);
  if (source_server == nullptr || source_server->incarnation != source.incarnation) {
    failures->insert_or_assign(source.answer.server, Error(Code::kUnavailable, "the source of the content restarted"));
    co_return formed;
  }
  set.mutable_source()->set_server(source.answer.server.value);
  set.mutable_source()->set_host(source_server->endpoint.host);
  set.mutable_source()->set_port(source_server->endpoint.port);
  set.mutable_source()->set_incarnation(source.incarnation.value);
  set.set_source_version(formed.attempt.to.value);

  // The source first: the others then fill from content that is final.
  std::vector<Agreed> members;
  members.push_back(Agreed{source.answer.server, source.incarnation, source.instance, source.received, source.answer.clean});
  for (size_t i : plan.set) {
    const Seat& seat = round->seats[i];
    if (i == plan.source) continue;
    members.push_back(Agreed{seat.answer.server, seat.incarnation, seat.instance, seat.received, seat.answer.clean});
  }
  auto record = attempts_.Check(formed.attempt);
  if (!record) co_return Fail(record.error());
  if (plan.joiners > 0) {
    for (ServerId id : JoinerCandidates(*round, left_out, plan.joiners, record->chunk_size())) {
      members.push_back(Agreed{id, servers_.Find(id)->incarnation, InstanceId(), Mono(), false});
    }
  }
  PICKET_LOG(env_, kInfo, "chunk {}: {} replicas are made equal at {} bytes under version {}, {} of them new",
             ToString(formed.attempt.writer.chunk), members.size(), plan.length, formed.attempt.to.ToString(),
             plan.joiners);

  auto first = co_await Fill(formed.attempt, exactly, members[0], set);
  std::vector<Result<Agreed>> filled;
  filled.push_back(std::move(first));
  if (filled[0]) {
    std::vector<Task<Result<Agreed>>> fills;
    for (size_t i = 1; i < members.size(); ++i) fills.push_back(Fill(formed.attempt, exactly, members[i], set));
    auto rest = co_await WhenAll(&env_, std::move(fills));
    for (auto& r : rest) filled.push_back(std::move(r));
  }
  auto still = attempts_.Check(formed.attempt);
  if (!still) co_return Fail(still.error());
  // If one answer is missing the attempt is void (F2).
  bool complete = true;
  for (size_t i = 0; i < filled.size(); ++i) {
    if (filled[i]) continue;
    PICKET_LOG(env_, kWarning, "chunk {}: {} does not take part: {}", ToString(formed.attempt.writer.chunk),
               ToString(members[i].server), filled[i].error().ToString());
    complete = false;
    // A member that could not be reached is asked again, as it may come back with its bytes.
    if (i >= plan.set.size() || !IsUnreached(filled[i].error().code)) failures->insert_or_assign(members[i].server, filled[i].error());
  }
  if (!complete) co_return formed;
  // In the order of the members, new ones last.
  for (auto& member : filled) formed.set.push_back(std::move(*member));
  co_return formed;
}

}  // namespace picket
