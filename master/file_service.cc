#include "master/file_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "master/file_limits.h"

namespace picket {

FileService::FileService(Env& env, MetaStore& store, const Serving& serving, AnswerTable& answers, Namespace& names,
                         SessionTable& sessions, OpenFiles& files, PurgeQueue& purge, Trash& trash, Options options)
    : env_(env),
      store_(store),
      changes_(store, answers, serving),
      names_(names),
      sessions_(sessions),
      files_(files),
      purge_(purge),
      trash_(trash),
      options_(std::move(options)) {}

void FileService::Register(RpcServer* server) {
  HandleChange(server, proto::MKDIR, &FileService::Mkdir);
  HandleChange(server, proto::CREATE, &FileService::Create);
  HandleChange(server, proto::RENAME, &FileService::Rename);
  HandleChange(server, proto::DELETE, &FileService::Delete);
  HandleChange(server, proto::SET_ATTRIBUTES, &FileService::SetAttributes);
  HandleChange(server, proto::CLOSE, &FileService::Close);
  HandleChange(server, proto::ABANDON, &FileService::Abandon);
  HandleRead(server, proto::STAT, &FileService::Stat);
  HandleRead(server, proto::LIST, &FileService::List);
  HandleRead(server, proto::RENEW, &FileService::Renew);
  server->Handle<proto::SummaryRequest, proto::SummaryResponse>(
      proto::SUMMARY,
      [this](proto::SummaryRequest request, Mono deadline) { return Summary(std::move(request), deadline); });
}

template <class Request, class Response>
void FileService::HandleChange(RpcServer* server, proto::Method method, Change<Request, Response> change) {
  server->Handle<Request, Response>(method, [this, method, change](Request request, Mono) {
    return changes_.Run<Request, Response>(
        std::move(request), method, [this, change](const Request& r, Batch* batch) { return (this->*change)(r, batch); });
  });
}

template <class Request, class Response>
void FileService::HandleRead(RpcServer* server, proto::Method method,
                             Result<Response> (FileService::*read)(const Request&)) {
  server->Handle<Request, Response>(
      method, [this, read](Request request, Mono) { return RunRead<Request, Response>(std::move(request), read); });
}

template <class Request, class Response>
Task<Result<Response>> FileService::RunRead(Request request, Result<Response> (FileService::*read)(const Request&)) {
  auto response = (this->*read)(request);
  if (response) response->set_revision(store_.revision());
  PICKET_CO_TRY(co_await store_.ReadBarrier());
  co_return response;
}

Result<Entry> FileService::Judged(const Path& path, const proto::Conditions& conditions) const {
  auto present = names_.Find(path);
  if (!present) return Fail(present.error());
  PICKET_TRY(CheckConditions(conditions, path, *present ? &**present : nullptr,
                             *present && files_.InChange((*present)->id)));
  if (!*present) return names_.Resolve(path);
  return std::move(**present);
}

Result<proto::MkdirResponse> FileService::Mkdir(const proto::MkdirRequest& request, Batch* batch) {
  auto path = Path::Parse(request.path());
  if (!path) return Fail(path.error());
  PICKET_TRY(CheckOutsideTrash(*path));
  const Namespace::Ownership as{request.owner(), request.group(), request.mode()};
  PICKET_TRY(CheckOwnership(as));
  auto present = names_.Find(*path);
  if (!present) return Fail(present.error());
  PICKET_TRY(CheckConditions(request.conditions(), *path, *present ? &**present : nullptr,
                             *present && files_.InChange((*present)->id)));
  auto made = names_.MakeDirectory(batch, *path, request.parents(), as);
  if (!made) return Fail(made.error());
  proto::MkdirResponse response;
  *response.mutable_status() = files_.StatusOf(*made);
  return response;
}

Result<proto::CreateResponse> FileService::Create(const proto::CreateRequest& request, Batch* batch) {
  auto path = Path::Parse(request.path());
  if (!path) return Fail(path.error());
  PICKET_TRY(CheckOutsideTrash(*path));
  OpenFiles::CreateSpec spec;
  spec.path = std::move(*path);
  spec.overwrite = request.overwrite();
  spec.parents = request.parents();
  spec.as = Namespace::Ownership{request.owner(), request.group(), request.mode()};
  PICKET_TRY(CheckOwnership(spec.as));
  spec.replication = request.replication() != 0 ? request.replication() : options_.default_replication;
  spec.chunk_size = request.chunk_size() != 0 ? request.chunk_size() : options_.default_chunk_size;
  PICKET_TRY(CheckLayout(spec.replication, spec.chunk_size));
  spec.session.holder = ClientId(request.holder());
  spec.session.writer_id = request.writer_id();
  spec.session.limits = request.limits();
  spec.session.created = true;
  PICKET_TRY(sessions_.CheckSpec(spec.session));
  spec.conditions = request.conditions();
  spec.mtime_ns = request.mtime_ns();
  auto created = files_.Create(batch, spec);
  if (!created) return Fail(created.error());
  proto::CreateResponse response;
  *response.mutable_status() = files_.StatusOf(created->entry);
  response.set_generation(created->session.generation.value);
  response.set_mode(created->session.mode);
  response.set_soft_limit_ms(static_cast<uint32_t>(created->session.soft_limit / 1ms));
  response.set_hard_limit_ms(static_cast<uint32_t>(created->session.hard_limit / 1ms));
  response.set_live_servers(options_.live_servers ? options_.live_servers() : 0);
  response.set_min_write_replicas(std::min(spec.replication, options_.min_write_replicas));
  return response;
}

Result<proto::RenameResponse> FileService::Rename(const proto::RenameRequest& request, Batch* batch) {
  auto from = Path::Parse(request.from());
  if (!from) return Fail(from.error());
  auto to = Path::Parse(request.to());
  if (!to) return Fail(to.error());
  PICKET_TRY(CheckOutsideTrash(*to));
  if (Trash::Contains(*from) && from->names().size() <= 2) {
    return Fail(Code::kInvalidArgument, fmt::format("{} belongs to the trash itself and cannot be moved", from->Quoted()));
  }
  auto source = names_.Find(*from);
  if (!source) return Fail(source.error());
  auto target = names_.Find(*to);
  if (!target) return Fail(target.error());
  PICKET_TRY(CheckUnchanged(request.conditions(), *from, *source ? &**source : nullptr,
                            *source && files_.InChange((*source)->id)));
  PICKET_TRY(CheckAbsent(request.conditions(), *to, *target ? &**target : nullptr));
  auto renamed = names_.Rename(batch, *from, *to, request.overwrite());
  if (!renamed) return Fail(renamed.error());
  trash_.Restored(batch, &renamed->entry);
  if (renamed->replaced) purge_.Add(batch, std::move(*renamed->replaced));
  return proto::RenameResponse();
}

Result<proto::DeleteResponse> FileService::Delete(const proto::DeleteRequest& request, Batch* batch) {
  auto path = Path::Parse(request.path());
  if (!path) return Fail(path.error());
  if (path->is_root()) return Fail(Code::kInvalidArgument, "the root directory cannot be deleted");
  auto entry = Judged(*path, request.conditions());
  if (!entry) return Fail(entry.error());
  if (request.only_inode() != 0 && request.only_inode() != entry->id.value) {
    return Fail(Error(Code::kConflict, fmt::format("{} is inode {} by now, not {}", path->Quoted(), ToString(entry->id),
                                                   ToHex(request.only_inode())))
                    .WithTokens(request.only_inode(), entry->id.value));
  }
  if (entry->is_directory() && !request.recursive()) {
    auto empty = names_.IsEmpty(entry->id);
    if (!empty) return Fail(empty.error());
    if (!*empty) {
      return Fail(Error(Code::kNotEmpty, fmt::format("the directory {} is not empty", path->Quoted()))
                      .WithNextStep("delete it with everything in it (rm -r)"));
    }
  }
  proto::DeleteResponse response;
  if (request.skip_trash() || Trash::Contains(*path)) {
    auto directory = names_.Get(InodeId(entry->inode.parent()));
    if (!directory) return Fail(directory.error());
    names_.Touch(batch, &*directory);
    purge_.Add(batch, std::move(*entry));
    return response;
  }
  const std::string user = request.user().empty() ? "nobody" : request.user();
  PICKET_TRY(CheckName(user));
  auto trashed = trash_.Move(batch, std::move(*entry), user);
  if (!trashed) return Fail(trashed.error());
  response.set_trash_path(trashed->ToString());
  return response;
}

Result<proto::SetAttributesResponse> FileService::SetAttributes(const proto::SetAttributesRequest& request,
                                                                Batch* batch) {
  auto path = Path::Parse(request.path());
  if (!path) return Fail(path.error());
  if (request.has_mode()) PICKET_TRY(CheckMode(request.mode()));
  if (request.has_owner()) PICKET_TRY(CheckOwner("owner", request.owner()));
  if (request.has_group()) PICKET_TRY(CheckOwner("group", request.group()));
  auto entry = Judged(*path, request.conditions());
  if (!entry) return Fail(entry.error());
  record::Inode& inode = entry->inode;
  if (request.has_mode()) inode.set_mode(request.mode());
  if (request.has_owner()) inode.set_owner(request.owner());
  if (request.has_group()) inode.set_group(request.group());
  if (request.has_mtime_ns()) inode.set_mtime_ns(request.mtime_ns());
  names_.PutInode(batch, &*entry);
  proto::SetAttributesResponse response;
  *response.mutable_status() = files_.StatusOf(*entry);
  return response;
}

Result<proto::CloseResponse> FileService::Close(const proto::CloseRequest& request, Batch* batch) {
  const InodeId id(request.inode());
  PICKET_TRY(sessions_.CheckWriter(id, Generation(request.generation()), ClientId(request.holder())));
  auto entry = names_.Get(id);
  if (!entry) return Fail(entry.error());
  PICKET_TRY(files_.CheckAlone(id));
  PICKET_TRY(files_.CheckAllSealed(*entry));
  auto closed = files_.Close(batch, std::move(*entry), request.mtime_ns());
  if (!closed) return Fail(closed.error());
  proto::CloseResponse response;
  *response.mutable_status() = files_.StatusOf(*closed);
  return response;
}

Result<proto::AbandonResponse> FileService::Abandon(const proto::AbandonRequest& request, Batch* batch) {
  PICKET_TRY(files_.Abandon(batch, InodeId(request.inode()), Generation(request.generation()),
                            ClientId(request.holder())));
  return proto::AbandonResponse();
}

Result<proto::StatResponse> FileService::Stat(const proto::StatRequest& request) {
  auto path = Path::Parse(request.path());
  if (!path) return Fail(path.error());
  auto entry = names_.Resolve(*path);
  if (!entry) return Fail(entry.error());
  proto::StatResponse response;
  *response.mutable_status() = files_.StatusOf(*entry);
  return response;
}

Result<proto::ListResponse> FileService::List(const proto::ListRequest& request) {
  auto path = Path::Parse(request.path());
  if (!path) return Fail(path.error());
  auto entry = names_.Resolve(*path);
  if (!entry) return Fail(entry.error());
  proto::ListResponse response;
  if (entry->is_file()) {
    response.set_is_file(true);
    *response.add_entries() = files_.StatusOf(*entry);
    return response;
  }
  const size_t limit = request.limit() == 0 ? kListPage : std::min<size_t>(request.limit(), kListPage);
  auto entries = names_.List(entry->id, request.start_after(), limit + 1);
  if (!entries) return Fail(entries.error());
  response.set_more(entries->size() > limit);
  if (response.more()) entries->resize(limit);
  for (const Entry& child : *entries) *response.add_entries() = files_.StatusOf(child);
  return response;
}

Result<proto::RenewResponse> FileService::Renew(const proto::RenewRequest& request) {
  const ClientId holder(request.holder());
  proto::RenewResponse response;
  for (const auto& session : request.sessions()) {
    const InodeId inode(session.inode());
    if (!sessions_.Renew(inode, Generation(session.generation()), holder)) response.add_lost_inodes(inode.value);
  }
  return response;
}

// Depth first, a page of a directory at a time; what is moved while it runs may be counted twice or not.
Task<Result<proto::SummaryResponse>> FileService::Summary(proto::SummaryRequest request, Mono deadline) {
  struct Level {
    InodeId directory;
    std::vector<Entry> page;
    std::string last;  // name that the page ends with
    size_t next = 0;
    bool more = true;
  };
  auto path = Path::Parse(request.path());
  if (!path) co_return Fail(path.error());
  auto top = names_.Resolve(*path);
  uint64_t seen = store_.revision();
  if (!top) {
    PICKET_CO_TRY(co_await store_.Durable(seen));
    co_return Fail(top.error());
  }
  proto::SummaryResponse sum;
  std::vector<Level> levels;
  const auto count = [&sum, &levels](const Entry& entry) {
    if (entry.is_file()) {
      sum.set_files(sum.files() + 1);
      sum.set_bytes(sum.bytes() + entry.inode.length());
      sum.set_bytes_with_replicas(sum.bytes_with_replicas() + entry.inode.stored_bytes() * entry.inode.replication());
    } else {
      sum.set_directories(sum.directories() + 1);
      levels.push_back(Level{entry.id, {}, {}, 0, true});
    }
  };
  count(*top);
  while (!levels.empty()) {
    Level& level = levels.back();
    if (level.next < level.page.size()) {
      const Entry entry = std::move(level.page[level.next++]);
      count(entry);  // may add a level: `level` is not used after it
      continue;
    }
    if (!level.more) {
      levels.pop_back();
      continue;
    }
    if (env_.Now() >= deadline) {
      co_return Fail(Code::kDeadlineExceeded, fmt::format("counting {} takes longer than the caller waits", path->Quoted()));
    }
    auto page = names_.List(level.directory, level.last, kSummaryStep);
    if (!page) co_return Fail(page.error());
    seen = std::max(seen, store_.revision());
    level.more = page->size() == kSummaryStep;
    if (level.more) level.last = page->back().inode.name();
    level.page = std::move(*page);
    level.next = 0;
    co_await env_.Sleep(Nanos(0));
  }
  sum.set_revision(seen);
  PICKET_CO_TRY(co_await store_.Durable(seen));
  co_return sum;
}

}  // namespace picket
