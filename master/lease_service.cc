#include "master/lease_service.h"

#include <fmt/format.h>

#include <algorithm>

namespace picket {
namespace {

int64_t MillisOf(Nanos n) { return n / 1ms; }

}  // namespace

void LeaseService::Register(RpcServer* server) {
  server->Handle<proto::ListLeasesRequest, proto::ListLeasesResponse>(
      proto::LIST_LEASES, [this](auto request, Mono deadline) { return List(std::move(request), deadline); });
  server->Handle<proto::ShowLeaseRequest, proto::ShowLeaseResponse>(
      proto::SHOW_LEASE, [this](auto request, Mono deadline) { return Show(std::move(request), deadline); });
  server->Handle<proto::RecoverLeaseRequest, proto::RecoverLeaseResponse>(
      proto::RECOVER_LEASE, [this](auto request, Mono deadline) { return Recover(std::move(request), deadline); });
}

Result<proto::LeaseInfo> LeaseService::Describe(const SessionTable::Session& session) const {
  proto::LeaseInfo info;
  auto entry = names_.Get(session.inode);
  if (!entry) return Fail(entry.error());
  const bool pending = entry->inode.replaces() != 0;
  auto path = names_.PathOf(pending ? InodeId(entry->inode.replaces()) : session.inode);
  if (!path) return Fail(path.error());
  if (*path && pending) info.set_replaces((*path)->Child(entry->inode.replaces_name()).ToString());
  if (*path && !pending) info.set_path((*path)->ToString());
  info.set_inode(session.inode.value);
  info.set_mode(session.mode);
  info.set_generation(session.generation.value);
  const Mono now = env_.Now();
  for (const SessionTable::Holder& holder : session.holders) {
    proto::LeaseInfo::Holder* out = info.add_holders();
    out->set_client(holder.client.value);
    out->set_writer_id(holder.writer_id);
    out->set_renewed_ms_ago(MillisOf(now - holder.renewed));
  }
  const Nanos idle = now - session.renewed();
  info.set_soft_limit_ms(static_cast<uint32_t>(MillisOf(session.soft_limit)));
  info.set_hard_limit_ms(static_cast<uint32_t>(MillisOf(session.hard_limit)));
  info.set_soft_left_ms(MillisOf(session.soft_limit - idle));
  info.set_hard_left_ms(MillisOf(session.hard_limit - idle));
  info.set_lock(session.lock);
  info.set_open_chunk(session.open_chunk.value);
  info.set_recovering(session.recovering);
  info.set_reason(session.reason);
  info.set_stalled_holder(session.stalled_holder.value);
  if (!recoverer_.Describe(session.inode, &info) && session.recovering) info.set_phase("about to begin");
  return info;
}

Task<Status> LeaseService::Pause(Mono deadline, const char* what) {
  if (env_.Now() >= deadline) {
    co_return Fail(Code::kDeadlineExceeded, fmt::format("{} takes longer than the caller waits", what));
  }
  co_await env_.Sleep(Nanos(0));
  co_return Status();
}

Task<Result<proto::ListLeasesResponse>> LeaseService::List(proto::ListLeasesRequest request, Mono deadline) {
  Path under;
  if (!request.under().empty()) {
    auto parsed = Path::Parse(request.under());
    if (!parsed) co_return Fail(parsed.error());
    under = std::move(*parsed);
  }
  const size_t limit = request.limit() == 0 ? kPage : std::min(request.limit(), kPage);
  proto::ListLeasesResponse response;
  InodeId after(request.start_after());
  for (bool more = true; more && !response.more();) {
    const std::vector<SessionTable::Session> page = sessions_.List(after, kScanStep);
    more = page.size() == kScanStep;
    for (const SessionTable::Session& session : page) {
      auto info = Describe(session);
      if (!info) co_return Fail(info.error());
      after = session.inode;
      const std::string& path = info->path().empty() ? info->replaces() : info->path();
      if (!under.is_root()) {
        auto parsed = Path::Parse(path);
        if (!parsed || !parsed->IsWithin(under)) continue;
      }
      if (static_cast<size_t>(response.leases_size()) == limit) {
        response.set_more(true);
        break;
      }
      *response.add_leases() = std::move(*info);
    }
    response.set_revision(store_.revision());
    if (more && !response.more()) PICKET_CO_TRY(co_await Pause(deadline, "listing the leases"));
  }
  PICKET_CO_TRY(co_await store_.ReadBarrier());
  co_return response;
}

Task<Result<std::vector<InodeId>>> LeaseService::Targets(Path path, std::optional<Entry>* present, Mono deadline) {
  std::vector<InodeId> targets;
  auto found = names_.Find(path);
  if (!found) co_return Fail(found.error());
  *present = std::move(*found);
  if (*present && (*present)->is_directory()) {
    co_return Fail(Code::kIsDirectory, fmt::format("{} is a directory", path.Quoted()));
  }
  if (*present && sessions_.IsOpen((*present)->id)) {
    targets.push_back((*present)->id);
    co_return targets;
  }
  auto directory = names_.Find(path.Parent());
  if (!directory) co_return Fail(directory.error());
  InodeId after;
  for (bool more = directory->has_value(); more && targets.size() < kMaxTargets;) {
    const std::vector<SessionTable::Session> page = sessions_.List(after, kScanStep);
    more = page.size() == kScanStep;
    for (const SessionTable::Session& session : page) {
      after = session.inode;
      auto entry = names_.Get(session.inode);
      if (!entry) co_return Fail(entry.error());
      if (entry->inode.replaces() != (*directory)->id.value || entry->inode.replaces_name() != path.name()) continue;
      if (targets.size() < kMaxTargets) targets.push_back(session.inode);
    }
    if (more) PICKET_CO_TRY(co_await Pause(deadline, "looking for who writes the file"));
  }
  if (!*present && targets.empty()) co_return Fail(Code::kNotFound, fmt::format("there is no {}", path.Quoted()));
  co_return targets;
}

Task<Result<proto::ShowLeaseResponse>> LeaseService::Show(proto::ShowLeaseRequest request, Mono deadline) {
  auto path = Path::Parse(request.path());
  if (!path) co_return Fail(path.error());
  std::optional<Entry> present;
  auto targets = co_await Targets(*path, &present, deadline);
  proto::ShowLeaseResponse response;
  if (targets) {
    const auto session = targets->empty() ? std::nullopt : sessions_.Find((*targets)[0]);
    if (session) {
      auto info = Describe(*session);
      if (!info) co_return Fail(info.error());
      response.set_open(true);
      *response.mutable_lease() = std::move(*info);
    }
    if (present) {
      *response.mutable_status() = files_.StatusOf(*present);
      response.set_lock_delay_left_ms(static_cast<uint32_t>(MillisOf(sessions_.LockDelayLeft(present->id))));
    }
    response.set_revision(store_.revision());
  }
  PICKET_CO_TRY(co_await store_.ReadBarrier());
  if (!targets) co_return Fail(targets.error());
  co_return response;
}

// The row of the answer is in the batch that fences: a repeat of the call never fences whoever came after.
Task<Result<proto::RecoverLeaseResponse>> LeaseService::Recover(proto::RecoverLeaseRequest request, Mono deadline) {
  auto admission = co_await answers_.Admit(request.mutation(), proto::RECOVER_LEASE);
  if (!admission) co_return Fail(admission.error());
  auto path = Path::Parse(request.path());
  if (!path) co_return Fail(path.error());
  std::optional<Entry> present;
  auto targets = co_await Targets(*path, &present, deadline);
  PICKET_CO_TRY(co_await store_.ReadBarrier());
  if (!targets) co_return Fail(targets.error());
  proto::RecoverLeaseResponse response;
  const auto remember = [&](Batch* batch) {
    response.set_revision(store_.next_revision());
    answers_.Remember(batch, request.mutation(), proto::RECOVER_LEASE, response.SerializeAsString());
  };
  if (admission->answer) {
    if (!response.ParseFromString(*admission->answer)) co_return Fail(Code::kCorrupt, "a kept answer does not parse");
    // What that call fenced may still be under way; what was opened since is none of its business.
    std::erase_if(*targets, [&](InodeId inode) {
      const auto session = sessions_.Find(inode);
      return !session || !session->recovering;
    });
  }
  bool remembered = admission->answer.has_value();
  for (InodeId inode : *targets) {
    Recoverer::Ask ask;
    ask.inode = inode;
    ask.reason = fmt::format("asked by client {}", ToHex(request.mutation().client()));
    ask.deadline = deadline - kAnswerMargin;
    const auto told = std::make_shared<bool>(false);
    if (!remembered) {
      ask.fenced = [this, told, mutation = request.mutation()](Batch* batch, const Entry& fenced) {
        proto::RecoverLeaseResponse kept;
        kept.set_generation(fenced.inode.generation());
        kept.set_revision(store_.next_revision());
        answers_.Remember(batch, mutation, proto::RECOVER_LEASE, kept.SerializeAsString());
        *told = true;
      };
    }
    auto fenced = co_await recoverer_.Begin(std::move(ask));
    if (!fenced) co_return Fail(fenced.error());
    response.set_generation(fenced->value);
    remembered = remembered || *told;
  }
  if (!remembered) {
    Batch batch;
    remember(&batch);
    auto committed = co_await store_.Commit(std::move(batch));
    if (!committed) co_return Fail(committed.error());
  }
  for (InodeId inode : *targets) {
    if (!request.wait()) break;
    const auto session = sessions_.Find(inode);
    if (!session || !session->recovering) continue;
    Recoverer::Ask ask;
    ask.inode = inode;
    ask.reason = session->reason;
    ask.deadline = deadline - kAnswerMargin;
    auto closed = co_await recoverer_.Recover(std::move(ask));
    if (!closed && closed.error().code != Code::kNotFound) co_return Fail(closed.error());
  }
  response.set_closed(std::ranges::none_of(*targets, [&](InodeId inode) {
    const auto session = sessions_.Find(inode);
    return session && session->recovering;
  }));
  auto now = names_.Find(*path);
  if (now && *now) *response.mutable_status() = files_.StatusOf(**now);
  response.set_revision(store_.revision());
  PICKET_CO_TRY(co_await store_.ReadBarrier());
  co_return response;
}

}  // namespace picket
