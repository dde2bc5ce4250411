#include "master/session_claim.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/mutation.h"

namespace picket {
namespace {

std::string_view Doing(const SessionTable::Session& session) {
  if (session.lock) return session.shared() ? "is locked, shared," : "is locked";
  return session.mode == proto::RECORD_APPEND ? "is open for record append" : "is being written";
}

Error Conflict(const Path& path, const SessionTable::Session& session, Nanos left) {
  const auto seconds = static_cast<double>(left / 1ms) / 1000;
  Error error(Code::kLeaseConflict,
              fmt::format("{} {} by client {}{} in session {}, which may be claimed in {:.1f} s unless it is renewed",
                          path.Quoted(), Doing(session), ToString(session.holder()),
                          session.holders.size() > 1 ? fmt::format(" and {} more", session.holders.size() - 1) : "",
                          session.generation.ToString(), seconds));
  error.retry_after_ms = static_cast<uint32_t>(left / 1ms);
  return std::move(error)
      .WithTokens(0, session.generation.value)
      .WithHolder(ToString(session.holder()))
      .WithNextStep(fmt::format("wait, or take the file from its holder: picket lease recover {}", path.ToString()));
}

}  // namespace

Result<Claim> JudgeClaim(const Path& path, const SessionTable::Session* session, const SessionTable::Spec& spec, Mono now) {
  Claim claim;
  if (session == nullptr) return claim;
  if (session->recovering) {
    claim.way = Claim::Way::kAwait;
    return claim;
  }
  const bool same_mode = session->shared() && session->mode == spec.mode;
  if (same_mode || (PICKET_MUTANT(session_mode_excludes) && session->shared())) {
    const bool counted = session->Holds(spec.holder) ||
                         (!spec.writer_id.empty() && std::ranges::find(session->holders, spec.writer_id,
                                                                       &SessionTable::Holder::writer_id) !=
                                                         session->holders.end());
    if (!counted && session->holders.size() >= SessionTable::kMaxHolders) {
      return Fail(Error(Code::kLeaseConflict, fmt::format("{} has {} holders already, the most that share a session",
                                                          path.Quoted(), session->holders.size()))
                      .WithTokens(0, session->generation.value)
                      .WithNextStep("wait until one of them leaves"));
    }
    claim.way = Claim::Way::kJoin;
    return claim;
  }
  if (session->IsOf(spec.writer_id) && !PICKET_MUTANT(writer_id_takeover)) {
    claim.way = Claim::Way::kTakeOver;
    claim.own_writer = true;
    claim.reason = fmt::format("its own writer {} came back as client {}", Quoted(spec.writer_id), ToString(spec.holder));
    return claim;
  }
  const Nanos silent = now - session->renewed();
  if (silent < session->soft_limit && !PICKET_MUTANT(claim_soft_limit)) {
    return Fail(Conflict(path, *session, session->soft_limit - silent));
  }
  claim.way = Claim::Way::kTakeOver;
  claim.reason = fmt::format("claimed by client {} after {} s of silence", ToString(spec.holder), silent / 1s);
  return claim;
}

}  // namespace picket
