#include "master/truncate_service.h"

#include <fmt/format.h>

#include <utility>

#include "master/conditions.h"
#include "master/file_limits.h"
#include "master/open_service.h"
#include "master/session_claim.h"

namespace picket {

void TruncateService::Register(RpcServer* server) {
  server->Handle<proto::TruncateRequest, proto::TruncateResponse>(
      proto::TRUNCATE, [this](auto request, Mono deadline) { return Run(std::move(request), deadline); });
}

Result<TruncateService::Step> TruncateService::Look(const proto::TruncateRequest& request, const Path& path,
                                                    const SessionTable::Spec& spec) {
  auto present = names_.Find(path);
  if (!present) return Fail(present.error());
  const auto session = *present ? sessions_.Find((*present)->id) : std::nullopt;
  PICKET_TRY(CheckConditions(request.conditions(), path, *present ? &**present : nullptr,
                             *present && files_.InChange((*present)->id)));
  if (!*present) {
    auto absent = names_.Resolve(path);
    return Fail(absent.error());
  }
  Step step;
  step.entry = std::move(**present);
  record::Inode& inode = step.entry.inode;
  if (step.entry.is_directory()) return Fail(Code::kIsDirectory, fmt::format("{} is a directory", path.Quoted()));
  auto claim = JudgeClaim(path, session ? &*session : nullptr, spec, env_.Now());
  if (!claim) return Fail(claim.error());
  if (claim->way == Claim::Way::kAwait || (session && session->open_chunk != ChunkId())) {
    step.recover = claim->reason.empty() ? "asked for by client " + ToString(spec.holder) : claim->reason;
    return step;
  }
  if (request.length() > inode.length()) {
    return Fail(Error(Code::kInvalidArgument, fmt::format("{} has {} bytes and cannot be cut to {}", path.Quoted(),
                                                          inode.length(), request.length()))
                    .WithNextStep("to make it longer, write beyond its end: picket write --offset"));
  }
  if (request.length() == inode.length()) return step;
  sessions_.Drop(&step.batch, step.entry.id, !claim->own_writer);
  SessionTable::Spec own = spec;
  own.inode = step.entry.id;
  sessions_.Open(&step.batch, own);
  const SessionTable::Session fenced =
      sessions_.BeginRecovery(&step.batch, step.entry.id, fmt::format("it is cut to {} bytes", request.length()));
  inode.set_generation(fenced.generation.value);
  inode.set_truncate_to(request.length());
  names_.PutUnchanged(&step.batch, step.entry);
  step.begun = true;
  return step;
}

Task<Result<proto::TruncateResponse>> TruncateService::Run(proto::TruncateRequest request, Mono deadline) {
  SessionTable::Spec spec;
  spec.holder = ClientId(request.holder());
  spec.writer_id = request.writer_id();
  auto path = Path::Parse(request.path());
  Status good = path ? sessions_.CheckSpec(spec) : Fail(path.error());
  if (good) good = CheckOutsideTrash(*path);
  for (;;) {
    auto admitted = co_await changes_.Admit<proto::TruncateResponse>(request.mutation(), proto::TRUNCATE);
    if (!admitted) co_return Fail(admitted.error());
    if (admitted->answer) {
      auto ended = co_await Ended(std::move(request), std::move(*admitted->answer), deadline);
      co_return ended;
    }
    // From here to Stage without a co_await: what is read is what is changed.
    Result<Step> step = good ? Look(request, *path, spec) : Fail(good.error());
    if (!step) {
      auto refusal = co_await changes_.Refuse(request.mutation(), step.error());
      co_return Fail(std::move(refusal));
    }
    if (step->recover.empty()) {
      proto::TruncateResponse response;
      if (step->begun) response.mutable_status()->set_inode(step->entry.id.value);
      else *response.mutable_status() = files_.StatusOf(step->entry);
      auto begun = co_await changes_.Commit(std::move(step->batch), request.mutation(), proto::TRUNCATE, std::move(response));
      if (!begun) co_return Fail(begun.error());
      auto ended = co_await Ended(std::move(request), std::move(*begun), deadline);
      co_return ended;
    }
    Recoverer::Ask ask;
    ask.inode = step->entry.id;
    ask.reason = std::move(step->recover);
    ask.deadline = deadline - OpenService::kAnswerMargin;
    auto closed = co_await recover_(std::move(ask));
    if (!closed && closed.error().code != Code::kNotFound) {
      auto refusal = co_await changes_.Refuse(request.mutation(), closed.error());
      co_return Fail(std::move(refusal));
    }
  }
}

Task<Result<proto::TruncateResponse>> TruncateService::Ended(proto::TruncateRequest request, proto::TruncateResponse begun,
                                                             Mono deadline) {
  if (begun.status().type() != proto::FILE_TYPE_UNKNOWN) co_return begun;
  const InodeId inode(begun.status().inode());
  auto entry = names_.Get(inode);
  if (entry && entry->inode.has_truncate_to()) {
    Recoverer::Ask ask;
    ask.inode = inode;
    ask.reason = fmt::format("it is cut to {} bytes", entry->inode.truncate_to());
    ask.truncate_to = entry->inode.truncate_to();
    ask.deadline = deadline - OpenService::kAnswerMargin;
    ask.then = [this, mutation = request.mutation()](Batch* batch, Entry* closed) -> Status {
      proto::TruncateResponse response;
      *response.mutable_status() = ToFileStatus(*closed, false);
      changes_.Remember(batch, mutation, proto::TRUNCATE, &response);
      return {};
    };
    entry = co_await recover_(std::move(ask));
  }
  if (!entry) co_return Fail(entry.error());
  *begun.mutable_status() = files_.StatusOf(*entry);
  begun.set_revision(std::max(begun.revision(), store_.revision()));
  PICKET_CO_TRY(co_await store_.ReadBarrier());
  co_return begun;
}

}  // namespace picket
