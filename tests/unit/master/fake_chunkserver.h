// A chunkserver for tests of the master: speaks the whole conversation with it and obeys its orders as
// PROTOCOL.md says, with contents in memory; and misbehaves on request: loses an answer, refuses, holds an
// order back, comes back with less than it had.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/env/env.h"
#include "common/env/sync.h"
#include "common/identity/cluster_secret.h"
#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "proto/chunkserver_master.pb.h"

namespace picket::test {

struct FakeReplica {
  uint64_t version = 0;
  uint64_t generation = 0;
  uint64_t instance = 0;
  uint64_t attempt = 0;
  uint64_t raised_in = 0;  // incarnation
  proto::ReplicaState state = proto::OPEN;
  std::string bytes;
  uint64_t known_acked = 0;
  uint64_t sealed_generation = 0;
  bool overwritten = false;  // since it was sealed last
};

// What survives the process; the test reads and changes it at will.
struct FakeDisk {
  ServerId id;
  std::string host;
  std::string rack;
  uint64_t incarnation = 0;
  uint64_t instances = 0;
  std::map<uint64_t, FakeReplica> replicas;
  std::map<uint64_t, uint64_t> tombstones;  // chunk → version
  struct Quarantined {
    uint64_t chunk = 0;
    FakeReplica replica;
  };
  std::map<std::string, Quarantined> quarantine;  // by name
  proto::EpochMark mark;
  uint64_t free_bytes = uint64_t{1} << 40;

  // What to do with the next orders of a method, oldest first.
  enum class Act {
    kLoseAnswer,   // do it, never answer
    kLoseRequest,  // neither
    kRefuse,       // with `error`
    kHold,         // do it once `release` is set
  };
  struct Rule {
    proto::Method method = proto::METHOD_UNKNOWN;
    Act act = Act::kLoseAnswer;
    Error error;
    std::shared_ptr<bool> release;
  };
  std::deque<Rule> rules;
  std::vector<proto::Method> orders;  // as they arrived
  std::set<std::pair<uint64_t, uint64_t>> leases;  // chunk, version
  bool extend_leases = false;
  bool report = true;  // after each registration
  proto::KeyRing ring;  // of token keys, as it came last
  bool deaf_to_keys = false;  // takes no new ring from heartbeats
};

// The disks of a cluster: where a replica that fills finds its source.
struct FakeFleet {
  ClusterSecret secret;
  Endpoint master;
  std::map<ServerId, FakeDisk*> disks;
};

std::vector<uint32_t> BlockCrcs(const std::string& bytes);
uint32_t DigestOf(const std::string& bytes);

class FakeChunkserver {
 public:
  static constexpr uint16_t kPort = 7500;
  FakeChunkserver(Env& env, FakeFleet* fleet, FakeDisk* disk);

  uint64_t session() const { return session_; }
  Task<Result<proto::RegisterCompleteResponse>> Register();
  Task<Status> Report();
  Task<Status> Beat();

 private:
  Task<> Run();
  template <class Request, class Response>
  void Handle(proto::Method method, Result<Response> (FakeChunkserver::*act)(const Request&));
  template <class Request, class Response>
  static Task<Result<Response>> Serve(FakeChunkserver* self, proto::Method method, Request request,
                                      Result<Response> (FakeChunkserver::*act)(const Request&));
  Status Judge(const proto::OrderHeader& header);
  Result<proto::CreateReplicaResponse> Create(const proto::CreateReplicaRequest& r);
  Result<proto::AdvanceVersionResponse> Advance(const proto::AdvanceVersionRequest& r);
  Result<proto::GrantLeaseResponse> Grant(const proto::GrantLeaseRequest& r);
  Result<proto::RevokeLeaseResponse> Revoke(const proto::RevokeLeaseRequest& r);
  Result<proto::BeginRecoveryResponse> BeginRecovery(const proto::BeginRecoveryRequest& r);
  Result<proto::FinishRecoveryResponse> FinishRecovery(const proto::FinishRecoveryRequest& r);
  // Makes the replica's bytes those of the set, from its source where it does not have them.
  Status MakeEqual(uint64_t chunk, FakeReplica* replica, const proto::ReconcileSet& set);
  Result<proto::DeleteReplicaResponse> Delete(const proto::DeleteReplicaRequest& r);
  Result<proto::ListQuarantineResponse> ListQuarantine(const proto::ListQuarantineRequest& r);
  Result<proto::RestoreReplicaResponse> Restore(const proto::RestoreReplicaRequest& r);
  Result<proto::PurgeQuarantineResponse> Purge(const proto::PurgeQuarantineRequest& r);
  proto::ReplicaReport ReportOf(uint64_t chunk) const;

  Env& env_;
  FakeFleet* fleet_;
  FakeDisk* disk_;
  RpcServer server_;
  Channel master_;
  uint64_t session_ = 0;
  std::set<uint64_t> changed_;
};

}  // namespace picket::test
