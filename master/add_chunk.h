// ADD_CHUNK: a new chunk of a file that is being written, open, with a primary lease.
//
//   place → CREATE_REPLICA on each, in parallel → one synced batch {record, members, place in the file,
//   answer} → lease → answer
//
// 1. Replicas are created durably first; a crash before the batch leaves orphans, never ambiguity. What a
//    refusal leaves behind becomes garbage.
// 2. The writer, the place and that no other chunk is open are checked inside the batch too: a chunk may not
//    hang on a file that was closed or taken over in the meantime (F8).
// 3. The answer is part of the batch: a retry gets the same chunk.
// 4. A place may be anywhere: what lies between chunks, and behind a short one, is a hole and reads as zeros.
//    Appenders of records make no holes.
// 5. A place whose chunk is open already is answered with that chunk: the present grant to the appenders of a
//    shared session, who ask one after the other; a new one to an exclusive writer that lost its answer.
// Runs on the master's executor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/env/env.h"
#include "master/answer_table.h"
#include "master/attempt.h"
#include "master/chunk_table.h"
#include "master/grant.h"
#include "master/lease_giver.h"
#include "master/location_map.h"
#include "master/namespace.h"
#include "master/server_table.h"
#include "master/serving.h"
#include "master/session_table.h"
#include "master/standing_grant.h"
#include "proto/client_master.pb.h"

namespace picket {

class AddChunk {
 public:
  struct Options {
    uint32_t min_write_replicas = 2;
    Nanos order_timeout = 5s;
  };
  AddChunk(Env& env, MetaStore& store, AnswerTable& answers, Namespace& names, SessionTable& sessions,
           ChunkTable& chunks, ServerTable& servers, LocationMap& locations, Orders& orders, LeaseGiver& giver,
           Granter& granter, StandingGrants& standing, const Serving& serving, Options options);

  // kConflict (another chunk is open, the place is taken by a sealed one, a hole between records),
  // kInvalidArgument (beyond kMaxFileBytes), kNotEnoughReplicas naming the live servers, and the refusals of
  // SessionTable::CheckWriter, Serving and Granter.
  Task<Result<proto::WriteGrant>> Run(proto::AddChunkRequest request, Mono deadline);

  static constexpr uint64_t kMaxFileBytes = uint64_t{1} << 60;

 private:
  struct Created {
    ServerId server;
    Incarnation incarnation;
    InstanceId instance;
    Mono received;
  };
  struct Replicas {
    std::vector<Created> created;
    std::vector<ServerId> tried;
    size_t ordered = 0;  // so many orders may have left
    std::string failures;  // for the message
  };

  struct Spot {
    Entry file;
    ChunkId present;  // is open there; none: free
  };
  // Where the chunk goes, if this writer may add it now.
  Result<Spot> Check(const proto::AddChunkRequest& request) const;
  Task<Result<proto::WriteGrant>> Make(proto::AddChunkRequest request, Entry file, Mono deadline);
  // Of a chunk that exists; remembered as the answer.
  Task<Result<proto::WriteGrant>> GrantAgain(proto::AddChunkRequest request, ChunkId chunk, std::string reason,
                                             Mono deadline);
  std::vector<ServerId> Choose(const Entry& file, const std::vector<ServerId>& exclude, size_t count,
                               const std::vector<Created>& present) const;
  // Soon after the start: for those still to register, before fewer replicas are made than asked.
  Task<> AwaitServers(proto::AddChunkRequest request, Entry file, Mono deadline);
  Task<Replicas> CreateReplicas(Attempt attempt, Entry file, std::vector<ServerId> exclude);
  Task<Result<Created>> CreateOne(Attempt attempt, Entry file, ServerId server);
  // Stages the chunk and its answer.
  Result<proto::WriteGrant> Stage(const proto::AddChunkRequest& request, const Attempt& attempt,
                                  const std::vector<Created>& created, uint64_t* revision);
  // What was or may yet be created without getting into a file is garbage.
  Task<> Discard(Attempt attempt, record::Chunk record, size_t ordered);
  void NoteReplicas(const Attempt& attempt, const std::vector<Created>& created);
  Error NotEnough(const Entry& file, const Replicas& replicas) const;

  Env& env_;
  MetaStore& store_;
  AnswerTable& answers_;
  Namespace& names_;
  SessionTable& sessions_;
  ChunkTable& chunks_;
  ServerTable& servers_;
  LocationMap& locations_;
  Orders& orders_;
  LeaseGiver& giver_;
  Granter& granter_;
  StandingGrants& standing_;
  const Serving& serving_;
  const Options options_;
};

}  // namespace picket
