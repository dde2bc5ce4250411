#include "master/open_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/mutation.h"
#include "master/conditions.h"
#include "master/file_limits.h"

namespace picket {
namespace {

uint32_t InMillis(Nanos n) { return static_cast<uint32_t>(n / 1ms); }

}  // namespace

OpenService::OpenService(Env& env, MetaStore& store, Changes changes, Namespace& names, SessionTable& sessions,
                         OpenFiles& files, ChunkTable& chunks, Options options)
    : env_(env),
      store_(store),
      changes_(changes),
      names_(names),
      sessions_(sessions),
      files_(files),
      chunks_(chunks),
      options_(std::move(options)) {}

void OpenService::Register(RpcServer* server) {
  server->Handle<proto::OpenRequest, proto::OpenResponse>(
      proto::OPEN_FILE, [this](auto request, Mono deadline) { return Open(std::move(request), deadline); });
  server->Handle<proto::ReleaseRequest, proto::ReleaseResponse>(
      proto::RELEASE, [this](auto request, Mono deadline) { return Release(std::move(request), deadline); });
}

Result<SessionTable::Spec> OpenService::SpecOf(const proto::OpenRequest& request) const {
  SessionTable::Spec spec;
  spec.mode = request.mode();
  if (spec.mode != proto::EXCLUSIVE && spec.mode != proto::RECORD_APPEND && spec.mode != proto::SHARED_LOCK) {
    return Fail(Code::kInvalidArgument, fmt::format("there is no write session of mode {}", static_cast<int>(request.mode())));
  }
  spec.lock = request.lock() || spec.mode == proto::SHARED_LOCK;
  if (spec.lock && spec.mode == proto::RECORD_APPEND) {
    return Fail(Code::kInvalidArgument, "a lock is exclusive or shared, not for record append");
  }
  spec.holder = ClientId(request.holder());
  spec.writer_id = request.writer_id();
  spec.limits = request.limits();
  spec.lock_delay_ms = request.lock_delay_ms();
  PICKET_TRY(sessions_.CheckSpec(spec));
  return spec;
}

std::optional<Error> OpenService::Delayed(const Path& path, InodeId inode) const {
  const Nanos left = sessions_.LockDelayLeft(inode);
  if (left <= Nanos(0) || PICKET_MUTANT(lock_delayed)) return std::nullopt;
  Error error(Code::kLockDelayed, fmt::format("the lock of {} was not released by its last holder; nobody gets it for "
                                              "another {} ms",
                                              path.Quoted(), InMillis(left)));
  error.retry_after_ms = InMillis(left) + 1;
  return std::move(error).WithNextStep("wait: what the last holder sent may still be on its way");
}

SessionTable::Session OpenService::OpenIn(Batch* batch, SessionTable::Spec spec, Entry* entry) {
  spec.inode = entry->id;
  SessionTable::Session session = sessions_.Open(batch, spec);
  entry->inode.set_generation(session.generation.value);
  names_.PutUnchanged(batch, *entry);
  return session;
}

Result<OpenService::Step> OpenService::Make(const proto::OpenRequest& request, const Path& path,
                                            const SessionTable::Spec& spec) {
  OpenFiles::CreateSpec file;
  file.path = path;
  file.parents = request.parents();
  file.as = Namespace::Ownership{request.owner(), request.group(), request.permissions()};
  PICKET_TRY(CheckOwnership(file.as));
  file.replication = request.replication() != 0 ? request.replication() : options_.default_replication;
  file.chunk_size = request.chunk_size() != 0 ? request.chunk_size() : options_.default_chunk_size;
  PICKET_TRY(CheckLayout(file.replication, file.chunk_size));
  file.conditions = request.conditions();
  file.session = spec;
  Step step;
  auto made = files_.Create(&step.batch, file);
  if (!made) return Fail(made.error());
  step.entry = std::move(made->entry);
  step.opened = std::move(made->session);
  return step;
}

Result<OpenService::Step> OpenService::Look(const proto::OpenRequest& request, const Path& path,
                                            const SessionTable::Spec& spec) {
  auto present = names_.Find(path);
  if (!present) return Fail(present.error());
  if (!*present && request.create()) return Make(request, path, spec);
  const auto session = *present ? sessions_.Find((*present)->id) : std::nullopt;
  PICKET_TRY(CheckConditions(request.conditions(), path, *present ? &**present : nullptr,
                             *present && files_.InChange((*present)->id)));
  if (!*present) {
    auto absent = names_.Resolve(path);
    return Fail(absent.error());
  }
  Entry& entry = **present;
  if (entry.is_directory()) return Fail(Code::kIsDirectory, fmt::format("{} is a directory", path.Quoted()));
  auto claim = JudgeClaim(path, session ? &*session : nullptr, spec, env_.Now());
  if (!claim) return Fail(claim.error());

  Step step;
  step.own_writer = claim->own_writer;
  switch (claim->way) {
    case Claim::Way::kAwait:
      step.await = true;
      break;
    case Claim::Way::kJoin: {
      SessionTable::Spec joined = spec;
      joined.inode = entry.id;
      joined.mode = session->mode;
      step.opened = sessions_.Join(&step.batch, joined);
      break;
    }
    case Claim::Way::kTakeOver:
      if (session->open_chunk != ChunkId()) {
        step.recover = claim->reason;
        break;
      }
      // Nothing is unsealed under it: it ends here.
      sessions_.Drop(&step.batch, entry.id, !claim->own_writer);
      if (spec.lock && !claim->own_writer) step.refusal = Delayed(path, entry.id);
      if (!step.refusal) step.opened = OpenIn(&step.batch, spec, &entry);
      break;
    case Claim::Way::kFree:
      if (auto delayed = spec.lock ? Delayed(path, entry.id) : std::nullopt) return Fail(std::move(*delayed));
      step.opened = OpenIn(&step.batch, spec, &entry);
      break;
  }
  step.entry = std::move(entry);
  return step;
}

Task<Result<proto::OpenResponse>> OpenService::Open(proto::OpenRequest request, Mono deadline) {
  auto path = Path::Parse(request.path());
  auto spec = SpecOf(request);
  Status good = path ? Status() : Fail(path.error());
  if (good && !spec) good = Fail(spec.error());
  if (good) good = CheckOutsideTrash(*path);
  for (;;) {
    // At each turn: a recovery that an earlier call of this request began may have opened its session.
    auto admitted = co_await changes_.Admit<proto::OpenResponse>(request.mutation(), proto::OPEN_FILE);
    if (!admitted) co_return Fail(admitted.error());
    if (admitted->answer) {
      auto again = co_await Complete(std::move(request), std::move(*admitted->answer));
      co_return again;
    }
    // From here to Stage without a co_await: what is read is what is changed.
    Result<Step> step = good ? Look(request, *path, *spec) : Fail(good.error());
    if (step && step->opened) {
      auto answer = co_await changes_.Commit(std::move(step->batch), request.mutation(), proto::OPEN_FILE,
                                             Answer(*step->entry, *step->opened));
      if (!answer) co_return Fail(answer.error());
      auto complete = co_await Complete(std::move(request), std::move(*answer));
      co_return complete;
    }
    if (step && step->refusal) {
      auto ended = co_await store_.Commit(std::move(step->batch));
      if (!ended) co_return Fail(ended.error());
    }
    if (!step || step->refusal) {
      auto refusal = co_await changes_.Refuse(request.mutation(), step ? *step->refusal : step.error());
      co_return Fail(std::move(refusal));
    }
    auto claimed = co_await Claimed(request, *spec, std::move(*step), deadline);
    if (!claimed) {
      auto refusal = co_await changes_.Refuse(request.mutation(), claimed.error());
      co_return Fail(std::move(refusal));
    }
    if (*claimed) {
      auto complete = co_await Complete(std::move(request), std::move(**claimed));
      co_return complete;
    }
    // It is closed, and somebody else may have it by now.
  }
}

Task<Result<std::optional<proto::OpenResponse>>> OpenService::Claimed(proto::OpenRequest request,
                                                                      SessionTable::Spec spec, Step step, Mono deadline) {
  auto answer = std::make_shared<std::optional<proto::OpenResponse>>();
  Recoverer::Ask ask;
  ask.inode = step.entry->id;
  ask.deadline = deadline - kAnswerMargin;
  ask.reason = step.await ? "asked for by client " + ToString(spec.holder) : step.recover;
  if (!step.await) {
    ask.then = [this, answer, spec, own_writer = step.own_writer, mutation = request.mutation()](
                   Batch* batch, Entry* closed) -> Status {
      // A lock that was not released: its delay has just begun.
      if (spec.lock && !own_writer && sessions_.LockDelayLeft(closed->id) > Nanos(0)) return {};
      const SessionTable::Session session = OpenIn(batch, spec, closed);
      answer->emplace(Answer(*closed, session));
      changes_.Remember(batch, mutation, proto::OPEN_FILE, &**answer);
      return {};
    };
  }
  auto closed = co_await options_.recover(std::move(ask));
  if (!closed && closed.error().code != Code::kNotFound) co_return Fail(closed.error());
  co_return std::move(*answer);
}

proto::OpenResponse OpenService::Answer(const Entry& entry, const SessionTable::Session& session) const {
  proto::OpenResponse response;
  *response.mutable_status() = ToFileStatus(entry, true, session.holder());
  response.set_generation(session.generation.value);
  response.set_soft_limit_ms(InMillis(session.soft_limit));
  response.set_hard_limit_ms(InMillis(session.hard_limit));
  response.set_min_write_replicas(std::min(entry.inode.replication(), options_.min_write_replicas));
  return response;
}

Task<Result<proto::OpenResponse>> OpenService::Complete(proto::OpenRequest request, proto::OpenResponse response) const {
  response.set_live_servers(options_.live_servers ? options_.live_servers() : 0);
  const InodeId inode(response.status().inode());
  const auto session = sessions_.Find(inode);
  // It may be over when a retry asks for the answer: then the generation says it.
  if (session && session->generation.value == response.generation()) {
    auto entry = names_.Get(inode);
    if (!entry) co_return Fail(entry.error());
    if (entry->inode.chunk_count() > 0 && options_.describe) {
      auto last = chunks_.At(inode, entry->inode.chunk_count() - 1);
      if (!last) co_return Fail(last.error());
      if (*last) *response.mutable_last_chunk() = options_.describe(**last);
    }
    if (session->lock && options_.sequencer) {
      *response.mutable_sequencer() = options_.sequencer(request.path(), *session, ClientId(request.holder()));
    }
    PICKET_CO_TRY(co_await store_.ReadBarrier());
  }
  co_return response;
}

Result<OpenService::Step> OpenService::LookAtRelease(const proto::ReleaseRequest& request) {
  const InodeId inode(request.inode());
  const ClientId holder(request.holder());
  PICKET_TRY(sessions_.CheckWriter(inode, Generation(request.generation()), holder));
  auto entry = names_.Get(inode);
  if (!entry) return Fail(entry.error());
  const SessionTable::Session session = *sessions_.Find(inode);
  Step step;
  if (session.holders.size() > 1) {
    sessions_.Leave(&step.batch, inode, holder);
    return step;
  }
  if (!session.shared() && !session.lock) {
    return Fail(Error(Code::kInvalidArgument, fmt::format("session {} of file {} is of a single writer, which closes the file",
                                                          session.generation.ToString(), ToString(inode)))
                    .WithNextStep("close the file instead"));
  }
  if (session.open_chunk != ChunkId()) {
    step.recover = fmt::format("closed by its last holder, client {}", ToString(holder));
    step.entry = std::move(*entry);
    return step;
  }
  if (session.mode == proto::RECORD_APPEND) {
    PICKET_TRY(files_.CheckAllSealed(*entry));
    auto closed = files_.Close(&step.batch, std::move(*entry), 0);
    if (!closed) return Fail(closed.error());
    return step;
  }
  // Who held it alone and says that nothing is on its way ends a delay too.
  if (session.shared()) sessions_.Drop(&step.batch, inode);
  else sessions_.Forget(&step.batch, inode);
  return step;
}

Task<Status> OpenService::Ended(proto::ReleaseRequest request, Mono deadline) const {
  Recoverer::Ask ask;
  ask.inode = InodeId(request.inode());
  ask.reason = "released by client " + ToHex(request.holder());
  ask.deadline = deadline - kAnswerMargin;
  auto closed = co_await options_.recover(std::move(ask));
  if (!closed && closed.error().code != Code::kNotFound) co_return Fail(closed.error());
  co_return Status();
}

Task<Result<proto::ReleaseResponse>> OpenService::Release(proto::ReleaseRequest request, Mono deadline) {
  auto admitted = co_await changes_.Admit<proto::ReleaseResponse>(request.mutation(), proto::RELEASE);
  if (!admitted) co_return Fail(admitted.error());
  if (admitted->answer) {
    const auto session = sessions_.Find(InodeId(request.inode()));
    if (session && session->recovering && session->generation.value > request.generation()) {
      PICKET_CO_TRY(co_await Ended(request, deadline));
    }
    co_return std::move(*admitted->answer);
  }
  auto step = LookAtRelease(request);
  if (!step) {
    auto refusal = co_await changes_.Refuse(request.mutation(), step.error());
    co_return Fail(std::move(refusal));
  }
  if (!step->recover.empty()) {
    auto answer = std::make_shared<std::optional<proto::ReleaseResponse>>();
    Recoverer::Ask ask;
    ask.inode = step->entry->id;
    ask.reason = std::move(step->recover);
    ask.deadline = deadline - kAnswerMargin;
    // The release is done when nobody can write under it any more; the answer waits for the end.
    ask.fenced = [this, answer, mutation = request.mutation()](Batch* batch, const Entry&) {
      changes_.Remember(batch, mutation, proto::RELEASE, &answer->emplace());
    };
    ask.then = [this](Batch* batch, Entry* closed) -> Status {
      sessions_.Forget(batch, closed->id);  // it was released: no lock-delay
      return {};
    };
    auto closed = co_await options_.recover(std::move(ask));
    if (!closed) co_return Fail(closed.error());
    if (*answer) co_return std::move(**answer);
    // Somebody else began it: closed all the same, and the answer is kept here.
  }
  auto answer = co_await changes_.Commit(std::move(step->batch), request.mutation(), proto::RELEASE,
                                         proto::ReleaseResponse());
  co_return answer;
}

}  // namespace picket
