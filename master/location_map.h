// Which server has which replica, as the servers say: soft state, never persisted. Who is counted is
// replica_judge's matter.
//
// 1. An entry is what its server reported last in its session, or what an order's answer showed.
// 2. Entries of an earlier session stay (for readers) until the report of the new one is complete; then
//    what it did not name is gone. For deletes only entries of the present session count (F13).
// 3. Within one session an instance's version and seal do not go back: an older message that arrives late
//    changes nothing.
// 4. From the moment a delete order may have left, its victim counts as gone, until the order was refused or
//    a later report shows the replica (F13).
// Runs on the master's executor.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/ids.h"
#include "master/replica_judge.h"
#include "proto/chunkserver_master.pb.h"

namespace picket {

// Whether an order to delete a replica may have left.
enum class Leaving {
  kNo,
  kOrdered,     // the order is under way: no report says what becomes of it
  kUnanswered,  // it failed, and may have been done
};

struct Replica {
  ServerId server;
  uint64_t session = 0;  // of the server's registration
  Version version;
  Generation generation;
  proto::ReplicaState state = proto::REPLICA_STATE_UNKNOWN;
  uint64_t length = 0;
  uint32_t digest = 0;
  InstanceId instance;   // 0: not reported yet
  Leaving leaving = Leaving::kNo;
};
Replica FromReport(ServerId server, uint64_t session, const proto::ReplicaReport& report);
// What the judge looks at; `incarnation` is the server's, at its present registration.
ReplicaFacts FactsOf(const Replica& replica, Incarnation incarnation);

class LocationMap {
 public:
  // Sorted by server.
  const std::vector<Replica>& Of(ChunkId chunk) const;
  const Replica* Find(ChunkId chunk, ServerId server) const;
  // A TOMBSTONE is no replica: it removes.
  void Update(ChunkId chunk, const Replica& replica);
  void Remove(ChunkId chunk, ServerId server);
  // Only if it is still that instance.
  void Remove(ChunkId chunk, ServerId server, InstanceId instance);
  // An order to delete exactly that instance leaves, or has ended in that way. No entry of it: nothing.
  void SetLeaving(ChunkId chunk, ServerId server, InstanceId instance, Leaving leaving);
  // The chunks above `after` of which there is a replica, in the order of ids, at most `limit`.
  std::vector<ChunkId> Next(ChunkId after, size_t limit) const;
  // The report of `session` is complete: entries of the server's earlier ones go.
  void EndReport(ServerId server, uint64_t session);

 private:
  std::map<ChunkId, std::vector<Replica>> replicas_;
  std::unordered_map<ServerId, std::unordered_set<ChunkId>> chunks_of_;
};

}  // namespace picket
