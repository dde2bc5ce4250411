// The calls about names and write sessions: MKDIR, CREATE, STAT, LIST, RENAME, DELETE, SET_ATTRIBUTES,
// CLOSE, ABANDON, RENEW, SUMMARY (client_master.proto).
//
// A change is admitted by its mutation id, done in one batch together with its answer, and answered
// when the batch is durable. An answer that only reads, a refusal too, waits until what it saw is.
#pragma once

#include <functional>

#include "common/rpc/server.h"
#include "master/answer_table.h"
#include "master/change.h"
#include "master/namespace.h"
#include "master/open_files.h"
#include "master/purge_queue.h"
#include "master/serving.h"
#include "master/session_table.h"
#include "master/trash.h"
#include "proto/client_master.pb.h"

namespace picket {

class FileService {
 public:
  struct Options {
    uint32_t default_replication = 3;
    uint64_t default_chunk_size = 64 << 20;
    uint32_t min_write_replicas = 2;         // of files with a goal above 1
    std::function<uint32_t()> live_servers;  // for the warning in Create's answer
  };
  FileService(Env& env, MetaStore& store, const Serving& serving, AnswerTable& answers, Namespace& names,
              SessionTable& sessions, OpenFiles& files, PurgeQueue& purge, Trash& trash, Options options);

  // Before server->Start.
  void Register(RpcServer* server);

  static constexpr size_t kListPage = 1000;
  static constexpr size_t kSummaryStep = 256;  // entries between two yields

 private:
  template <class Request, class Response>
  using Change = Result<Response> (FileService::*)(const Request&, Batch*);
  template <class Request, class Response>
  void HandleChange(RpcServer* server, proto::Method method, Change<Request, Response> change);
  template <class Request, class Response>
  void HandleRead(RpcServer* server, proto::Method method, Result<Response> (FileService::*read)(const Request&));
  template <class Request, class Response>
  Task<Result<Response>> RunRead(Request request, Result<Response> (FileService::*read)(const Request&));

  Result<proto::MkdirResponse> Mkdir(const proto::MkdirRequest& request, Batch* batch);
  Result<proto::CreateResponse> Create(const proto::CreateRequest& request, Batch* batch);
  Result<proto::RenameResponse> Rename(const proto::RenameRequest& request, Batch* batch);
  Result<proto::DeleteResponse> Delete(const proto::DeleteRequest& request, Batch* batch);
  Result<proto::SetAttributesResponse> SetAttributes(const proto::SetAttributesRequest& request, Batch* batch);
  Result<proto::CloseResponse> Close(const proto::CloseRequest& request, Batch* batch);
  Result<proto::AbandonResponse> Abandon(const proto::AbandonRequest& request, Batch* batch);

  Result<proto::StatResponse> Stat(const proto::StatRequest& request);
  Result<proto::ListResponse> List(const proto::ListRequest& request);
  Result<proto::RenewResponse> Renew(const proto::RenewRequest& request);
  Task<Result<proto::SummaryResponse>> Summary(proto::SummaryRequest request, Mono deadline);

  // What the path names, when the conditions hold.
  Result<Entry> Judged(const Path& path, const proto::Conditions& conditions) const;

  Env& env_;
  MetaStore& store_;
  Changes changes_;
  Namespace& names_;
  SessionTable& sessions_;
  OpenFiles& files_;
  PurgeQueue& purge_;
  Trash& trash_;
  Options options_;
};

}  // namespace picket
