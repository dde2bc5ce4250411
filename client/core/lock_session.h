// A lock on a path: the file's write session, held and renewed for whatever its holder does elsewhere
// (Chubby §2.4), and the sequencer that proves it.
//
// 1. The lock counts as held until valid_until(): the soft limit less a margin for drifting clocks, counted
//    from before the request that was answered last was sent. The master counts from later.
// 2. It is lost when the master says so, or when that time comes before a renewal was answered; for good.
//    A clock stands still while its machine sleeps, and a paused process sees nothing: the sequencer is what
//    others go by.
// Runs on one executor. The task that renews keeps it alive until it is released, lost or detached.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/core/master_client.h"
#include "common/base/ids.h"
#include "common/env/env.h"
#include "common/env/sync.h"
#include "proto/client_master.pb.h"

namespace picket {

struct LockOptions {
  bool shared = false;          // others may share it; else nobody else has it
  Nanos wait{};                 // for its present holders to leave
  std::string writer_id;        // of the logical holder: after a restart it takes its own lock over at once
  proto::SessionLimits limits;  // 0: the cluster's
  uint32_t lock_delay_ms = 0;   // others are kept out that long after an end that was no release; 0: the cluster's
};

class LockSession : public std::enable_shared_from_this<LockSession> {
 public:
  // What OPEN_FILE refuses: kLeaseConflict and kLockDelayed once the wait is over, and every other refusal.
  // The file is made if it is missing, with its directories.
  static Task<Result<std::shared_ptr<LockSession>>> Acquire(Env* env, std::shared_ptr<MasterClient> master,
                                                            proto::OpenRequest request, Nanos wait, Nanos timeout);

  // Ends it in order, without a lock-delay. Of a lost lock: what lost it.
  static Task<Status> Release(std::shared_ptr<LockSession> self, Nanos timeout);
  // Nobody is interested any more: it runs out.
  void Detach() { End(); }

  const proto::Sequencer& sequencer() const { return opened_.sequencer(); }
  const proto::OpenResponse& opened() const { return opened_; }
  Mono valid_until() const { return valid_until_; }
  // Nothing is left of a lock that is lost or released.
  Nanos left() const { return ended_ ? Nanos(0) : std::max<Nanos>(valid_until_ - env_.Now(), Nanos(0)); }
  const std::optional<Error>& lost() const { return lost_; }

  static constexpr int kMarginPercent = 2;
  static constexpr Nanos kLongestPause = 500ms;  // between two attempts to get a lock that is held

 private:
  LockSession(Env& env, std::shared_ptr<MasterClient> master, proto::OpenResponse opened, Mono asked);
  static Task<> Renew(std::shared_ptr<LockSession> self);
  Nanos Valid() const;
  void Lose(Error error);
  void End();

  Env& env_;
  const std::shared_ptr<MasterClient> master_;
  const proto::OpenResponse opened_;
  Mono valid_until_;
  Signal changed_;
  bool ended_ = false;
  std::optional<Error> lost_;
};

}  // namespace picket
