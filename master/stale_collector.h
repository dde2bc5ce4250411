// Has replicas that count for nothing deleted, which is: put into quarantine, in the background and at a
// bounded rate (design §5, F13): stale ones, corrupt ones, and those of chunks that nobody has a record of.
//
// 1. Nothing is deleted on the first suspicion: a replica must have been so for `settle`, long enough for the
//    stragglers of a recovery to be finished (D8); one of an unknown chunk for `orphan_grace`, and its id must be
//    one that this history may have handed out.
// 2. Goal first: enough replicas count without it, and each of them is reported by its server in its present
//    session (baidu/bfs#193). Of an unsealed chunk: every member is clean and live, and they are enough.
// 3. Never while an attempt may be under way (minted above current) or the file is in recovery; never a member;
//    never a replica that counts, or is between two sets; never one ahead of this history (D14).
// 4. Per chunk one victim at a time: while its order may be under way, only the same one is ordered again.
// 5. What was true is looked at again right before the order leaves.
// A replica that cannot go yet is left where it is, served to nobody.
// Runs on the master's executor.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "common/env/env.h"
#include "master/chunk_table.h"
#include "master/delete_orders.h"
#include "master/location_map.h"
#include "master/replica_judge.h"
#include "master/serving.h"
#include "master/session_table.h"

namespace picket {

class StaleCollector {
 public:
  struct Options {
    Nanos interval = 10s;
    Nanos settle = 60s;
    Nanos orphan_grace = 1h;
  };
  StaleCollector(Env& env, MetaStore& store, ChunkTable& chunks, SessionTable& sessions, ServerTable& servers,
                 LocationMap& locations, DeleteOrders& deletes, const Serving& serving, Options options)
      : env_(env),
        store_(store),
        chunks_(chunks),
        sessions_(sessions),
        servers_(servers),
        locations_(locations),
        deletes_(deletes),
        serving_(serving),
        options_(options) {}

  // Runs as long as the master may delete.
  Task<> Run();
  // Goes on from where the pass before ended; at most kMaxPerPass chunks.
  Task<Status> Pass();

  static constexpr size_t kStep = 256;             // chunks looked at between two turns
  static constexpr size_t kMaxPerPass = 100'000;

 private:
  struct Suspect {
    InstanceId instance;
    Version version;
    Mono since;
    bool told = false;  // that it is corrupt and cannot go
  };
  using Suspects = std::map<std::pair<ChunkId, ServerId>, Suspect>;

  // What it would be worth if no order were under way.
  Worth Judge(const record::Chunk* record, const Replica& replica) const;
  // Notes the suspects of one chunk and adds the victim that is due.
  Status Look(ChunkId chunk, Suspects* suspects, std::vector<Victim>* due);
  // Whether it may go, but for how long it has been suspect.
  bool MayGo(ChunkId chunk, const record::Chunk* record, const Replica& replica) const;
  bool EnoughWithout(ChunkId chunk, const record::Chunk& record) const;

  Env& env_;
  MetaStore& store_;
  ChunkTable& chunks_;
  SessionTable& sessions_;
  ServerTable& servers_;
  LocationMap& locations_;
  DeleteOrders& deletes_;
  const Serving& serving_;
  const Options options_;
  ChunkId after_;      // where the next pass goes on
  Suspects suspects_;  // of what is reported, the part that counts for nothing
};

}  // namespace picket
