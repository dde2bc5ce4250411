#include "master/token_service.h"

#include "common/base/mutation.h"

namespace picket {

void TokenService::Register(RpcServer* server) {
  server->Handle<proto::RefreshTokenRequest, proto::RefreshTokenResponse>(
      proto::REFRESH_TOKEN, [this](auto request, Mono) { return Refresh(std::move(request)); });
  server->Handle<proto::CheckSequencerRequest, proto::CheckSequencerResponse>(
      proto::CHECK_SEQUENCER, [this](auto request, Mono) { return CheckSequencer(std::move(request)); });
}

// ---- write tokens ----------------------------------------------------------------------------------

Task<Result<proto::RefreshTokenResponse>> TokenService::Refresh(proto::RefreshTokenRequest request) {
  auto token = Judge(request);
  proto::RefreshTokenResponse response;
  response.set_revision(store_.revision());
  PICKET_CO_TRY(co_await store_.ReadBarrier());
  if (!token) co_return Fail(std::move(token).error());
  *response.mutable_token() = std::move(*token);
  co_return response;
}

Result<proto::WriteToken> TokenService::Judge(const proto::RefreshTokenRequest& request) const {
  const ChunkWriter writer{ChunkId(request.chunk()), InodeId(request.inode()), Generation(request.generation()),
                           ClientId(request.holder())};
  Status may = sessions_.CheckWriter(writer.inode, writer.generation, writer.holder);
  if (!may && !PICKET_MUTANT(refresh_writer)) return Fail(may.error());
  auto record = chunks_.Get(writer.chunk);
  if (!record) return Fail(record.error());
  if (!*record || (*record)->inode() != request.inode()) {
    return Fail(Code::kNotFound, "file " + ToString(writer.inode) + " has no chunk " + ToString(writer.chunk));
  }
  if ((*record)->current() != request.version() && !PICKET_MUTANT(refresh_version)) {
    return Fail(Error(Code::kStaleVersion, "chunk " + ToString(writer.chunk) + " is at version " +
                                               Version((*record)->current()).ToString() + ", the token at " +
                                               Version(request.version()).ToString())
                    .WithTokens(request.version(), (*record)->current())
                    .WithNextStep("ask the master for a grant"));
  }
  return giver_.ToToken(writer, **record);
}

// ---- sequencers ------------------------------------------------------------------------------------

Task<Result<proto::CheckSequencerResponse>> TokenService::CheckSequencer(proto::CheckSequencerRequest request) {
  auto judged = Judge(request.text());
  PICKET_CO_TRY(co_await store_.ReadBarrier());
  co_return judged;
}

Result<proto::CheckSequencerResponse> TokenService::Judge(const std::string& text) const {
  using Response = proto::CheckSequencerResponse;
  Response response;
  auto sequencer = ParseSequencer(text);
  Status signed_here = sequencer ? keys_.Check(*sequencer) : Status(Fail(sequencer.error()));
  if (!signed_here) {
    const Error& e = signed_here.error();
    response.set_verdict(e.code == Code::kTokenExpired ? Response::EXPIRED : Response::FORGED);
    response.set_detail(e.message);
    if (e.code == Code::kTokenExpired) *response.mutable_sequencer() = std::move(*sequencer);
    return response;
  }
  const InodeId inode(sequencer->inode());
  const ClientId holder(sequencer->holder());
  response.set_verdict(Response::STALE);
  *response.mutable_sequencer() = *sequencer;
  auto file = names_.Get(inode);
  if (!file && file.error().code != Code::kNotFound) return Fail(file.error());
  if (!file) {
    response.set_detail("the file is gone");
    return response;
  }
  const auto session = sessions_.Find(inode);
  response.set_newest_generation(file->inode.generation());
  if (session && !session->recovering) response.set_holder(ToString(session->holder()));
  if (file->inode.generation() != sequencer->generation() && !PICKET_MUTANT(sequencer_generation)) {
    response.set_detail("a newer generation fenced it");
  } else if (!session) {
    response.set_detail("it was released, and nobody has taken the file since");
  } else if (session->recovering || session->mode != sequencer->mode() || !session->Holds(holder)) {
    response.set_detail("its holder has left");
  } else {
    response.set_verdict(Response::VALID);
  }
  return response;
}

}  // namespace picket
