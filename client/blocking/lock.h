// Lock over the core's LockSession on the loop.
#pragma once

#include <memory>
#include <string>

#include "client/blocking/loop_thread.h"
#include "client/core/lock_session.h"
#include "picket/lock.h"

namespace picket::client {

class BlockingLock final : public Lock {
 public:
  BlockingLock(std::shared_ptr<LoopThread> loop, std::shared_ptr<LockSession> session, std::string path);
  ~BlockingLock() override;

  const std::string& sequencer() const override { return text_; }
  const std::string& path() const override { return path_; }
  uint64_t generation() const override { return generation_; }
  uint32_t left_ms() override;
  std::optional<Error> lost() override;
  Result<> Release() override;

 private:
  const std::shared_ptr<LoopThread> loop_;
  std::shared_ptr<LockSession> session_;  // looked at on the loop only
  const std::string path_;
  const std::string text_;
  const uint64_t generation_;
};

SequencerState ToPublic(const proto::CheckSequencerResponse& response);

}  // namespace picket::client
