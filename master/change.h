// How a change to the metadata runs: admitted by its mutation id, done in one batch together with its answer,
// and answered when the batch is durable. A refusal waits until what it saw is durable, and is kept.
// Runs on the master's executor.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "common/base/error.h"
#include "common/env/env.h"
#include "master/answer_table.h"
#include "master/meta_store.h"
#include "master/serving.h"
#include "proto/common.pb.h"
#include "proto/rpc.pb.h"

namespace picket {

class Changes {
 public:
  Changes(MetaStore& store, AnswerTable& answers, const Serving& serving)
      : store_(store), answers_(answers), serving_(serving) {}

  template <class Response>
  struct Admitted {
    std::optional<Response> answer;  // it was done before
    AnswerTable::InFlight guard;     // else: go on, holding this
  };
  template <class Response>
  Task<Result<Admitted<Response>>> Admit(proto::MutationId mutation, proto::Method method) const {
    PICKET_CO_TRY(serving_.Check());
    auto admission = co_await answers_.Admit(mutation, method);
    if (!admission) co_return Fail(admission.error());
    Admitted<Response> admitted;
    admitted.guard = std::move(admission->guard);
    if (!admission->answer) {
      // Memory changes before the batch is staged, and a store that failed refuses it (HDFS-17861).
      PICKET_CO_TRY(store_.CheckWritable());
    } else {
      admitted.answer.emplace();
      if (!admitted.answer->ParseFromString(*admission->answer)) {
        co_return Fail(Code::kCorrupt, "the remembered answer does not parse");
      }
    }
    co_return admitted;
  }
  // The answer's row into the batch that makes the change; its revision is the batch's.
  template <class Response>
  void Remember(Batch* batch, const proto::MutationId& mutation, proto::Method method, Response* response) const {
    response->set_revision(store_.next_revision());
    answers_.Remember(batch, mutation, method, response->SerializeAsString());
  }
  template <class Response>
  Task<Result<Response>> Commit(Batch batch, proto::MutationId mutation, proto::Method method, Response response) const {
    Remember(&batch, mutation, method, &response);
    auto committed = co_await store_.Commit(std::move(batch));
    if (!committed) co_return Fail(committed.error());
    co_return response;
  }
  // What to answer a change that was refused.
  Task<Error> Refuse(proto::MutationId mutation, Error error) const {
    auto durable = co_await store_.ReadBarrier();
    if (!durable) co_return durable.error();
    answers_.Refuse(mutation, error);
    co_return error;
  }
  // All of it, for a change that is one look and one batch. `change` must leave memory alone when it fails.
  template <class Request, class Response>
  Task<Result<Response>> Run(Request request, proto::Method method,
                             std::function<Result<Response>(const Request&, Batch*)> change) const {
    auto admitted = co_await Admit<Response>(request.mutation(), method);
    if (!admitted) co_return Fail(admitted.error());
    if (admitted->answer) co_return std::move(*admitted->answer);
    // From here to Stage without a co_await: what is read is what is changed.
    Batch batch;
    auto changed = change(request, &batch);
    if (!changed) {
      auto refusal = co_await Refuse(request.mutation(), changed.error());
      co_return Fail(std::move(refusal));
    }
    auto answer = co_await Commit(std::move(batch), request.mutation(), method, std::move(*changed));
    co_return answer;
  }

 private:
  MetaStore& store_;
  AnswerTable& answers_;
  const Serving& serving_;
};

}  // namespace picket
