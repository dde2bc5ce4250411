// Makes a retried mutation harmless: one effect per (client, sequence), the first answer repeated,
// across master restarts too (HDFS-3031). The answer is a row of the very batch that did the work.
#pragma once

#include <list>
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
    InFlight& operator=(InFlight&& o) noexcept {  // the old one leaves with `o`
      std::swap(table_, o.table_);
      std::swap(token_, o.token_);
      std::swap(client_, o.client_);
      std::swap(sequence_, o.sequence_);
      return *this;
    }
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
  // kConflict when that sequence was another method, kDedupWindowExceeded when the client said that it
  // has the answer (a request that arrives after its retry), the error when the mutation was refused,
  // kReadOnly when the store has failed.
  Task<Result<Admission>> Admit(proto::MutationId mutation, proto::Method method);
  // Adds the answer's row to the batch that does the mutation, and drops rows below first_unacked.
  void Remember(Batch* batch, const proto::MutationId& mutation, proto::Method method, std::string response);

  // Keeps a final refusal, in memory: a duplicate that arrives later on an old connection must not
  // succeed after the client was told no. (An old connection does not outlive this process.)
  void Refuse(const proto::MutationId& mutation, const Error& error);

  // Runs for ever: forgets the answers of clients from which nothing came for kKeepNanos.
  Task<> SweepLoop();
  // One pass; durable on return.
  Task<Status> Sweep();

  static constexpr size_t kMaxAnswersPerClient = 1024;
  static constexpr size_t kMaxRefusalsPerClient = 64;
  static constexpr size_t kMaxClientsInMemory = 8192;
  static constexpr int64_t kKeepNanos = int64_t{24} * 3600 * 1'000'000'000;

 private:
  // What is known of a client in this process, beside its rows.
  struct Client {
    uint64_t first_unacked = 0;
    std::map<uint64_t, Error> refused;  // by sequence
    std::list<uint64_t>::iterator recent;
  };
  Client& Seen(const proto::MutationId& mutation);
  Result<uint64_t> Mark(uint64_t client);
  void Leave(uint64_t client, uint64_t sequence);
  Env& env_;
  MetaStore& store_;
  Signal done_;
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<int>> in_flight_;
  std::map<uint64_t, Client> clients_;
  std::list<uint64_t> recent_;  // clients, the most recent first
};

}  // namespace picket
