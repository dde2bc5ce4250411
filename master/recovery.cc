#include "master/recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/mutation.h"
#include "common/obs/log.h"

namespace picket {
namespace {

// No further attempt can change it.
bool IsFinal(Code code) { return code == Code::kNotFound || code == Code::kReadOnly || code == Code::kHistoryLost; }
// The file was deleted, or something newer took over: look again at once.
bool IsOvertaken(Code code) {
  return code == Code::kSuperseded || code == Code::kStaleGeneration || code == Code::kNotLeaseHolder;
}

std::string_view StateName(MemberAnswer::State state) {
  switch (state) {
    case MemberAnswer::State::kWaiting: return "waiting";
    case MemberAnswer::State::kAnswered: return "answered";
    case MemberAnswer::State::kFailed: return "failed";
    case MemberAnswer::State::kGone: return "gone";
  }
  return "?";
}

constexpr size_t kScanPage = 256;

}  // namespace

Recoverer::Recoverer(Env& env, MetaStore& store, Namespace& names, SessionTable& sessions, OpenFiles& files,
                     ChunkTable& chunks, ServerTable& servers, LocationMap& locations, LeaseTable& leases,
                     Orders& orders, Attempts& attempts, const ChunkView& view, const Serving& serving,
                     Options options)
    : env_(env),
      store_(store),
      names_(names),
      sessions_(sessions),
      files_(files),
      chunks_(chunks),
      servers_(servers),
      locations_(locations),
      leases_(leases),
      attempts_(attempts),
      view_(view),
      serving_(serving),
      options_(options),
      rounds_(env, chunks, servers, locations, store, orders, attempts, options.rounds) {}

std::shared_ptr<Recoverer::Job> Recoverer::Start(Ask ask, bool* mine) {
  const InodeId inode = ask.inode;
  auto found = jobs_.find(inode);
  *mine = found == jobs_.end();
  if (!*mine) return found->second;
  PICKET_LOG(env_, kInfo, "file {}: its write session is recovered ({})", ToString(inode), ask.reason);
  auto job = std::make_shared<Job>(env_, std::move(ask));
  jobs_[inode] = job;
  env_.Spawn(RunJob(this, job));
  return job;
}

Task<Result<Entry>> Recoverer::Recover(Ask ask) {
  const Mono deadline = ask.deadline;
  bool mine = false;
  const std::shared_ptr<Job> job = Start(std::move(ask), &mine);
  while (!job->result) {
    const Nanos left = deadline - env_.Now();
    if (left <= Nanos(0)) co_return Fail(Waiting(*job));
    co_await job->changed.WaitFor(left);
  }
  if (mine && *job->result && !job->then) co_return Fail(job->then.error());
  co_return *job->result;
}

Task<Result<Generation>> Recoverer::Begin(Ask ask) {
  const Mono deadline = ask.deadline;
  bool mine = false;
  const std::shared_ptr<Job> job = Start(std::move(ask), &mine);
  while (!job->generation && !job->result) {
    const Nanos left = deadline - env_.Now();
    if (left <= Nanos(0)) co_return Fail(Waiting(*job));
    co_await job->changed.WaitFor(left);
  }
  if (job->generation) co_return job->generation;
  if (!*job->result) co_return Fail(job->result->error());
  co_return Generation((*job->result)->inode.generation());
}

Error Recoverer::Waiting(const Job& job) const {
  std::string why = job.round ? job.round->waiting_for : std::string();
  if (why.empty()) why = job.failure.empty() ? job.phase : job.phase + ", after: " + job.failure;
  Error error(Code::kWaitingFor, fmt::format("file {} is being recovered: {}", ToString(job.ask.inode), why));
  error.retry_after_ms = 1000;
  return std::move(error).WithNextStep("it goes on by itself; 'picket lease show' tells how far it is");
}

Task<> Recoverer::RunJob(Recoverer* self, std::shared_ptr<Job> job) {
  Nanos pause = self->options_.retry;
  for (;;) {
    auto outcome = co_await self->Attend(job);
    if (outcome || IsFinal(outcome.error().code)) {
      job->result = std::move(outcome);
      break;
    }
    job->failure = outcome.error().ToString();
    PICKET_LOG(self->env_, kWarning, "file {}: attempt {} at its recovery: {}", ToString(job->ask.inode), job->attempts,
               job->failure);
    if (IsOvertaken(outcome.error().code)) continue;
    co_await self->env_.Sleep(pause);
    pause = std::min(2 * pause, self->options_.retry_most);
  }
  self->jobs_.erase(job->ask.inode);
  job->changed.NotifyAll();
}

Task<Result<Entry>> Recoverer::Attend(std::shared_ptr<Job> job) {
  struct Ender {  // late answers find nobody
    Job* job;
    ~Ender() {
      if (job->round && !job->round->committed) job->round->over = true;
    }
  };
  const Ender ender{job.get()};
  job->round.reset();
  if (!sessions_.IsOpen(job->ask.inode)) {
    auto entry = names_.Get(job->ask.inode);
    PICKET_CO_TRY(co_await store_.ReadBarrier());
    if (entry && entry->inode.parent() == 0 && entry->inode.replaces() == 0) {
      entry = Fail(Code::kNotFound, fmt::format("file {} was deleted", ToString(job->ask.inode)));
    }
    co_return entry;
  }
  auto begun = co_await Fence(job);
  if (!begun) co_return Fail(begun.error());
  if (begun->entry.inode.replaces() != 0) {
    auto abandoned = co_await Abandon(job);
    co_return abandoned;
  }
  if (!begun->attempt) {
    auto closed = co_await Commit(job, std::nullopt);
    co_return closed;
  }
  auto closed = co_await Agree(job, std::move(*begun));
  co_return closed;
}

Result<std::optional<Recoverer::Target>> Recoverer::FindTarget(const SessionTable::Session& session,
                                                               const record::Inode& file) const {
  std::optional<uint64_t> keep;
  if (file.has_truncate_to()) keep = file.truncate_to();
  const uint64_t size = file.chunk_size();
  // What is left of a chunk; nothing: it is not cut.
  const auto limit = [&](const record::Chunk& chunk) {
    std::optional<uint64_t> left;
    if (keep && (chunk.index() + 1) * size > *keep) left = *keep - chunk.index() * size;
    return left && (!chunk.sealed() || chunk.length() > *left) ? left : std::nullopt;
  };
  std::optional<ChunkRow> open;
  if (session.open_chunk) {
    auto record = chunks_.Get(session.open_chunk);
    if (!record) return Fail(record.error());
    if (*record && (*record)->inode() == session.inode.value) open = ChunkRow{session.open_chunk, std::move(**record)};
  }
  if (open && (!open->record.sealed() || open->record.minted() > open->record.current()) &&
      !(keep && open->record.index() * size >= *keep)) {
    return Target{*open, limit(open->record)};
  }
  if (keep && *keep % size != 0) {
    auto boundary = chunks_.At(session.inode, *keep / size);
    if (!boundary) return Fail(boundary.error());
    if (*boundary && limit((*boundary)->record)) return Target{**boundary, limit((*boundary)->record)};
  }
  return std::optional<Target>();
}

Task<Result<Recoverer::Begun>> Recoverer::Fence(std::shared_ptr<Job> job) {
  const InodeId inode = job->ask.inode;
  // From here to Stage without a wait.
  PICKET_CO_TRY(serving_.Check());
  PICKET_CO_TRY(store_.CheckWritable());
  const auto session = sessions_.Find(inode);
  auto entry = names_.Get(inode);
  if (!entry) co_return Fail(entry.error());
  if (job->ask.truncate_to && job->attempts == 0) entry->inode.set_truncate_to(*job->ask.truncate_to);
  auto target = FindTarget(*session, entry->inode);
  if (!target) co_return Fail(target.error());
  const bool stopped = *target && (*target)->chunk.record.integrity();
  if (stopped && session->recovering) {
    co_return Fail(Error(Code::kIntegrity, fmt::format("chunk {} is stopped: its replicas contradict what was acknowledged",
                                                       ToString((*target)->chunk.id)))
                       .WithNextStep("keep every replica and inspect them with 'picket chunk show'"));
  }
  ++job->attempts;
  job->phase = "fencing";
  Batch batch;
  Begun begun;
  const bool fresh = !session->recovering || !PICKET_MUTANT(recovery_fresh_generation);
  const Generation generation =
      fresh ? sessions_.BeginRecovery(&batch, inode, job->ask.reason).generation : session->generation;
  entry->inode.set_generation(generation.value);
  if (*target && !stopped) {
    begun.record = std::move((*target)->chunk.record);
    begun.limit = (*target)->limit;
    begun.attempt = attempts_.Fence(&batch, ChunkWriter{(*target)->chunk.id, inode, generation, kRecoveryHolder},
                                    &begun.record);
  }
  names_.PutUnchanged(&batch, *entry);
  if (!job->generation && job->ask.fenced) job->ask.fenced(&batch, *entry);
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());

