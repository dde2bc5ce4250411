// Makes a retried mutation harmless: one effect per (client, sequence), the first answer repeated,
// across master restarts too (HDFS-3031). The answer is a row of the very batch that did the work.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/env/sync.h"
#include "master/meta_store.h"
#include "proto/common.pb.h"
#include "proto/rpc.pb.h"

namespace picket {

class AnswerTable {
 public:
  AnswerTable(Env& env, MetaStore& store);

  // The guard of a mutation in progress; leaving its scope lets a waiting retry go on.
  class InFlight {
   public:
    InFlight() = default;
    InFlight(InFlight&&) noexcept = default;
    InFlight& operator=(InFlight&&) noexcept = default;
    ~InFlight();

   private:
    friend class AnswerTable;
    AnswerTable* table_ = nullptr;
    std::shared_ptr<int> token_;
    uint64_t client_ = 0;
    uint64_t sequence_ = 0;
  };
  struct Admission {
    std::optional<std::string> answer;  // done before: the serialised response
    InFlight guard;                     // else: go on, holding this
  };
  // Waits while the same mutation is in progress. kInvalidArgument without a client id or sequence,
  // kConflict when that sequence was another method.
  Task<Result<Admission>> Admit(proto::MutationId mutation, proto::Method method);
  // Adds the answer's row to the batch that does the mutation, and drops rows below first_unacked.
  void Remember(Batch* batch, const proto::MutationId& mutation, proto::Method method, std::string response);

  static constexpr size_t kMaxAnswersPerClient = 1024;

 private:
  void Leave(uint64_t client, uint64_t sequence);
  Env& env_;
  MetaStore& store_;
  Signal done_;
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<int>> in_flight_;
};

}  // namespace picket
