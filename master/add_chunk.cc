#include "master/add_chunk.h"

#include <algorithm>

#include "common/base/mutation.h"
#include "common/env/sync.h"
#include "common/obs/log.h"

namespace picket {

AddChunk::AddChunk(Env& env, MetaStore& store, AnswerTable& answers, Namespace& names, SessionTable& sessions,
                   ChunkTable& chunks, ServerTable& servers, LocationMap& locations, Orders& orders,
                   LeaseGiver& giver, Granter& granter, StandingGrants& standing, const Serving& serving,
                   Options options)
    : env_(env),
      store_(store),
      answers_(answers),
      names_(names),
      sessions_(sessions),
      chunks_(chunks),
      servers_(servers),
      locations_(locations),
      orders_(orders),
      giver_(giver),
      granter_(granter),
      standing_(standing),
      serving_(serving),
      options_(options) {}

Result<AddChunk::Spot> AddChunk::Check(const proto::AddChunkRequest& request) const {
  PICKET_TRY(serving_.Check());
  PICKET_TRY(store_.CheckWritable());
  const InodeId inode(request.inode());
  PICKET_TRY(sessions_.CheckWriter(inode, Generation(request.generation()), ClientId(request.holder())));
  auto file = names_.Get(inode);
  if (!file) return Fail(file.error());
  const uint64_t count = file->inode.chunk_count();
  const auto refuse = [&](const std::string& why) {
    return Fail(Error(Code::kConflict, "inode " + ToString(inode) + " cannot get chunk " +
                                           std::to_string(request.index()) + " now: " + why)
                    .WithTokens(request.index(), count));
  };
  if (request.index() >= kMaxFileBytes / std::max<uint64_t>(file->inode.chunk_size(), 1)) {
    return Fail(Code::kInvalidArgument, "inode " + ToString(inode) + " cannot get chunk " +
                                            std::to_string(request.index()) + ": files end at " +
                                            std::to_string(kMaxFileBytes) + " bytes");
  }
  const auto session = sessions_.Find(inode);
  if (session->mode == proto::SHARED_LOCK) return refuse("under a shared lock nobody writes");
  auto there = chunks_.At(inode, request.index());
  if (!there) return Fail(there.error());
  Spot spot{std::move(*file), ChunkId()};
  if (*there) {
    if ((*there)->record.sealed()) return refuse("chunk " + ToString((*there)->id) + " is there, and sealed");
    spot.present = (*there)->id;
    return spot;
  }
  if (session->open_chunk) return refuse("chunk " + ToString(session->open_chunk) + " is not sealed");
  if (session->shared() && request.index() > count) return refuse("it has " + std::to_string(count) + " chunks");
  return spot;
}

std::vector<ServerId> AddChunk::Choose(const Entry& file, const std::vector<ServerId>& exclude, size_t count,
                                       const std::vector<Created>& present) const {
  PlacementRequest place;
  place.count = count;
  place.chunk_bytes = file.inode.chunk_size();
  place.exclude = exclude;
  place.tie = env_.Random();
  for (const Created& c : present) {
    if (const Server* server = servers_.Find(c.server)) place.racks.push_back(server->rack);
  }
  return Place(place, servers_.Candidates());
}

Task<> AddChunk::AwaitServers(proto::AddChunkRequest request, Entry file, Mono deadline) {
  const std::vector<ServerId> exclude;
  const Mono limit = std::min(servers_.complete_by(), deadline - 1s);
  while (env_.Now() < limit &&
         Choose(file, exclude, file.inode.replication(), {}).size() < file.inode.replication()) {
    co_await servers_.changed().WaitFor(limit - env_.Now());
  }
}

Task<Result<proto::WriteGrant>> AddChunk::Run(proto::AddChunkRequest request, Mono deadline) {
  auto admission = co_await answers_.Admit(request.mutation(), proto::ADD_CHUNK);
  if (!admission) co_return Fail(admission.error());
  ChunkId present;
  if (admission->answer) {
    PICKET_CO_TRY(co_await store_.ReadBarrier());
    auto kept = standing_.Repeat(*admission->answer);
    if (kept || kept.error().code != Code::kSuperseded) co_return kept;
    proto::WriteGrant first;
    first.ParseFromString(*admission->answer);
    present = ChunkId(first.token().chunk());
  }
  FifoLock::Ticket turn;
  const InodeId inode(request.inode());
  if (const auto session = sessions_.Find(inode); session && session->shared()) {
    auto mine = co_await standing_.Turn(inode, deadline);
    if (!mine) co_return Fail(mine.error());
    turn = std::move(*mine);
  }
  if (!present) {
    auto spot = Check(request);
    if (!spot) co_return Fail(spot.error());
    if (!spot->present) {
      auto made = co_await Make(request, std::move(spot->file), deadline);
      co_return made;
    }
    present = spot->present;
  }
  if (turn.held()) {
    const ChunkWriter writer{present, inode, Generation(request.generation()), ClientId(request.holder())};
    if (auto standing = standing_.Find(writer, Version(), {})) {
      PICKET_CO_TRY(co_await store_.ReadBarrier());
      co_return std::move(*standing);
    }
  }
  auto granted = co_await GrantAgain(request, present, "its chunk is there already", deadline);
  co_return granted;
}

Task<Result<proto::WriteGrant>> AddChunk::GrantAgain(proto::AddChunkRequest request, ChunkId chunk, std::string reason,
                                                     Mono deadline) {
  Granter::Ask ask;
  ask.writer = ChunkWriter{chunk, InodeId(request.inode()), Generation(request.generation()), ClientId(request.holder())};
  ask.reason = std::move(reason);
  ask.deadline = deadline;
  ask.remember = [this, mutation = request.mutation()](Batch* batch, const proto::WriteGrant& answer) {
    answers_.Remember(batch, mutation, proto::ADD_CHUNK, answer.SerializeAsString());
  };
  auto granted = co_await granter_.Grant(std::move(ask));
  co_return granted;
}

Task<Result<proto::WriteGrant>> AddChunk::Make(proto::AddChunkRequest request, Entry file, Mono deadline) {
  co_await AwaitServers(request, file, deadline);

  Attempt attempt;
  attempt.id = orders_.NewAttempt();
  attempt.writer = ChunkWriter{chunks_.NewId(), file.id, Generation(request.generation()), ClientId(request.holder())};
  record::Chunk fresh;
  attempt.to = chunks_.NextVersion(fresh);
  fresh.set_index(request.index());
  fresh.set_minted(attempt.to.value);
  fresh.set_current(attempt.to.value);
  fresh.set_generation(request.generation());
  fresh.set_chunk_size(file.inode.chunk_size());
  fresh.set_replication(file.inode.replication());
  TraceChunk(env_, ProtocolEvent::Kind::kVersionMinted, attempt.writer.chunk, fresh);

  std::vector<ServerId> exclude;
  for (uint64_t id : request.exclude_servers()) exclude.push_back(ServerId(id));
  Replicas replicas = co_await CreateReplicas(attempt, file, std::move(exclude));
  NoteReplicas(attempt, replicas.created);
  if (replicas.created.size() < std::min(options_.min_write_replicas, file.inode.replication())) {
    const Error error = NotEnough(file, replicas);
    co_await Discard(attempt, std::move(fresh), replicas.ordered);
    co_return Fail(error);
  }
  uint64_t revision = 0;
  auto staged = Stage(request, attempt, replicas.created, &revision);
  if (!staged) {
    co_await Discard(attempt, std::move(fresh), replicas.ordered);
    co_return Fail(staged.error());
  }
  PICKET_CO_TRY(co_await store_.Durable(revision));
  TraceChunk(env_, ProtocolEvent::Kind::kVersionCommitted, attempt.writer.chunk, fresh, replicas.created.size());

  auto given = co_await giver_.Give(attempt, *staged, replicas.created[0].received);
  if (given) co_return std::move(*staged);
  if (given.error().code == Code::kSuperseded) co_return Fail(given.error());
  PICKET_LOG(env_, kWarning, "chunk {}: the first primary did not take its lease: {}", ToString(attempt.writer.chunk),
             given.error().ToString());
  auto granted = co_await GrantAgain(request, attempt.writer.chunk, "the first primary did not take its lease", deadline);
  co_return granted;
}

Task<AddChunk::Replicas> AddChunk::CreateReplicas(Attempt attempt, Entry file, std::vector<ServerId> exclude) {
  Replicas out;
  out.tried = std::move(exclude);
  // Once more for the targets that failed.
  for (int turn = 0; turn < 2; ++turn) {
    const size_t missing = file.inode.replication() - out.created.size();
    std::vector<ServerId> targets = Choose(file, out.tried, missing, out.created);
    if (targets.empty()) break;
    out.ordered += targets.size();
    std::vector<Task<Result<Created>>> tasks;
    for (ServerId target : targets) {
      servers_.NoteCreation(target);
      tasks.push_back(CreateOne(attempt, file, target));
    }
    auto results = co_await WhenAll(&env_, std::move(tasks));
    for (size_t i = 0; i < results.size(); ++i) {
      out.tried.push_back(targets[i]);
      if (results[i]) {
        out.created.push_back(*results[i]);
        continue;
      }
      if (!out.failures.empty()) out.failures += ", ";
      out.failures += ToString(targets[i]) + " (" + std::string(CodeName(results[i].error().code)) + ": " +
                      results[i].error().message + ")";
      PICKET_LOG(env_, kWarning, "chunk {}: chunkserver {} did not create a replica: {}", ToString(attempt.writer.chunk),
                 ToString(targets[i]), results[i].error().ToString());
    }
    if (out.created.size() >= file.inode.replication()) break;
  }
  co_return out;
}

Task<Result<AddChunk::Created>> AddChunk::CreateOne(Attempt attempt, Entry file, ServerId id) {
  const Server* server = servers_.Find(id);
  Created created;
  created.server = id;
  created.incarnation = server == nullptr ? Incarnation() : server->incarnation;
  proto::CreateReplicaRequest request;
  request.set_chunk(attempt.writer.chunk.value);
  request.set_inode(file.id.value);
  request.set_version(attempt.to.value);
  request.set_generation(attempt.writer.generation.value);
  request.set_chunk_size(file.inode.chunk_size());
  auto response = co_await orders_.Send<proto::CreateReplicaResponse>(
      proto::CREATE_REPLICA, id, created.incarnation, attempt.id, std::move(request), options_.order_timeout);
  if (!response) co_return Fail(response.error());
  if (response->incarnation() != created.incarnation.value) {
    co_return Fail(Code::kUnavailable, "it has restarted in the meantime");
  }
  created.instance = InstanceId(response->instance());
  created.received = env_.Now();
  co_return created;
}

Result<proto::WriteGrant> AddChunk::Stage(const proto::AddChunkRequest& request, const Attempt& attempt,
                                          const std::vector<Created>& created, uint64_t* revision) {
  auto spot = Check(request);
  if (!spot && !PICKET_MUTANT(add_chunk_rechecks)) return Fail(spot.error());
  if (spot && spot->present) {
    return Fail(Error(Code::kConflict, "chunk " + ToString(spot->present) + " was made at the same place meanwhile"));
  }
  auto file = names_.Get(attempt.writer.inode);
  if (!file) return Fail(file.error());
  record::Chunk record;
  record.set_inode(file->id.value);
  record.set_index(request.index());
  record.set_minted(attempt.to.value);
  record.set_current(attempt.to.value);
  record.set_generation(attempt.writer.generation.value);
  record.set_chunk_size(file->inode.chunk_size());
  record.set_replication(file->inode.replication());
  for (const Created& c : created) {
    record::Member* member = record.add_members();
    member->set_server(c.server.value);
    member->set_incarnation(c.incarnation.value);
  }
  file->inode.set_chunk_count(std::max(file->inode.chunk_count(), request.index() + 1));
  proto::WriteGrant grant = giver_.ToGrant(attempt.writer, record, 0);
  grant.set_revision(store_.next_revision());
  Batch batch;
  chunks_.Put(&batch, attempt.writer.chunk, record);
  names_.PutInode(&batch, &*file);
  sessions_.SetOpenChunk(&batch, file->id, attempt.writer.chunk);
  answers_.Remember(&batch, request.mutation(), proto::ADD_CHUNK, grant.SerializeAsString());
  auto staged = store_.Stage(std::move(batch));
  if (!staged) return Fail(staged.error());
  *revision = *staged;
  return grant;
}

Task<> AddChunk::Discard(Attempt attempt, record::Chunk record, size_t ordered) {
  // An order without an answer may have been obeyed, or will be.
  if (ordered == 0) co_return;
  Batch batch;
  chunks_.TurnToGarbage(&batch, attempt.writer.chunk, std::move(record));
  // On a failure they stay behind as orphans.
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) {
    PICKET_LOG(env_, kWarning, "chunk {}: up to {} replicas become orphans: {}", ToString(attempt.writer.chunk), ordered,
               committed.error().ToString());
  }
}