  ProtocolEvent event;
  event.kind = ProtocolEvent::Kind::kRecoveryBegun;
  event.generation = generation;
  event.value = inode.value;
  if (begun.attempt) {
    event.chunk = begun.attempt->writer.chunk;
    event.version = begun.attempt->to;
    record::Chunk minted = begun.record;
    minted.set_current(minted.minted());
    TraceChunk(env_, ProtocolEvent::Kind::kVersionMinted, begun.attempt->writer.chunk, minted);
  }
  env_.Trace(event);
  job->generation = generation;
  job->changed.NotifyAll();
  begun.entry = std::move(*entry);
  if (stopped) co_return Fail(Code::kIntegrity, "its open chunk is stopped");
  co_return begun;
}

Task<Result<Entry>> Recoverer::Agree(std::shared_ptr<Job> job, Begun begun) {
  job->round = rounds_.Open(*begun.attempt, begun.record, begun.limit, job->slow);
  job->phase = "asking";
  auto plan = co_await rounds_.Gather(job->round);
  if (!plan) co_return Fail(plan.error());
  if (plan->step == RecoveryPlan::Step::kIntegrity) {
    auto stopped = co_await Stop(*job->round, plan->why);
    co_return Fail(stopped.error());
  }
  if (plan->step == RecoveryPlan::Step::kFinish) {
    job->phase = "finishing";
    if (begun.limit) {
      begun.record.set_current(begun.attempt->to.value);
      begun.record.set_length(plan->length);
      TraceChunk(env_, ProtocolEvent::Kind::kChunkTruncated, begun.attempt->writer.chunk, begun.record);
    }
    auto finished = co_await rounds_.Finish(job->round, *plan);
    if (!finished) {
      if (finished.error().server != 0) job->slow.push_back(ServerId(finished.error().server));
      co_return Fail(finished.error());
    }
  }
  job->phase = "committing";
  auto closed = co_await Commit(job, std::move(*plan));
  co_return closed;
}

