#include "client/core/session_loss.h"

#include "client/core/master_client.h"
#include "proto/client_master.pb.h"

namespace picket {

Task<Error> ExplainLoss(Env* env, std::shared_ptr<MasterClient> master, InodeId inode, Generation generation,
                        Error error) {
  if (error.token == 0) error.token = generation.value;
  if (!error.holder.empty()) co_return error;
  proto::GetFileRequest request;
  request.set_inode(inode.value);
  request.set_limit(1);
  auto file = co_await master->Read<proto::GetFileResponse>(proto::GET_FILE, request, env->Now() + kExplainTimeout);
  if (file) {
    if (error.mark == 0) error.mark = file->status().generation();
    error.holder = file->status().holder().empty() ? "nobody" : file->status().holder();
  }
  if (error.next_step.empty()) {
    error.next_step = file || file.error().code != Code::kNotFound
                          ? "somebody else may have the file now; look at it before you write it again"
                          : "the file was removed; look for it before you write it again";
  }
  co_return error;
}

}  // namespace picket
