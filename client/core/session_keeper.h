// Keeps this client's write sessions alive: one RENEW for all of them at a third of the shortest soft
// limit. A session that the master no longer knows is told so, once. While the master is silent it goes
// on asking, also beyond the limit: only an answer ends a session (HDFS-4495).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "client/core/master_client.h"
#include "common/base/ids.h"
#include "common/env/env.h"
#include "common/env/sync.h"

namespace picket {

class SessionKeeper : public std::enable_shared_from_this<SessionKeeper> {
 public:
  SessionKeeper(Env& env, std::shared_ptr<MasterClient> master);

  // Renews until Remove. `lost` runs at most once, on the executor.
  void Add(InodeId inode, Generation generation, Nanos soft_limit, std::function<void()> lost);
  // Of a session that was opened again under another generation, only the new one is renewed: removing the
  // old one leaves it alone.
  void Remove(InodeId inode, Generation generation);

 private:
  struct Session {
    Generation generation;
    Nanos soft_limit{};
    std::function<void()> lost;
  };
  static Task<> Run(std::shared_ptr<SessionKeeper> self);
  Nanos Period() const;

  Env& env_;
  const std::shared_ptr<MasterClient> master_;
  std::map<InodeId, Session> sessions_;
  Signal changed_;
  bool running_ = false;
};

}  // namespace picket