bool Recoverer::Describe(InodeId inode, proto::LeaseInfo* out) const {
  const auto found = jobs_.find(inode);
  if (found == jobs_.end()) return false;
  const Job& job = *found->second;
  out->set_recovering(true);
  out->set_reason(job.ask.reason);
  out->set_attempts(job.attempts);
  out->set_phase(job.phase);
  if (job.round == nullptr) {
    out->set_waiting_for(job.failure);
    return true;
  }
  const RecoveryRound& round = *job.round;
  out->set_attempt(round.attempt.id.value);
  out->set_recovery_version(round.attempt.to.value);
  if (job.phase == "asking" && !round.waiting_for.empty()) out->set_phase("waiting");
  out->set_waiting_for(round.over ? job.failure : round.waiting_for);
  for (const RecoverySeat& seat : round.seats) {
    proto::LeaseInfo::Answer* answer = out->add_answers();
    answer->set_server(seat.answer.server.value);
    answer->set_state(std::string(StateName(seat.answer.state)));
    answer->set_clean(seat.answer.clean);
    answer->set_version(seat.mark.value);
    answer->set_length(seat.answer.length);
    answer->set_sealed(static_cast<bool>(seat.answer.sealed_generation));
    answer->set_sealed_generation(seat.answer.sealed_generation.value);
    answer->set_error(seat.error.message);
  }
  return true;
}

Task<> Recoverer::Run() {
  while (!store_.failed()) {
    if (serving_.Check()) Scan();
    co_await env_.Sleep(options_.scan_interval);
  }
}

bool Recoverer::IsUnreadable(ChunkId chunk) const {
  // Soon after a start, servers that have it may not have said so yet.
  if (!chunk || env_.Now() < servers_.complete_by()) return false;
  auto record = chunks_.Get(chunk);
  return record && *record && !view_.CanBeRead(ChunkRow{chunk, std::move(**record)});
}

std::string Recoverer::ReasonToRecover(const SessionTable::Session& session) const {
  if (session.recovering) return session.reason.empty() ? "left by a crash" : session.reason;
  const Nanos silent = env_.Now() - session.renewed();
  if (silent >= session.hard_limit) return "nobody renewed the session up to its hard limit";
  if (silent < session.soft_limit) return "";
  if (session.lock) return "the lock was not renewed";
  return IsUnreadable(session.open_chunk) ? "nobody can read its open chunk" : "";
}

void Recoverer::Scan() {
  const Mono now = env_.Now();
  auto busy = static_cast<size_t>(std::ranges::count_if(jobs_, [](const auto& job) { return !job.second->waits(); }));
  InodeId after;
  for (;;) {
    const std::vector<SessionTable::Session> page = sessions_.List(after, kScanPage);
    for (const SessionTable::Session& session : page) {
      if (jobs_.contains(session.inode)) continue;
      Ask ask;
      ask.inode = session.inode;
      ask.reason = ReasonToRecover(session);
      if (ask.reason.empty()) {
        for (const SessionTable::Holder& holder : session.holders) {
          // Nobody waits for the last one, before its session's limit.
          if (session.holders.size() == 1 || now - holder.renewed < session.soft_limit) continue;
          env_.Spawn(DropHolder(session.inode, holder.client, session.lock));
        }
        continue;
      }
      bool mine = false;
      if (busy >= options_.scanned_jobs) continue;
      Start(std::move(ask), &mine);
      ++busy;
    }
    if (page.size() < kScanPage) return;
    after = page.back().inode;
  }
}

Task<> Recoverer::DropHolder(InodeId inode, ClientId holder, bool delayed) {
  const auto session = sessions_.Find(inode);
  if (!session || session->recovering || session->holders.size() < 2 || !session->Holds(holder)) co_return;
  if (!store_.CheckWritable()) co_return;
  PICKET_LOG(env_, kInfo, "file {}: client {} does not share it any more: it stopped renewing", ToString(inode),
             ToString(holder));
  Batch batch;
  sessions_.Leave(&batch, inode, holder, delayed);
  auto committed = co_await store_.Commit(std::move(batch));
  if (!committed) PICKET_LOG(env_, kWarning, "file {}: {}", ToString(inode), committed.error().ToString());
}

}  // namespace picket
