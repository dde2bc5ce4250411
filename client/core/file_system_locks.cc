// The part of a FileSystem that is about locks and their sequencers.
#include "client/core/file_system.h"
#include "client/core/lock_session.h"
#include "common/rpc/client.h"

namespace picket {

Task<Result<std::shared_ptr<LockSession>>> FileSystem::Lock(std::string path, LockOptions options) {
  proto::OpenRequest request;
  request.set_path(std::move(path));
  request.set_mode(options.shared ? proto::SHARED_LOCK : proto::EXCLUSIVE);
  request.set_holder(options_.id.value);
  request.set_writer_id(options.writer_id);
  *request.mutable_limits() = options.limits;
  request.set_lock(true);
  request.set_lock_delay_ms(options.lock_delay_ms);
  request.set_create(true);
  request.set_parents(true);
  request.set_permissions(0644);
  request.set_owner(options_.user);
  request.set_group(options_.group);
  return LockSession::Acquire(&env_, master_, std::move(request), options.wait, options_.operation_timeout);
}

Task<Result<proto::CheckSequencerResponse>> FileSystem::CheckSequencer(std::string text, Endpoint server) {
  proto::CheckSequencerRequest request;
  request.set_text(std::move(text));
  if (server.host.empty()) {
    co_return co_await master_->Read<proto::CheckSequencerResponse>(proto::CHECK_SEQUENCER, request, Deadline());
  }
  Channel channel(env_, server);
  auto answer = co_await channel.Call<proto::CheckSequencerResponse>(proto::CHECK_SEQUENCER, request, kCheckTimeout);
  co_return answer;
}

}  // namespace picket