void AddChunk::NoteReplicas(const Attempt& attempt, const std::vector<Created>& created) {
  for (const Created& c : created) {
    const Server* server = servers_.Find(c.server);
    if (server == nullptr || server->incarnation != c.incarnation) continue;
    Replica replica;
    replica.server = c.server;
    replica.session = server->session;
    replica.version = attempt.to;
    replica.generation = attempt.writer.generation;
    replica.state = proto::OPEN;
    replica.instance = c.instance;
    locations_.Update(attempt.writer.chunk, replica);
  }
}

Error AddChunk::NotEnough(const Entry& file, const Replicas& replicas) const {
  std::string live;
  for (const auto& [id, server] : servers_.all()) {
    if (servers_.LivenessOf(server) != Liveness::kLive) continue;
    live += (live.empty() ? "" : ", ") + ToString(id);
  }
  const std::string full = DescribeUnfit(file.inode.chunk_size(), servers_.Candidates());
  Error error(Code::kNotEnoughReplicas,
              "a new chunk of inode " + ToString(file.id) + " got " + std::to_string(replicas.created.size()) +
                  " of at least " + std::to_string(std::min(options_.min_write_replicas, file.inode.replication())) +
                  " replicas; live chunkservers: " + (live.empty() ? "none" : live) +
                  (replicas.failures.empty() ? "" : "; failed: " + replicas.failures) +
                  (full.empty() ? "" : "; no room: " + full));
  error.retry_after_ms = 2000;
  return std::move(error).WithNextStep(live.empty() ? "start chunkservers, and check that they reach this master"
                                                    : "start more chunkservers or free space on their disks");
}

}  // namespace picket
