#include "client/core/refresh_token.h"

namespace picket {

Task<Result<proto::WriteToken>> RefreshToken(std::shared_ptr<MasterClient> master, proto::WriteToken old,
                                             Mono deadline) {
  proto::RefreshTokenRequest request;
  request.set_inode(old.inode());
  request.set_chunk(old.chunk());
  request.set_version(old.version());
  request.set_generation(old.generation());
  request.set_holder(old.holder());
  auto answer = co_await master->Read<proto::RefreshTokenResponse>(proto::REFRESH_TOKEN, request, deadline);
  if (!answer) co_return Fail(std::move(answer).error());
  co_return std::move(*answer->mutable_token());
}

}  // namespace picket
