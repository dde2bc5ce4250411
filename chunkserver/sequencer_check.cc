#include "chunkserver/sequencer_check.h"

#include "chunkserver/mutation.h"
#include "common/base/mutation.h"

namespace picket::cs {

Task<Result<proto::CheckSequencerResponse>> SequencerCheck::Check(proto::CheckSequencerRequest request, Mono deadline) {
  using Response = proto::CheckSequencerResponse;
  Response response;
  auto sequencer = ParseSequencer(request.text());
  Status verified = sequencer ? verifier_.Verify(*sequencer) : Status(Fail(sequencer.error()));
  if (!verified && verified.error().code != Code::kTokenExpired && verified.error().code != Code::kUnavailable) {
    response.set_verdict(Response::FORGED);
    response.set_detail(verified.error().message);
    co_return response;
  }
  if (verified) {
    const Generation own(sequencer->generation());
    const Generation mark = store_.NewestGeneration(InodeId(sequencer->inode()));
    if (own < mark && !PICKET_MUTANT(sequencer_mark)) {
      response.set_verdict(Response::STALE);
      *response.mutable_sequencer() = std::move(*sequencer);
      response.set_newest_generation(mark.value);
      response.set_detail("a replica here has seen a newer generation");
      co_return response;
    }
  }
  // Not known here, or nothing here speaks against it: only the master can tell (a key may be newer than
  // what this server has).
  auto answer = co_await master_.Call<Response>(proto::CHECK_SEQUENCER, request, NextHopTime(deadline - env_.Now()));
  if (answer) co_return answer;
  std::string known = verified ? "its signature is right and no replica here has seen a newer generation"
                               : verified.error().message;
  co_return Fail(Error(Code::kUnavailable, "whether the sequencer is valid cannot be told: the master does not answer (" +
                                               answer.error().message + "); " + known)
                     .WithNextStep("ask again, or treat it as stale"));
}

}  // namespace picket::cs
