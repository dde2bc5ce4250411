#include "client/blocking/lock.h"

#include "client/blocking/error_map.h"
#include "common/identity/sequencer_text.h"

namespace picket::client {
namespace {

struct Look {
  static Task<Nanos> Left(std::shared_ptr<LockSession> session) { co_return session->left(); }
  static Task<std::optional<picket::Error>> Lost(std::shared_ptr<LockSession> session) { co_return session->lost(); }
};

Sequencer ToPublic(const proto::Sequencer& s) {
  Sequencer out;
  out.cluster = s.cluster();
  out.path = s.path();
  out.inode = s.inode();
  out.shared = s.mode() == proto::SHARED_LOCK;
  out.generation = s.generation();
  out.holder = ToHex(s.holder());
  out.key = s.key();
  return out;
}

Verdict ToPublic(proto::CheckSequencerResponse::Verdict verdict) {
  switch (verdict) {
    case proto::CheckSequencerResponse::VALID: return Verdict::kValid;
    case proto::CheckSequencerResponse::STALE: return Verdict::kStale;
    case proto::CheckSequencerResponse::EXPIRED: return Verdict::kExpired;
    default: return Verdict::kForged;
  }
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kValid: return "valid";
    case Verdict::kStale: return "stale";
    case Verdict::kForged: return "forged";
    case Verdict::kExpired: return "expired";
  }
  return "forged";
}

SequencerState ToPublic(const proto::CheckSequencerResponse& response) {
  SequencerState out;
  out.verdict = ToPublic(response.verdict());
  if (response.has_sequencer()) out.sequencer = ToPublic(response.sequencer());
  out.newest_generation = response.newest_generation();
  out.holder = response.holder();
  out.detail = response.detail();
  return out;
}

Result<Sequencer> ReadSequencer(std::string_view text) {
  auto parsed = ParseSequencer(text);
  if (!parsed) return PublicFailure(parsed.error());
  return ToPublic(*parsed);
}

BlockingLock::BlockingLock(std::shared_ptr<LoopThread> loop, std::shared_ptr<LockSession> session, std::string path)
    : loop_(std::move(loop)),
      session_(std::move(session)),
      path_(std::move(path)),
      text_(SequencerText(session_->sequencer())),
      generation_(session_->opened().generation()) {}

BlockingLock::~BlockingLock() {
  struct Last {
    std::shared_ptr<LockSession> session;
    ~Last() { session->Detach(); }
  };
  auto last = std::make_unique<Last>();
  last->session = std::move(session_);
  loop_->Dispose(std::move(last));
}

uint32_t BlockingLock::left_ms() {
  const Nanos left = loop_->Run<Nanos>([session = session_](FileSystem&) { return Look::Left(session); });
  return static_cast<uint32_t>(left / 1ms);
}

std::optional<Error> BlockingLock::lost() {
  auto lost = loop_->Run<std::optional<picket::Error>>([session = session_](FileSystem&) { return Look::Lost(session); });
  if (!lost) return std::nullopt;
  return Public(*lost);
}

Result<> BlockingLock::Release() {
  auto released = loop_->Run<Status>([session = session_, timeout = loop_->options().operation_timeout](FileSystem&) {
    return LockSession::Release(session, timeout);
  });
  if (!released) return PublicFailure(released.error());
  return {};
}

}  // namespace picket::client
